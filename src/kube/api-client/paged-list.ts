import { collectionPath, listQuery } from "./api-paths.ts";
import { parseList } from "../answers/api-answers.ts";
import type { ListOptions } from "../client.ts";
import { KubeError } from "../errors.ts";
import type { ReadBudget, WorkAllowance } from "../answers/read-budget.ts";
import { overBudget } from "../answers/read-budget.ts";
import type { KubeObject, ResourceType } from "../resource.ts";
import type { TransportResponse } from "../transport.ts";

/** Small, since a page and all that was parsed from it are in memory at once: 100 nodes are about 1.5 MiB of text. */
const PAGE_SIZE = 100;
const PAGES_MAX = 5_000;
/**
 * The API allows a server to send pages without objects although there are more ("up to zero items", `ListMeta` of
 * `metav1`), because a selector may have filtered all of them. kube-apiserver reads on until a page is full, so its own
 * are never empty.
 */
const EMPTY_PAGES_MAX = 20;

/**
 * Lists page by page from storage, all pages of one revision, and hands each page on as it comes, so that the caller
 * can drop what it does not need before the next one.
 *
 * @param options.budget bounds the page; what is kept of all pages is the caller's to bound.
 * @param work counts the time that the pages take to parse and to trim.
 * @param read sends one GET and throws on anything but success.
 * @returns the revision that was listed.
 * @throws KubeError OverBudget; Gone if the list took longer than the server keeps a revision (about five minutes).
 */
export async function listPages(
  what: string,
  type: ResourceType,
  options: ListOptions & { budget?: ReadBudget | undefined },
  work: WorkAllowance,
  read: (path: string) => Promise<TransportResponse>,
  onPage: (items: KubeObject[]) => void,
): Promise<string> {
  let continueToken: string | undefined;
  let emptyPages = 0;
  for (let page = 0; page < PAGES_MAX; page++) {
    const limit = Math.min(options.pageSize ?? PAGE_SIZE, options.budget?.pageSize ?? Infinity);
    const query = listQuery({ ...options, limit, continueToken });
    const answer = await read(`${collectionPath(type, options.namespace)}?${query}`);
    const list = work.run(what, () => {
      const { items, ...rest } = parseList(what, type, answer);
      if (options.budget !== undefined && items.length > limit) {
        throw overBudget(what, `${items.length} objects in a page that was asked for ${limit}`);
      }
      onPage(items);
      emptyPages = items.length === 0 ? emptyPages + 1 : 0;
      return rest;
    });
    continueToken = list.continueToken;
    if (continueToken === undefined || page + 1 === options.pagesMax) return list.resourceVersion;
    if (options.budget !== undefined && emptyPages >= EMPTY_PAGES_MAX) {
      throw overBudget(what, `${emptyPages} pages without objects in a row, and more to come`);
    }
  }
  if (options.budget !== undefined) throw overBudget(what, `more than ${PAGES_MAX} pages`);
  throw new KubeError("BadResponse", `${what}: more than ${PAGES_MAX} pages`);
}
