import { randomUUID } from "node:crypto";
import { fileURLToPath } from "node:url";
import { startControlPlane } from "../control-plane/control-plane.ts";
import type { ControlPlane } from "../control-plane/control-plane.ts";
import { applyManifests } from "../lib/apply.ts";
import { freeLease } from "../lib/free-leases.ts";
import type { KubeApi } from "../lib/kube-api.ts";
import { runAttacher } from "./attacher.ts";
import { FakeHost } from "./fake-host.ts";
import { startSushyEmulator } from "./sushy-emulator.ts";
import type { SushyEmulator } from "./sushy-emulator.ts";
import { eventually } from "./eventually.ts";

/** The agent's namespace and ServiceAccount in deploy/kustomize. */
export const NAMESPACE = "ironfence-system";
export const SERVICE_ACCOUNT = "ironfence";

const NODES_READY_TIMEOUT_MS = 60_000;

/** The path of a file of this repository. */
export const repositoryPath = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));

export interface WorldOptions {
  /** The nodes, each with one host. Health checks may select nodes by the labels. */
  nodes: readonly { name: string; labels?: Readonly<Record<string, string>> }[];
  /** How long the BMC takes for a power change. */
  powerDelayMs: number;
  /** From power-on to a running kubelet. */
  bootMs: number;
  /** Silence after which a node is Ready=Unknown. */
  nodeMonitorGracePeriodMs: number;
  /** Whether deploy/kustomize is applied at the start. */
  install: boolean;
}

export const DEFAULT_WORLD = {
  powerDelayMs: 2_000,
  bootMs: 1_000,
  nodeMonitorGracePeriodMs: 8_000,
  install: true,
} satisfies Partial<WorldOptions>;

/** A cluster on a real control plane, with fake hosts behind BMCs of the sushy-emulator. */
export interface World {
  readonly controlPlane: ControlPlane;
  readonly api: KubeApi;
  readonly bmc: SushyEmulator;
  host(name: string): FakeHost;
  /** Applies deploy/kustomize, as `install` does. */
  install(): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Applies the manifests of README.md and docs/tutorial/real-cluster.md. The Deployment has no replicas, because the
 * agent runs outside of the cluster.
 */
export async function install(api: KubeApi): Promise<void> {
  await applyManifests(api, repositoryPath("deploy/node-health-check"));
  await applyManifests(api, repositoryPath("deploy/kustomize"));
  await api.create(`/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases`, freeLease(NAMESPACE));
  await api.mergePatch(`/apis/apps/v1/namespaces/${NAMESPACE}/deployments/ironfence`, { spec: { replicas: 0 } });
}

/** Starts a world and waits until every node is Ready. */
export async function startWorld(options: WorldOptions, signal: AbortSignal): Promise<World> {
  const progress = (line: string): void => void process.stderr.write(`e2e: ${line}\n`);
  const living = new AbortController();
  const background: Promise<unknown>[] = [];
  const closers: (() => Promise<void>)[] = [];
  const stop = async (): Promise<void> => {
    living.abort();
    for (const close of closers.reverse()) await close();
    await Promise.allSettled(background);
  };
  try {
    const controlPlane = await startControlPlane({ ...options, progress }, signal);
    closers.push(() => controlPlane.stop());
    const systems = options.nodes.map(({ name }) => ({ name, uuid: randomUUID() }));
    const bmc = await startSushyEmulator({ systems, powerDelayMs: options.powerDelayMs, progress }, signal);
    closers.push(() => bmc.stop());
    const hosts = new Map(
      systems.map(({ name, uuid }) => [name, new FakeHost(name, uuid, { ...options, controlPlane, bmc })]),
    );
    const { api } = controlPlane;
    if (options.install) await install(api);
    for (const { name, labels } of options.nodes) await hosts.get(name)?.join(labels ?? {});
    background.push(runAttacher(api, living.signal));
    for (const host of hosts.values()) {
      const onError = (error: unknown): void => progress(`host ${host.name}: ${String(error)}`);
      background.push(host.live(onError, living.signal));
    }
    await Promise.race([
      eventually("every node is Ready", NODES_READY_TIMEOUT_MS, () => allReady(api, options.nodes.length)),
      controlPlane.failed,
      bmc.failed,
    ]);
    return {
      controlPlane,
      api,
      bmc,
      host: (name) => {
        const host = hosts.get(name);
        if (host === undefined) throw new Error(`no host ${name}`);
        return host;
      },
      install: () => install(api),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

interface NodeStatus {
  spec: { taints?: unknown[] };
  status: { conditions?: { type: string; status: string }[] };
}

/** Whether the cluster has `count` nodes, all of them Ready and without taints. */
export async function allReady(api: KubeApi, count: number): Promise<boolean> {
  const nodes = await api.list<NodeStatus>("/api/v1/nodes");
  const ready = nodes.filter(
    (node) =>
      (node.spec.taints ?? []).length === 0 &&
      node.status.conditions?.some((condition) => condition.type === "Ready" && condition.status === "True") === true,
  );
  return ready.length === count;
}
