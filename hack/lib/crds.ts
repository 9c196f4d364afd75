import { readdir, readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { parseAllDocuments, stringify } from "yaml";

/** The CRDs that ironfence ships, as YAML texts. */
export async function readCrds(): Promise<string[]> {
  const texts = await Promise.all(["../../deploy/crds/", "../../deploy/node-health-check/"].map(readFolder));
  return texts.flat().filter((text) => text.includes("kind: CustomResourceDefinition"));
}

/**
 * The CRDs of other projects that ironfence works with (hack/foreign-crds), as YAML texts. They contain only what it
 * uses.
 *
 * @param versions for kinds with several versions, the versions that are served; all by default. The newest one is
 * stored.
 */
export async function readForeignCrds(versions?: readonly string[]): Promise<string[]> {
  const texts = await readFolder("../foreign-crds/");
  return versions === undefined ? texts : texts.map((text) => withVersions(text, versions));
}

interface Definition {
  spec: { versions: { name: string; storage: boolean }[] };
}

function withVersions(text: string, wanted: readonly string[]): string {
  const definitions = parseAllDocuments(text).map((document) => document.toJS() as Definition);
  for (const { spec } of definitions) {
    const kept = spec.versions.filter(({ name }) => wanted.includes(name));
    if (kept.length === 0) continue;
    spec.versions = kept.map((version, index) => ({ ...version, storage: index === kept.length - 1 }));
  }
  return definitions.map((definition) => stringify(definition)).join("---\n");
}

async function readFolder(path: string): Promise<string[]> {
  const folder = fileURLToPath(new URL(path, import.meta.url));
  const files = (await readdir(folder)).filter((file) => file.endsWith(".yaml") && file !== "kustomization.yaml");
  return Promise.all(files.sort().map((file) => readFile(folder + file, "utf8")));
}
