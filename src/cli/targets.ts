import { NODES } from "../api/core-types.ts";
import type { ConfigMap, Node } from "../api/core.ts";
import { CONFIG_MAPS } from "../api/core-types.ts";
import type { FencingTarget } from "../api/fencing-target.ts";
import { FENCING_TARGETS } from "../api/fencing-target.ts";
import { STOP_SWITCH_NAME, stoppedBy } from "../api/stop-switch.ts";
import { openDevice } from "../bmc/open-device.ts";
import { isKubeError } from "../kube/errors.ts";
import type { KubeRuntime } from "../kube/runtime.ts";
import { outOfServiceOf, isReady } from "../remediator/machine/node-patches/marks.ts";
import { serverTimeMs } from "../kube/server-time.ts";
import type { FencingTargetDirectory } from "../remediator/hosts/fencing-target.ts";
import { createFencingTargetDirectory } from "../remediator/hosts/fencing-target.ts";
import { isLive } from "../remediator/hosts/target-store.ts";
import { Refusal } from "./failures.ts";
import { listedView } from "./listed.ts";

/** A FencingTarget as it is live, and what stands in its way. */
export interface TargetFacts {
  target: FencingTarget;
  directory: FencingTargetDirectory;
  /** Undefined where there is none, and where it is a node of another cluster, which is not looked at. */
  node: Node | undefined;
  /** Why no power order may be sent: ambiguous, in maintenance, owned by a remediation. */
  obstacles: string[];
  /** Why none is to be sent without a person's word. */
  paused: string | undefined;
}

/** Reads all that decides whether a target may be powered. @throws Refusal where there is no such target. */
export async function readTarget(
  runtime: KubeRuntime,
  namespace: string,
  choose: { targetName: string } | { nodeName: string },
  signal: AbortSignal,
): Promise<TargetFacts> {
  const { items } = await runtime.client.list<FencingTarget>(FENCING_TARGETS, { namespace }, signal);
  const directory = createFencingTargetDirectory(
    { runtime, targets: listedView(items), namespace, openDevice },
    signal,
  );
  const target = items.find(({ metadata, spec }) =>
    "targetName" in choose
      ? metadata.name === choose.targetName
      : spec.nodeName === choose.nodeName && spec.clusterRef === undefined,
  );
  if (target === undefined) {
    const wanted = "targetName" in choose ? choose.targetName : `for node ${choose.nodeName}`;
    throw new Refusal(`there is no FencingTarget ${wanted} in namespace ${namespace}`);
  }
  const [node, paused] = await Promise.all([
    // The namesake in this cluster is another node.
    target.spec.clusterRef === undefined ? readNode(runtime, target.spec.nodeName, signal) : undefined,
    readPause(runtime, namespace, signal),
  ]);
  return { target, directory, node, obstacles: await obstaclesOf(runtime, directory, target, signal), paused };
}

/** The node, if there is one. */
export async function readNode(runtime: KubeRuntime, name: string, signal: AbortSignal): Promise<Node | undefined> {
  return runtime.client.get<Node>(NODES, { name }, signal).catch(absent);
}

/** Why the stop switch holds power orders back; undefined where it does not. */
export async function readPause(
  runtime: KubeRuntime,
  namespace: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const key = { namespace, name: STOP_SWITCH_NAME };
  const present = await runtime.client.get<ConfigMap>(CONFIG_MAPS, key, signal).catch(absent);
  const pause = stoppedBy(present, serverTimeMs(runtime));
  return pause === undefined ? undefined : `ironfence is ${pause.reason}`;
}

/** What a power order would mean for a node that is there; empty where it is known not to be alive. */
export function nodeConcerns(node: Node | undefined, order: "Off" | "On"): string[] {
  if (order === "On" || node === undefined || !isReady(node)) return [];
  return [`node ${node.metadata.name} is Ready: its pods run, and end without notice`];
}

/** What a power order would mean for a node that cannot be seen from here; empty for one of this cluster. */
export function clusterConcerns({ spec: { nodeName, clusterRef } }: FencingTarget): string[] {
  if (clusterRef === undefined) return [];
  const cluster = `${clusterRef.namespace}/${clusterRef.name}`;
  return [
    `node ${nodeName} is of cluster ${cluster}, which this command does not read: whether it is alive, and whether its pods and volumes already run elsewhere, is not known`,
  ];
}

/** Why a node must not come up again. */
export function nodeObstacles(node: Node | undefined, order: "Off" | "On"): string[] {
  if (order === "Off" || node === undefined || outOfServiceOf(node) === "None") return [];
  return [
    `node ${node.metadata.name} is tainted out-of-service, so its pods and volumes may run elsewhere: take the taint off first`,
  ];
}

async function obstaclesOf(
  runtime: KubeRuntime,
  directory: FencingTargetDirectory,
  { metadata, spec, status }: FencingTarget,
  signal: AbortSignal,
): Promise<string[]> {
  const obstacles: string[] = [];
  const conflict = directory.conflictOf(metadata.uid);
  if (conflict !== undefined) obstacles.push(`the target is ambiguous: ${conflict.message}`);
  if (spec.maintenance) obstacles.push("the target is in maintenance (spec.maintenance): hands off");
  const owner = status?.owner;
  if (owner !== undefined && (await isLive(runtime, owner, signal))) {
    const { kind, namespace, name } = owner;
    obstacles.push(
      `${kind} ${namespace}/${name} owns the host: wait for it, or delete it and it takes back what it did`,
    );
  }
  return obstacles;
}

function absent(error: unknown): undefined {
  if (isKubeError(error, "NotFound")) return undefined;
  throw error;
}
