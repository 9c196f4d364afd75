import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { cacheFolder } from "../control-plane/binaries.ts";
import type { Progress } from "../control-plane/binaries.ts";
import { findGo, goBuild } from "../lib/go.ts";
import { repositoryPath } from "./world.ts";

// Helm, kubeconform and actionlint, built from the modules that hack/peers/chart pins.

const SOURCE = repositoryPath("hack/peers/chart");
const PACKAGES = {
  helm: "helm.sh/helm/v3/cmd/helm",
  kubeconform: "github.com/yannh/kubeconform/cmd/kubeconform",
  actionlint: "github.com/rhysd/actionlint/cmd/actionlint",
} as const;
/** The releases of Helm set this too: the version of Kubernetes for which Helm renders without a cluster. */
const LINKED = ["chartutil", "lint/rules"]
  .flatMap((name) => [
    `-X helm.sh/helm/v3/pkg/${name}.k8sVersionMajor=1`,
    `-X helm.sh/helm/v3/pkg/${name}.k8sVersionMinor=36`,
  ])
  .join(" ");

/** The path of each program. */
export type ChartTools = Readonly<Record<keyof typeof PACKAGES, string>>;

/**
 * Builds the programs into the cache folder, once for each content of hack/peers/chart.
 *
 * @throws Error if a program is missing and there is no Go.
 */
export async function prepareChartTools(progress: Progress, signal: AbortSignal): Promise<ChartTools> {
  const hash = createHash("sha256").update(LINKED);
  for (const file of ["go.mod", "go.sum"]) hash.update(await readFile(join(SOURCE, file)));
  const folder = join(cacheFolder("chart-tools"), hash.digest("hex").slice(0, 12));
  await mkdir(folder, { recursive: true });
  for (const [program, packagePath] of Object.entries(PACKAGES)) {
    const output = join(folder, program);
    if (existsSync(output)) continue;
    const go = findGo();
    if (go === undefined)
      throw new Error(`${program} is not in ${folder}: install Go 1.26 or newer (https://go.dev/dl/)`);
    progress(`go build ${packagePath} …`);
    const startedMs = performance.now();
    await goBuild(go, { folder: SOURCE, packagePath, output, ldflags: `-s -w ${LINKED}` }, signal);
    progress(`go build ${packagePath}: ${((performance.now() - startedMs) / 1000).toFixed(0)} s`);
  }
  const path = (program: string): string => join(folder, program);
  return { helm: path("helm"), kubeconform: path("kubeconform"), actionlint: path("actionlint") };
}
