import { readdir, readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

/** The CRDs that ironfence ships, as YAML texts. */
export async function readCrds(): Promise<string[]> {
  const folder = fileURLToPath(new URL("../../deploy/crds/", import.meta.url));
  const files = (await readdir(folder)).filter((file) => file.endsWith(".yaml") && file !== "kustomization.yaml");
  return Promise.all(files.sort().map((file) => readFile(folder + file, "utf8")));
}
