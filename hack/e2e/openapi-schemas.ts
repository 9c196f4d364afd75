import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { KubeApi } from "../lib/kube-api.ts";

// Writes JSON schemas for kubeconform from the OpenAPI document of an API server, which includes CRDs.

type Schema = { [keyword: string]: unknown };

interface GroupVersionKind {
  group: string;
  version: string;
  kind: string;
}

/** The file name pattern of `writeSchemas`, in the notation of kubeconform. */
export const SCHEMA_LOCATION = "{{.ResourceKind}}{{.KindSuffix}}.json";

/**
 * Writes a schema for each of the kinds, in every version that the API server serves. The schemas reject unknown
 * fields.
 *
 * @returns the kinds that the API server does not serve.
 */
export async function writeSchemas(api: KubeApi, folder: string, kinds: ReadonlySet<string>): Promise<Set<string>> {
  await mkdir(folder, { recursive: true });
  // The API server sends this document as text/plain, so it may arrive as a string.
  const index = await api.get<string | object>("/openapi/v3");
  const { paths } = (typeof index === "string" ? JSON.parse(index) : index) as { paths: object };
  const missing = new Set(kinds);
  for (const path of Object.keys(paths)) {
    if (!/^apis?\/.*v\d/.test(path)) continue;
    const { components } = await api.get<{ components?: { schemas?: Record<string, Schema> } }>(`/openapi/v3/${path}`);
    const schemas = components?.schemas ?? {};
    const isNeeded = Object.values(schemas).some((schema) => kindsOf(schema).some(({ kind }) => kinds.has(kind)));
    if (!isNeeded) continue;
    const definitions = Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, strict(schema)]));
    for (const [name, schema] of Object.entries(schemas)) {
      for (const { group, version, kind } of kindsOf(schema)) {
        if (!kinds.has(kind)) continue;
        missing.delete(kind);
        const [prefix = ""] = group.split(".");
        const file = [kind, ...(prefix === "" ? [] : [prefix]), version].join("-").toLowerCase();
        const needed = closure(name, definitions);
        await writeFile(
          join(folder, `${file}.json`),
          JSON.stringify({ ...(definitions[name] as Schema), definitions: needed }),
        );
      }
    }
  }
  return missing;
}

function kindsOf(schema: Schema): GroupVersionKind[] {
  return (schema["x-kubernetes-group-version-kind"] ?? []) as GroupVersionKind[];
}

/** All definitions that a schema refers to, directly or through others. */
function closure(name: string, definitions: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const found: Record<string, unknown> = {};
  const open = [name];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (next in found) continue;
    found[next] = definitions[next];
    for (const [, reference = ""] of JSON.stringify(definitions[next]).matchAll(/"#\/definitions\/([^"]+)"/g))
      open.push(reference);
  }
  return found;
}

/** Makes a schema reject unknown fields, and changes its references to definitions in the same file. */
function strict(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(strict);
  if (typeof node !== "object" || node === null) return node;
  const schema = Object.fromEntries(
    Object.entries(node as Schema).map(([keyword, value]) => [
      keyword,
      keyword === "$ref" && typeof value === "string"
        ? value.replace("#/components/schemas/", "#/definitions/")
        : strict(value),
    ]),
  );
  const isClosed =
    "properties" in schema &&
    typeof schema["properties"] === "object" &&
    schema["type"] === "object" &&
    !("additionalProperties" in schema) &&
    schema["x-kubernetes-preserve-unknown-fields"] !== true;
  return isClosed ? { ...schema, additionalProperties: false } : schema;
}
