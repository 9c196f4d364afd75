/** The meaning of a path. Whether the resource is served is checked later. */
export type Route =
  | { kind: "resource"; apiVersion: string; namespace: string; plural: string; name: string; subresource: string }
  | { kind: "versions" }
  | { kind: "groups" }
  | { kind: "group"; group: string }
  | { kind: "resources"; apiVersion: string }
  | { kind: "other"; path: string };

/**
 * Parses a path of the API: `/api/v1/…` or `/apis/<group>/<version>/…`, then
 * `[namespaces/<namespace>/]<plural>[/<name>[/<subresource>]]`.
 */
export function parseRoute(path: string): Route {
  const parts = path.split("/").slice(1).map(decodeURIComponent);
  const [root = ""] = parts;
  if (root === "api" && parts.length === 1) return { kind: "versions" };
  if (root === "apis" && parts.length === 1) return { kind: "groups" };
  if (root === "apis" && parts.length === 2) return { kind: "group", group: parts[1] ?? "" };
  if (root !== "api" && root !== "apis") return { kind: "other", path };
  const prefixLength = root === "api" ? 2 : 3;
  const apiVersion = parts.slice(1, prefixLength).join("/");
  const rest = parts.slice(prefixLength);
  if (rest.length === 0) return { kind: "resources", apiVersion };
  const isInNamespace = rest[0] === "namespaces" && rest.length >= 3 && !isNamespaceSubresource(rest);
  const [plural = "", name = "", subresource = "", ...excess] = isInNamespace ? rest.slice(2) : rest;
  if (excess.length > 0) return { kind: "other", path };
  return { kind: "resource", apiVersion, namespace: isInNamespace ? (rest[1] ?? "") : "", plural, name, subresource };
}

function isNamespaceSubresource(rest: readonly string[]): boolean {
  return rest.length === 3 && (rest[2] === "status" || rest[2] === "finalize");
}
