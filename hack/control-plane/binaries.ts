import { existsSync, readFileSync } from "node:fs";
import { mkdir, readdir, rename, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { findGo, goBuild, moduleSource } from "../lib/go.ts";

// Where the programs of a real control plane come from: a folder that the user names, a cache folder, or Go and its
// module proxy.

/** What the modules in `kubernetes/` and `kwok/` build. */
const KUBERNETES_VERSION = "v1.36.3";

const PROGRAMS = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"] as const;
export type Program = (typeof PROGRAMS)[number];

/** kwok's own stages; they are in its module and are copied next to its binary when that is built. */
const KWOK_STAGES = ["node/fast", "node/heartbeat-with-lease", "pod/fast"] as const;
const STAGES_FILE = "kwok-stages.yaml";

/** The programs of a control plane, found. */
export interface Binaries {
  path(program: Program): string;
  /** A kwok configuration with the stages of nodes that heartbeat and pods that run. */
  kwokStages: string;
}

/** Prints what is being waited for. */
export type Progress = (line: string) => void;

/** `${XDG_CACHE_HOME:-~/.cache}/ironfence/<name>`, where things that take long to make are kept between runs. */
export function cacheFolder(name: string): string {
  return join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "ironfence", name);
}

/**
 * Finds every program in `$KUBEBUILDER_ASSETS` or the cache folder, and builds with Go those that neither has.
 *
 * @throws Error that names both ways when a program is missing and there is no Go.
 */
export async function prepareBinaries(progress: Progress, signal: AbortSignal): Promise<Binaries> {
  const cache = join(cacheFolder("control-plane"), KUBERNETES_VERSION);
  const assets = process.env.KUBEBUILDER_ASSETS;
  const folders = [...(assets ? [assets] : []), cache];
  const find = (file: string): string | undefined =>
    folders.map((folder) => join(folder, file)).find((path) => existsSync(path));
  const missing = (): string[] => [...PROGRAMS, STAGES_FILE].filter((file) => find(file) === undefined);

  if (missing().length > 0) {
    const go = findGo();
    if (go === undefined) throw new Error(noGoMessage(missing(), folders));
    await mkdir(cache, { recursive: true });
    await build(go, cache, new Set(missing()), progress, signal);
  }
  const pathOf = (file: string): string => {
    const path = find(file);
    if (path === undefined) throw new Error(`${file} is in none of ${folders.join(", ")} after the build`);
    return path;
  };
  return { path: pathOf, kwokStages: pathOf(STAGES_FILE) };
}

async function build(
  go: string,
  cache: string,
  missing: ReadonlySet<string>,
  progress: Progress,
  signal: AbortSignal,
): Promise<void> {
  const startedMs = performance.now();
  progress(`building ${[...missing].join(", ")} with ${go} into ${cache} (all: about 7 min on two cores, once)`);
  const version = `-X k8s.io/component-base/version.gitVersion=${KUBERNETES_VERSION}`;
  for (const [program, { module, path }] of Object.entries(PACKAGES)) {
    if (!missing.has(program)) continue;
    progress(`go build ${path} …`);
    const buildMs = performance.now();
    const output = join(cache, program);
    await goBuild(go, { folder: moduleFolder(module), packagePath: path, output, ldflags: `-s -w ${version}` }, signal);
    progress(`go build ${path}: ${((performance.now() - buildMs) / 1000).toFixed(0)} s`);
  }
  if (missing.has(STAGES_FILE)) await writeStages(go, join(cache, STAGES_FILE), signal);
  progress(`built in ${((performance.now() - startedMs) / 1000).toFixed(0)} s`);
}

const PACKAGES: Record<Program, { module: string; path: string }> = {
  etcd: { module: "kubernetes", path: "go.etcd.io/etcd/server/v3" },
  "kube-apiserver": { module: "kubernetes", path: "k8s.io/kubernetes/cmd/kube-apiserver" },
  "kube-controller-manager": { module: "kubernetes", path: "k8s.io/kubernetes/cmd/kube-controller-manager" },
  "kube-scheduler": { module: "kubernetes", path: "k8s.io/kubernetes/cmd/kube-scheduler" },
  kwok: { module: "kwok", path: "sigs.k8s.io/kwok/cmd/kwok" },
};

const moduleFolder = (module: string): string => fileURLToPath(new URL(module, import.meta.url));

async function writeStages(go: string, output: string, signal: AbortSignal): Promise<void> {
  const source = await moduleSource(go, moduleFolder("kwok"), "sigs.k8s.io/kwok", signal);
  const documents: string[] = [];
  for (const stage of KWOK_STAGES) {
    const folder = join(source, "kustomize", "stage", stage);
    const files = (await readdir(folder)).filter((name) => name.endsWith(".yaml") && name !== "kustomization.yaml");
    for (const file of files.sort()) documents.push(readFileSync(join(folder, file), "utf8").trim());
  }
  await writeFile(`${output}.part`, `${documents.join("\n---\n")}\n`);
  await rename(`${output}.part`, output);
}

function noGoMessage(missing: readonly string[], folders: readonly string[]): string {
  return [
    `The real control plane needs ${missing.join(", ")}, found in none of: ${folders.join(", ")}.`,
    "Either install Go 1.26 or newer (https://go.dev/dl/), and they are built from their modules in about 7 minutes,",
    `or set KUBEBUILDER_ASSETS to a folder that has them (${STAGES_FILE}: kwok's stages ${KWOK_STAGES.join(", ")} in one file).`,
  ].join("\n");
}
