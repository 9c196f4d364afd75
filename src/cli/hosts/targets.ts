import { NODES, CONFIG_MAPS } from "../../api/kubernetes/core-types.ts";
import type { ConfigMap, Node } from "../../api/kubernetes/core.ts";
import type { FencingTarget } from "../../api/ironfence/fencing-target.ts";
import { FENCING_TARGETS } from "../../api/ironfence/fencing-target.ts";
import { STOP_SWITCH_NAME, stoppedBy } from "../../api/ironfence/stop-switch.ts";
import type { OpenDevice } from "../../bmc/interface/device-config.ts";
import { isKubeError } from "../../kube/errors.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import { isReady } from "../../nodes/ready.ts";
import { outOfServiceOf } from "../../remediator/machine/node-patches/marks.ts";
import { serverTimeMs } from "../../kube/server-time.ts";
import type { FencingTargetDirectory } from "../../remediator/hosts/fencing-target/directory.ts";
import { createFencingTargetDirectory } from "../../remediator/hosts/fencing-target/directory.ts";
import { isActiveOwner } from "../../remediator/hosts/model/active-owner.ts";
import { CommandRefusal } from "../errors/failures.ts";
import { staticView } from "../cluster/static-view.ts";

/** A FencingTarget, read live, and what prevents power orders to its host. */
export interface TargetContext {
  target: FencingTarget;
  directory: FencingTargetDirectory;
  /** Undefined if there is none, or if it belongs to another cluster, which is not read. */
  node: Node | undefined;
  /** Why no power order may be sent: ambiguous, in maintenance, owned by a remediation. */
  obstacles: string[];
  /** The pause in words; undefined if ironfence is not paused. */
  paused: string | undefined;
}

/**
 * Reads everything that decides whether the host of a target may be powered. @throws CommandRefusal if there is no such
 * target.
 */
export async function readTarget(
  { runtime, openDevice }: { runtime: KubeRuntime; openDevice: OpenDevice },
  namespace: string,
  choose: { targetName: string } | { nodeName: string },
  signal: AbortSignal,
): Promise<TargetContext> {
  const { items } = await runtime.client.list<FencingTarget>(FENCING_TARGETS, { namespace }, signal);
  const directory = createFencingTargetDirectory(
    { runtime, targets: staticView(items), namespace, openDevice },
    signal,
  );
  const target = items.find(({ metadata, spec }) =>
    "targetName" in choose
      ? metadata.name === choose.targetName
      : spec.nodeName === choose.nodeName && spec.clusterRef === undefined,
  );
  if (target === undefined) {
    const wanted = "targetName" in choose ? choose.targetName : `for node ${choose.nodeName}`;
    throw new CommandRefusal(
      "ObjectNotFound",
      `there is no FencingTarget ${wanted} in namespace ${namespace}: ironfence status lists them`,
    );
  }
  const [node, paused] = await Promise.all([
    // A node of the same name in this cluster is another node.
    target.spec.clusterRef === undefined ? findNode(runtime, target.spec.nodeName, signal) : undefined,
    readPause(runtime, namespace, signal),
  ]);
  return { target, directory, node, obstacles: await obstaclesOf(runtime, directory, target, signal), paused };
}

/** The node, if there is one. */
export async function findNode(runtime: KubeRuntime, name: string, signal: AbortSignal): Promise<Node | undefined> {
  return runtime.client.get<Node>(NODES, { name }, signal).catch(absent);
}

/** Why the stop switch holds power-offs; undefined if it does not. */
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

/** What a power-off would do to a node; empty for a power-on, and if there is no node or the node is not Ready. */
export function nodeConcerns(node: Node | undefined, order: "Off" | "On"): string[] {
  if (order === "On" || node === undefined || !isReady(node)) return [];
  return [`node ${node.metadata.name} is Ready: its pods run, and end without a graceful shutdown`];
}

/** What the command cannot know about a node of another cluster; empty for a node of this cluster. */
export function clusterConcerns({ spec: { nodeName, clusterRef } }: FencingTarget): string[] {
  if (clusterRef === undefined) return [];
  const cluster = `${clusterRef.namespace}/${clusterRef.name}`;
  return [
    `node ${nodeName} belongs to cluster ${cluster}, which this command does not read: it does not know whether the node is alive, or whether its pods and volumes already run elsewhere`,
  ];
}

/** Why a host must not be powered on; empty for a power-off. */
export function nodeObstacles(node: Node | undefined, order: "Off" | "On"): string[] {
  if (order === "Off" || node === undefined || outOfServiceOf(node) === "None") return [];
  return [
    `node ${node.metadata.name} has the out-of-service taint, so its pods and volumes may run elsewhere: remove the taint first`,
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
  if (spec.maintenance) obstacles.push("the target is in maintenance (spec.maintenance is true)");
  const owner = status?.owner;
  if (owner !== undefined && (await isActiveOwner(runtime, owner, signal))) {
    const { kind, namespace, name } = owner;
    obstacles.push(`${kind} ${namespace}/${name} owns the host: wait for it, or delete it, which undoes it`);
  }
  return obstacles;
}

function absent(error: unknown): undefined {
  if (isKubeError(error, "NotFound")) return undefined;
  throw error;
}
