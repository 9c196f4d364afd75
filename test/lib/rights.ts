import { readFileSync } from "node:fs";
import { parseAllDocuments } from "yaml";
import type { RequestRecord } from "../../hack/kube-mock/api-server.ts";

interface Rule {
  apiGroups: string[];
  resources: string[];
  verbs: string[];
}

/** The rules of every ClusterRole in a manifest, by its path in the repository. */
export function readRules(path: string): Rule[] {
  const text = readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
  const documents = parseAllDocuments(text).map((document) => document.toJS() as { kind: string; rules?: Rule[] });
  return documents.flatMap(({ kind, rules = [] }) => (kind === "ClusterRole" ? rules : []));
}

/**
 * Requests to the API server that the rules do not allow, as `verb group/resource`, each once. Every client may use
 * discovery.
 */
export function beyondRights(records: readonly RequestRecord[], rules: readonly Rule[]): string[] {
  const asked = records.map(accessOf).filter((access) => access !== undefined);
  const denied = asked.filter(
    ({ verb, group, resource }) =>
      !rules.some(
        ({ apiGroups, resources, verbs }) =>
          apiGroups.includes(group) && resources.includes(resource) && verbs.includes(verb),
      ),
  );
  return [...new Set(denied.map(({ verb, group, resource }) => `${verb} ${group}/${resource}`))];
}

const VERBS: Record<string, string> = { POST: "create", PATCH: "patch", PUT: "update", DELETE: "delete" };

function accessOf({
  method,
  path,
  watch,
}: RequestRecord): { verb: string; group: string; resource: string } | undefined {
  const [place = ""] = path.split("?");
  const match =
    /^\/(?:api\/v1|apis\/([^/]+)\/[^/]+)(?:\/namespaces\/[^/]+)?\/([^/]+)(?:\/([^/]+))?(?:\/([^/]+))?$/u.exec(place);
  if (match === null) return undefined;
  const [, group = "", plural = "", name, subresource] = match;
  const verb = watch ? "watch" : method === "GET" ? (name === undefined ? "list" : "get") : (VERBS[method] ?? method);
  return { verb, group, resource: subresource === undefined ? plural : `${plural}/${subresource}` };
}
