import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import type { Manifest } from "../lib/apply.ts";
import { run } from "../lib/run.ts";
import type { RunOptions } from "../lib/run.ts";

const HELM_TIMEOUT_MS = 60_000;

/** How `helm template` renders the chart. */
export interface Rendering {
  helm: string;
  chart: string;
  namespace?: string;
}

/** Renders the chart with the real helm. @throws Error with the message of helm if values are wrong. */
export async function renderChart(
  { helm, chart, namespace = "ironfence-system" }: Rendering,
  values: object = {},
): Promise<Manifest[]> {
  return withHelmFolder(async (options, folder) => {
    const file = join(folder, "values.json");
    await writeFile(file, JSON.stringify(values));
    const args = ["template", "ironfence", chart, "--namespace", namespace, "--values", file];
    return manifestsIn(await run(helm, args, options));
  });
}

/** Runs helm with separate settings and a separate cache, so that it does not use those of the user. */
export async function withHelmFolder<T>(use: (options: RunOptions, folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), "ironfence-chart-"));
  try {
    const env = { HOME: folder, HELM_CACHE_HOME: folder, HELM_CONFIG_HOME: folder, HELM_DATA_HOME: folder };
    return await use({ env, timeoutMs: HELM_TIMEOUT_MS, signal: new AbortController().signal }, folder);
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** The objects in YAML text. Kubernetes reads YAML 1.1. @throws Error for YAML that cannot be read. */
export function manifestsIn(text: string): Manifest[] {
  return [...parseAllDocuments(text, { version: "1.1" })]
    .map((document) => {
      const [error] = document.errors;
      if (error !== undefined) throw error;
      return document.toJS() as Manifest | null;
    })
    .filter((manifest) => manifest !== null);
}
