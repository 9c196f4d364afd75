import { readFileSync } from "node:fs";
import { parse } from "yaml";
import type { Manifest } from "../../hack/lib/apply.ts";

/** The objects that a kustomization deletes from what it includes. */
export function deletions(folder: string): Manifest[] {
  const text = readFileSync(new URL(`../../${folder}/kustomization.yaml`, import.meta.url), "utf8");
  const { patches } = parse(text) as { patches: { patch?: string }[] };
  const inline = patches.flatMap(({ patch }) => (patch === undefined ? [] : [parse(patch) as Manifest]));
  return inline.filter((manifest) => manifest["$patch"] === "delete");
}
