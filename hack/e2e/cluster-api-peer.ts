import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readFile, readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { cacheFolder } from "../control-plane/binaries.ts";
import type { Progress } from "../control-plane/binaries.ts";
import type { ControlPlane } from "../control-plane/control-plane.ts";
import { applyManifests, applyObject } from "../lib/apply.ts";
import { findGo, goBuild, moduleSource } from "../lib/go.ts";
import { startChild, tail } from "../lib/processes.ts";
import { repositoryPath } from "./world.ts";

// Runs the controllers of Cluster API, with the CRDs and permissions of the same release.

const SOURCE = repositoryPath("hack/peers/cluster-api");
const MODULE = "sigs.k8s.io/cluster-api";
const PROGRAM = "controllers";
/** Names from the manifests of Cluster API. */
const NAMESPACE = "capi-system";
const SERVICE_ACCOUNT = "capi-manager";

/** The paths of what was built and copied from the module. */
export interface ClusterApiPeer {
  /** The program of hack/peers/cluster-api. */
  program: string;
  /** The folder of upstream's CRDs, one file each. */
  crds: string;
  /** The folder of upstream's ClusterRoles, without their bindings. */
  roles: string;
}

/**
 * Builds the controllers into the cache folder, once for each content of hack/peers/cluster-api, and puts upstream's
 * CRDs and roles next to them.
 *
 * @throws Error if they are not in the cache and Go is not installed.
 */
export async function prepareClusterApiPeer(progress: Progress, signal: AbortSignal): Promise<ClusterApiPeer> {
  const hash = createHash("sha256");
  for (const file of ["main.go", "go.mod", "go.sum"]) hash.update(await readFile(join(SOURCE, file)));
  const folder = join(cacheFolder("cluster-api"), hash.digest("hex").slice(0, 12));
  const peer = { program: join(folder, PROGRAM), crds: join(folder, "crds"), roles: join(folder, "roles") };
  if (existsSync(folder)) return peer;
  const go = findGo();
  if (go === undefined) {
    throw new Error(`Cluster API's controllers are not in ${folder}: install Go 1.26 or newer (https://go.dev/dl/)`);
  }
  progress(`go build ${MODULE} …`);
  const startedMs = performance.now();
  // Builds into a temporary folder, so that the next run does not use the result of an interrupted build.
  const partial = `${folder}.${process.pid}`;
  try {
    await mkdir(partial, { recursive: true });
    const build = { folder: SOURCE, packagePath: ".", output: join(partial, PROGRAM), ldflags: "-s -w" };
    await goBuild(go, build, signal);
    const config = join(await moduleSource(go, SOURCE, MODULE, signal), "core/config");
    const crds = (await readdir(join(config, "crd/bases"))).filter((name) => name.startsWith("cluster.x-k8s.io_"));
    await copyFiles(crds, join(config, "crd/bases"), join(partial, "crds"));
    await copyFiles(["role.yaml", "aggregated_role.yaml"], join(config, "rbac"), join(partial, "roles"));
    await rename(partial, folder);
  } finally {
    await rm(partial, { recursive: true, force: true });
  }
  progress(`go build ${MODULE}: ${((performance.now() - startedMs) / 1000).toFixed(0)} s`);
  return peer;
}

/** Copies file by file: Go's module cache is read-only, and copies of its folders would be as well. */
async function copyFiles(names: readonly string[], from: string, to: string): Promise<void> {
  await mkdir(to);
  for (const name of names) await writeFile(join(to, name), await readFile(join(from, name)));
}

/** The running controllers of Cluster API. */
export interface RunningClusterApi {
  stop(): Promise<void>;
  /** The last lines of their log. */
  log(): string;
}

/**
 * Starts the controllers with the permissions that Cluster API's manifests grant and those that other projects add by
 * the aggregation label.
 */
export async function startClusterApi(peer: ClusterApiPeer, management: ControlPlane): Promise<RunningClusterApi> {
  const { api } = management;
  await applyObject(api, { apiVersion: "v1", kind: "Namespace", metadata: { name: NAMESPACE } });
  await applyObject(api, {
    apiVersion: "v1",
    kind: "ServiceAccount",
    metadata: { namespace: NAMESPACE, name: SERVICE_ACCOUNT },
  });
  const roles = await applyManifests(api, peer.roles, (role) =>
    "aggregationRule" in role ? role : { ...role, metadata: { ...role.metadata, labels: AGGREGATED } },
  );
  for (const { metadata } of roles.filter((role) => "aggregationRule" in role)) {
    await applyObject(api, {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRoleBinding",
      metadata: { name: metadata.name },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: metadata.name },
      subjects: [{ kind: "ServiceAccount", namespace: NAMESPACE, name: SERVICE_ACCOUNT }],
    });
  }
  const kubeconfig = await management.serviceAccountKubeconfig(NAMESPACE, SERVICE_ACCOUNT);
  const logFile = join(process.env["IRONFENCE_E2E_LOGS"] ?? management.folder, "cluster-api.log");
  const child = startChild("cluster-api", peer.program, [`--kubeconfig=${kubeconfig}`], { logFile });
  return { stop: () => child.stop(), log: () => tail(logFile) };
}

/** Upstream's manifests put this label on its own role, and providers put it on theirs. */
const AGGREGATED = { "cluster.x-k8s.io/aggregate-to-manager": "true" };
