import { collectionPath, listQuery } from "./api-paths.ts";
import { parseList } from "../answers/api-answers.ts";
import type { ListOptions } from "../client.ts";
import { KubeError } from "../errors.ts";
import type { ReadBudget, WorkAllowance } from "../answers/read-budget.ts";
import { overBudget } from "../answers/read-budget.ts";
import type { KubeObject, ResourceType } from "../resource.ts";
import type { TransportResponse } from "../transport.ts";

/**
 * Small, because a page and everything parsed from it are in memory at the same time. 100 nodes are about 1.5 MiB of
 * text.
 */
const PAGE_SIZE = 100;
const PAGES_MAX = 5_000;
/**
 * The API allows pages without objects before the last page ("up to zero items", `ListMeta` of `metav1`), because a
 * selector may have filtered all objects of a page. kube-apiserver fills each page, so it never sends an empty one.
 */
const EMPTY_PAGES_MAX = 20;

/**
 * Lists page by page, with all pages from one revision. It passes each page to the caller as it arrives, so that the
 * caller can drop what it does not need before the next page.
 *
 * @param options.budget bounds each page. The caller bounds what is kept of all pages.
 * @param work counts the time that the pages take to parse and to trim.
 * @param read sends one GET and throws if it does not succeed.
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
    const limit = options.pageSize ?? Math.min(PAGE_SIZE, options.budget?.pageSize ?? Infinity);
    const query = listQuery({ ...options, limit, continueToken });
    const answer = await read(`${collectionPath(type, options.namespace)}?${query}`);
    const list = work.run(what, () => {
      const { items, ...rest } = parseList(what, type, answer);
      if (options.budget !== undefined && items.length > limit) {
        throw overBudget(what, `${items.length} objects in a page with a limit of ${limit}`);
      }
      onPage(items);
      emptyPages = items.length === 0 ? emptyPages + 1 : 0;
      return rest;
    });
    continueToken = list.continueToken;
    if (continueToken === undefined || page + 1 === options.pagesMax) return list.resourceVersion;
    if (options.budget !== undefined && emptyPages >= EMPTY_PAGES_MAX) {
      throw overBudget(what, `${emptyPages} empty pages in a row, and the list continues`);
    }
  }
  if (options.budget !== undefined) throw overBudget(what, `more than ${PAGES_MAX} pages`);
  throw new KubeError("BadResponse", `${what}: more than ${PAGES_MAX} pages`);
}
