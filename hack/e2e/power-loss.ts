import assert from "node:assert/strict";
import type { FencingTarget } from "../../src/api/ironfence/fencing-target.ts";
import type { Lease } from "../../src/api/kubernetes/core.ts";
import { systemRandom } from "../../src/runtime/system.ts";
import { runAttacher } from "./attacher.ts";
import type { NodeView, Seen } from "./chronicle.ts";
import { followChanges, readyOf } from "./chronicle.ts";
import { startRackWorld } from "./rack-world.ts";
import type { RackWorld } from "./rack-world.ts";
import { REMEDIATIONS, TARGETS, REMEDIATION_TIMEOUT_MS, explain } from "./scenario.ts";
import type { Database, PodView } from "./workload.ts";

// Measures what ironfence releases before Kubernetes notices a power loss, and when. The control plane runs with the
// default flags of Kubernetes.

/** Default of `--node-monitor-grace-period` in Kubernetes 1.36. */
const GRACE_MS = 50_000;
/** A kubelet with `nodeLeaseDurationSeconds: 40` renews its lease every 10 s. */
const RENEWAL_MS = 10_000;
export const DURATION = "300s";
export const HEALTH_CHECK_SPEC = {
  minHealthy: 0,
  unhealthyConditions: [{ type: "Ready", status: "Unknown", duration: DURATION }],
};

/** The fields of a remediation that these tests read. */
export interface EarlyRemediation {
  metadata: { name: string; creationTimestamp: string };
  spec: { powerOnNotBefore?: string };
}
interface VolumeAttachment {
  metadata: { name: string };
  spec: { nodeName: string };
}

/** A rack with default flags. It keeps every change of nodes, pods and volume attachments. */
export interface PowerLossWorld extends RackWorld {
  readonly nodes: Seen<NodeView>[];
  readonly pods: Seen<PodView>[];
  readonly attachments: Seen<VolumeAttachment>[];
}

/**
 * Starts hosts that lose power immediately, and an agent. Returns when the agent has read each host On in its present
 * boot and has seen two renewals of its lease.
 *
 * @param isRead whether the agent reads this host. It does not read hosts whose health check forbids an early release.
 */
