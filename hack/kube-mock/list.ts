import { ApiError, badRequest, expired, invalid } from "./api-error.ts";
import { isObject } from "./json.ts";
import type { ServedResource } from "./resource.ts";
import type { Predicate } from "./selectors.ts";
import { parseFieldSelector, parseLabelSelector } from "./selectors.ts";
import type { Store, Stored } from "./store.ts";

const TOO_OLD_LIST = "The resourceVersion for the provided list is too old.";
const TOO_OLD_CONTINUE =
  "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.";

/** Selects objects of a collection; undefined selects all. */
export type Selection = Predicate | undefined;

/** Parses the selectors of a list, a watch or a deletion of a collection. */
export function parseSelection(resource: ServedResource, namespace: string, query: URLSearchParams): Selection {
  const byLabel = parseLabelSelector(query.get("labelSelector") ?? "");
  const byField = parseFieldSelector(query.get("fieldSelector") ?? "", resource.fields);
  const byNamespace: Selection =
    resource.namespaced && namespace !== "" ? ({ metadata }) => metadata.namespace === namespace : undefined;
  const all = [byNamespace, byField, byLabel].filter((predicate) => predicate !== undefined);
  if (all.length === 0) return undefined;
  return (object) => all.every((fits) => fits(object));
}

/** One answer to a list request, as JSON. Pages of one list all show the same revision. */
export function listText(store: Store, resource: ServedResource, namespace: string, query: URLSearchParams): string {
  const selection = parseSelection(resource, namespace, query);
  const limit = parseLimit(query.get("limit"));
  const from = parseContinue(query.get("continue"));
  const revision = from?.revision ?? listRevision(store, query);
  const snapshot = store.collection(resource.storage).snapshot(revision);
  if (snapshot === undefined) throw expired(from === undefined ? TOO_OLD_LIST : TOO_OLD_CONTINUE);
  const isSelected = (stored: Stored): boolean =>
    (from === undefined || stored.key > from.after) && (selection === undefined || selection(stored.object));
  const selected = snapshot.filter(isSelected);
  const page = limit === 0 ? selected : selected.slice(0, limit);
  const last = page.at(-1);
  const remaining = selected.length - page.length;
  const metadata = {
    resourceVersion: String(revision),
    ...(remaining > 0 && last !== undefined && { continue: formatContinue({ revision, after: last.key }) }),
    // With a selector, the real server does not report how many are left.
    ...(remaining > 0 && !isFiltered(query) && { remainingItemCount: remaining }),
  };
  const items = page.map((stored) => (resource.builtIn ? stored.bareText(resource) : stored.text(resource)));
  return `{"kind":"${resource.listKind}","apiVersion":"${resource.apiVersion}","metadata":${JSON.stringify(metadata)},"items":[${items.join(",")}]}`;
}

function isFiltered(query: URLSearchParams): boolean {
  return (query.get("labelSelector") ?? "") !== "" || (query.get("fieldSelector") ?? "") !== "";
}

function parseLimit(text: string | null): number {
  if (text === null || text === "") return 0;
  if (!/^\d+$/.test(text)) throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(text)}: invalid syntax`);
  return Number(text);
}

/**
 * The revision that a list shows, by the rules of `resourceVersion` and `resourceVersionMatch`.
 *
 * @throws ApiError 400 for an invalid version, 422 for a match without a version, 504 for a future version.
 */
function listRevision(store: Store, query: URLSearchParams): number {
  const version = query.get("resourceVersion") ?? "";
  const match = query.get("resourceVersionMatch") ?? "";
  if (match !== "" && version === "") {
    throw invalidOption("resourceVersionMatch", "resourceVersionMatch is forbidden unless resourceVersion is provided");
  }
  if (match === "Exact" && version === "0") {
    throw invalidOption("resourceVersionMatch", 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"');
  }
  if (version === "") return store.revision;
  const revision = parseRevision(version);
  if (revision === undefined) {
    const why = `strconv.ParseUint: parsing ${JSON.stringify(version)}: invalid syntax`;
    throw badRequest(`invalid resource version: resourceVersion: Invalid value: ${JSON.stringify(version)}: ${why}`);
  }
  if (revision > store.revision) throw tooLarge(revision, store);
  return match === "Exact" ? revision : store.revision;
}

export function parseRevision(text: string): number | undefined {
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

export function invalidOption(field: string, why: string): ApiError {
  return invalid("meta.k8s.io", "ListOptions", "", [
    { reason: "FieldValueForbidden", message: `Forbidden: ${why}`, field },
  ]);
}

function tooLarge(revision: number, store: Store): ApiError {
  const message = `Timeout: Too large resource version: ${revision}, current: ${store.revision}`;
  const causes = [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }] as const;
  return new ApiError(504, "Timeout", message, { causes, retryAfterSeconds: 1 });
}

interface Continue {
  revision: number;
  /** Key of the last object on the previous page. */
  after: string;
}

function formatContinue({ revision, after }: Continue): string {
  const token = { v: "meta.k8s.io/v1", rv: revision, start: `${after}\0` };
  return Buffer.from(JSON.stringify(token)).toString("base64url");
}

function parseContinue(text: string | null): Continue | undefined {
  if (text === null || text === "") return undefined;
  try {
    const token: unknown = JSON.parse(Buffer.from(text, "base64url").toString());
    if (isObject(token) && typeof token["rv"] === "number" && typeof token["start"] === "string") {
      return { revision: token["rv"], after: token["start"].replace(/\0$/, "") };
    }
  } catch {
    // Continues to the error below: the text is not one of our tokens.
  }
  throw badRequest("invalid continue token: continue key is not valid");
}
