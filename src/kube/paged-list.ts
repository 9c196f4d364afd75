import { collectionPath, listQuery } from "./api-paths.ts";
import { parseList } from "./api-answers.ts";
import type { ListOptions } from "./client.ts";
import { KubeError } from "./errors.ts";
import type { ReadBudget } from "./read-budget.ts";
import { overBudget } from "./read-budget.ts";
import type { KubeObject, ResourceType } from "./resource.ts";
import type { TransportResponse } from "./transport.ts";

/** Small, since a page and all that was parsed from it are in memory at once: 100 nodes are about 1.5 MiB of text. */
const PAGE_SIZE = 100;
const PAGES_MAX = 5_000;

/**
 * Lists page by page from storage, all pages of one revision, and hands each page on as it comes, so that the caller can
 * drop what it does not need before the next one.
 *
 * @param options.budget bounds the page; what is kept of all pages is the caller's to bound.
 * @param read sends one GET and throws on anything but success.
 * @returns the revision that was listed.
 * @throws KubeError Gone where the list took longer than the server keeps a revision (about five minutes).
 */
export async function listPages(
  what: string,
  type: ResourceType,
  options: ListOptions & { budget?: ReadBudget | undefined },
  read: (path: string) => Promise<TransportResponse>,
  onPage: (items: KubeObject[]) => void,
): Promise<string> {
  let continueToken: string | undefined;
  for (let page = 0; page < PAGES_MAX; page++) {
    const limit = Math.min(options.pageSize ?? PAGE_SIZE, options.budget?.pageSize ?? Infinity);
    const query = listQuery({ ...options, limit, continueToken });
    const list = parseList(what, type, await read(`${collectionPath(type, options.namespace)}?${query}`));
    if (options.budget !== undefined && list.items.length > limit) {
      throw overBudget(what, `${list.items.length} objects in a page that was asked for ${limit}`);
    }
    onPage(list.items);
    continueToken = list.continueToken;
    if (continueToken === undefined) return list.resourceVersion;
  }
  throw new KubeError("BadResponse", `${what}: more than ${PAGES_MAX} pages`);
}
