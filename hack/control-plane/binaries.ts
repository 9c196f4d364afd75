import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdir, readdir, rename, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { findGo, goBuild, moduleSource } from "../lib/go.ts";

// Finds the programs of a real control plane: in a folder that the user names, in a cache folder, or by building them
// with Go from its module proxy.

/** Selects the version of Kubernetes, such as `1.36`. The default is the newest one in `kubernetes/`. */
export const KUBERNETES_VARIABLE = "IRONFENCE_E2E_KUBERNETES";

const PROGRAMS = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"] as const;
export type Program = (typeof PROGRAMS)[number];

/** The stages that kwok ships. They are in its module and are copied next to its binary when that is built. */
const KWOK_STAGES = ["node/fast", "node/heartbeat-with-lease", "pod/fast"] as const;
const STAGES_FILE = "kwok-stages.yaml";

/** The paths of the programs of a control plane. */
export interface Binaries {
  path(program: Program): string;
  /** A kwok configuration with the stages of nodes that heartbeat and pods that run. */
  kwokStages: string;
}

/** Prints what the caller waits for. */
export type Progress = (line: string) => void;

/** A version of Kubernetes that `kubernetes/` builds. */
export interface KubernetesVersion {
  /** Such as `1.36`: what a user chooses, and with a `v` the name of the folder. */
  minor: string;
  /** Such as `v1.36.3`, as its go.mod pins it. */
  version: string;
}

/** Every version of Kubernetes that `kubernetes/` builds, the oldest first. */
export function kubernetesVersions(): KubernetesVersion[] {
  return readdirSync(moduleFolder("kubernetes"))
    .map((folder) => {
      const goMod = readFileSync(join(moduleFolder(`kubernetes/${folder}`), "go.mod"), "utf8");
      const version = /^\tk8s\.io\/kubernetes (v\S+)/m.exec(goMod)?.[1];
      if (version === undefined)
        throw new Error(`hack/control-plane/kubernetes/${folder}/go.mod pins no k8s.io/kubernetes`);
      return { minor: folder.slice(1), version };
    })
    .toSorted((a, b) => Number(a.minor.split(".")[1]) - Number(b.minor.split(".")[1]));
}

/**
 * The version that was chosen.
 *
 * @param chosen such as `1.30`; the newest version if undefined.
 * @throws Error for a version that `kubernetes/` does not build.
 */
export function chooseKubernetes(chosen: string | undefined): KubernetesVersion {
  const versions = kubernetesVersions();
  const found = chosen === undefined ? versions.at(-1) : versions.find(({ minor }) => minor === chosen);
  if (found !== undefined) return found;
  throw new Error(`there is no Kubernetes ${chosen}: choose one of ${versions.map(({ minor }) => minor).join(", ")}`);
}

/**
 * `${XDG_CACHE_HOME:-~/.cache}/ironfence/<name>`, the folder for files that are expensive to build and are kept between
 * runs.
 */
export function cacheFolder(name: string): string {
  return join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "ironfence", name);
}

/**
 * Finds every program in `$KUBEBUILDER_ASSETS` or the cache folder, and builds the missing ones with Go. If
 * `$IRONFENCE_E2E_KUBERNETES` selects a version, `$KUBEBUILDER_ASSETS` is not used.
 *
 * @throws Error with both ways to get the programs, if one is missing and Go is not installed.
 */
export async function prepareBinaries(progress: Progress, signal: AbortSignal): Promise<Binaries> {
  const chosen = process.env[KUBERNETES_VARIABLE];
  const kubernetes = chooseKubernetes(chosen);
  const assets = chosen === undefined ? process.env.KUBEBUILDER_ASSETS : undefined;
  // etcd and kwok are the same for every version of Kubernetes.
  const caches = {
    own: join(cacheFolder("control-plane"), kubernetes.version),
    shared: join(cacheFolder("control-plane"), chooseKubernetes(undefined).version),
  };
  const cacheOf = (file: string): string => (file.startsWith("kube-") ? caches.own : caches.shared);
  const find = (file: string): string | undefined =>
    [...(assets ? [assets] : []), cacheOf(file)].map((folder) => join(folder, file)).find((path) => existsSync(path));
  const missing = (): string[] => [...PROGRAMS, STAGES_FILE].filter((file) => find(file) === undefined);

  if (missing().length > 0) {
    const go = findGo();
    if (go === undefined) throw new Error(noGoMessage(missing(), [...(assets ? [assets] : []), caches.own]));
    for (const cache of Object.values(caches)) await mkdir(cache, { recursive: true });
    await build(go, { kubernetes, cacheOf, missing: new Set(missing()) }, progress, signal);
  }
  const pathOf = (file: string): string => {
    const path = find(file);
    if (path === undefined) throw new Error(`${file} is not in ${cacheOf(file)} after the build`);
    return path;
  };
  return { path: pathOf, kwokStages: pathOf(STAGES_FILE) };
}

async function build(
  go: string,
  what: { kubernetes: KubernetesVersion; cacheOf: (file: string) => string; missing: ReadonlySet<string> },
  progress: Progress,
  signal: AbortSignal,
): Promise<void> {
  const { kubernetes, cacheOf, missing } = what;
  const startedMs = performance.now();
  progress(
    `building ${[...missing].join(", ")} of ${kubernetes.version} with ${go} (all: about 7 min on two cores, once)`,
  );
  const linked = linkedVersion(kubernetes);
  for (const [program, { module, path }] of Object.entries(packagesOf(kubernetes))) {
    if (!missing.has(program)) continue;
    progress(`go build ${path} …`);
    const buildMs = performance.now();
    const output = join(cacheOf(program), program);
    await goBuild(go, { folder: moduleFolder(module), packagePath: path, output, ldflags: `-s -w ${linked}` }, signal);
    progress(`go build ${path}: ${((performance.now() - buildMs) / 1000).toFixed(0)} s`);
  }
  if (missing.has(STAGES_FILE)) await writeStages(go, join(cacheOf(STAGES_FILE), STAGES_FILE), signal);
  progress(`built in ${((performance.now() - startedMs) / 1000).toFixed(0)} s`);
}

function packagesOf({ minor }: KubernetesVersion): Record<Program, { module: string; path: string }> {
  const kubernetes = (name: string): { module: string; path: string } => ({
    module: `kubernetes/v${minor}`,
    path: `k8s.io/kubernetes/cmd/${name}`,
  });
  return {
    etcd: { module: `kubernetes/v${chooseKubernetes(undefined).minor}`, path: "go.etcd.io/etcd/server/v3" },
    "kube-apiserver": kubernetes("kube-apiserver"),
    "kube-controller-manager": kubernetes("kube-controller-manager"),
    "kube-scheduler": kubernetes("kube-scheduler"),
    kwok: { module: "kwok", path: "sigs.k8s.io/kwok/cmd/kwok" },
  };
}

/**
 * Linker flags as in the release scripts of Kubernetes. Without the last two, `GET /version` of 1.30 lacks major and
 * minor.
 */
function linkedVersion({ minor, version }: KubernetesVersion): string {
  const [major, minorNumber] = minor.split(".");
  const values = { gitVersion: version, gitMajor: major, gitMinor: minorNumber };
  return Object.entries(values)
    .map(([name, value]) => `-X k8s.io/component-base/version.${name}=${value}`)
    .join(" ");
}

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