export async function startPowerLossWorld(
  names: readonly string[],
  configure: (world: RackWorld) => Promise<void>,
  isRead: (name: string) => boolean = () => true,
): Promise<PowerLossWorld> {
  const hosts = names.map((name) => ({
    name,
    powerOffDelayMs: 0,
    bootMs: 2_000,
    labels: { "example.com/host": name },
  }));
  const world = await startRackWorld(hosts, {
    nodeMonitorGracePeriodMs: GRACE_MS,
    kubelets: { random: systemRandom },
  });
  const closed = new AbortController();
  const follow = <T>(path: string): Seen<T>[] => followChanges<T>(world.api, path, closed.signal);
  const attacher = runAttacher(world.api, closed.signal);
  const stop = async (): Promise<void> => {
    closed.abort();
    await attacher;
    await world.stop();
  };
  try {
    await configure(world);
    await world.startAgent([]);
    const kept = {
      ...world,
      nodes: follow<NodeView>("/api/v1/nodes"),
      pods: follow<PodView>("/api/v1/pods"),
      attachments: follow<VolumeAttachment>("/apis/storage.k8s.io/v1/volumeattachments"),
      stop,
    };
    for (const name of names.filter(isRead)) await readOn(kept, name);
    // An early release needs an agent that has seen two renewals of the lease.
    for (let renewal = 0; renewal < 2; renewal += 1)
      await Promise.all(names.map((name) => awaitRenewal(kept, name, 0)));
    return kept;
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Waits until the agent has read the host of a node On in its present boot. */
export async function readOn(world: RackWorld, name: string): Promise<void> {
  await explain(
    { world, agents: world.agents },
    `${name} was read On in its boot`,
    REMEDIATION_TIMEOUT_MS,
    async () => {
      const target = await world.api.get<FencingTarget>(`${TARGETS}/${name}`);
      return target.status?.onInBoot === world.rack.host(name).bootID;
    },
  );
}

/** Waits until the lease of a node is renewed, and then for `phase` of the time until its next renewal. */
export async function awaitRenewal(world: RackWorld, name: string, phase: number): Promise<void> {
  const path = `/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/${name}`;
  const renewedAt = async (): Promise<string> => (await world.api.get<Lease>(path)).spec.renewTime ?? "";
  const before = await renewedAt();
  const scenario = { world, agents: world.agents };
  await explain(scenario, `${name} renews its lease`, 2 * RENEWAL_MS, async () => (await renewedAt()) !== before);
  await new Promise((resolve) => setTimeout(resolve, phase * RENEWAL_MS));
}

/** Cuts the power of a host but not that of its BMC. @returns the time, in milliseconds since the epoch. */
export function losePower({ rack }: RackWorld, name: string): number {
  rack.host(name).order("ForceOff");
  return Date.now();
}

/** Times since the loss of power, in milliseconds. */
export interface PowerLossTimes {
  podGone: number;
  /** The volume is no longer attached to the node. */
  detached: number;
  /** The replacement of the pod runs with its volume. */
  replaced: number;
}

/** Waits until the pod of a database runs on another node while its former node is still Ready. */
export async function measureRelease(
  world: PowerLossWorld,
  database: Database,
  { pod, node, lostMs }: { pod: PodView; node: string; lostMs: number },
): Promise<PowerLossTimes> {
  await explain(
    { world, agents: world.agents },
    "the successor runs with its volume",
    REMEDIATION_TIMEOUT_MS,
    async () => {
      const successor = await database.successorNode(pod.metadata.uid);
      return successor !== undefined && successor !== node && !(await database.attachedNodes()).includes(node);
    },
  );
  const replacedMs = Date.now();
  const ended = world.pods.find(({ type, object }) => type === "DELETED" && object.metadata.uid === pod.metadata.uid);
  const detached = world.attachments.findLast(
    ({ type, object, atMs }) => type === "DELETED" && object.spec.nodeName === node && atMs > lostMs,
  );
  assert.ok(ended && detached, "the ends of the pod and of its attachment were seen");
  const versions = world.nodes.filter(({ object, atMs }) => object.metadata.name === node && atMs > lostMs);
  const until = versions.filter(({ atMs }) => atMs <= detached.atMs);
  assert.ok(until.length > 0, "the node has changed");
  assert.deepEqual(
    [...new Set(until.map(({ object }) => readyOf(object)))],
    ["True"],
    "its condition Ready stays True",
  );
  return { podGone: ended.atMs - lostMs, detached: detached.atMs - lostMs, replaced: replacedMs - lostMs };
}

/** Powers a host on, and waits until its node is as before and its remediation is gone. */
export async function returnHost(world: PowerLossWorld, name: string): Promise<void> {
  world.rack.host(name).order("On");
  await explain({ world, agents: world.agents }, `${name} is back`, REMEDIATION_TIMEOUT_MS, async () => {
    const node = await world.api.get<NodeView & { status: { nodeInfo?: { bootID?: string } } }>(
      `/api/v1/nodes/${name}`,
    );
    const isBooted = node.status.nodeInfo?.bootID === world.rack.host(name).bootID;
    const remediations = await world.api.list(REMEDIATIONS);
    return isBooted && readyOf(node) === "True" && (node.spec.taints ?? []).length === 0 && remediations.length === 0;
  });
}

/** The orders that the agent has sent to a host since the loss of power at `lostMs`. */
export function ordersSince({ rack }: RackWorld, name: string, lostMs: number): string[] {
  return rack
    .host(name)
    .orders.filter(({ atMs }) => atMs > lostMs)
    .map(({ type }) => type);
}
