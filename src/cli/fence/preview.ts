import type { OpenDevice } from "../../bmc/interface/device-config.ts";
import type { BareMetalRemediation } from "../../api/ironfence/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../../api/ironfence/bare-metal-remediation.ts";
import { LEASES, NODES, PODS } from "../../api/kubernetes/core-types.ts";
import type { Lease, Node, Pod } from "../../api/kubernetes/core.ts";
import { EXCLUDE_FROM_REMEDIATION } from "../../api/names/labels.ts";
import { isControlPlane } from "../../nodes/control-plane.ts";
import { isKubeError } from "../../kube/errors.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import { isReady } from "../../nodes/ready.ts";
import { mustLeave } from "../../remediator/machine/node-patches/pods.ts";
import { nodeKey, subjectOf } from "../../nodes/subject.ts";
import { parseTimeMs } from "../../runtime/time.ts";
import { CommandRefusal } from "../errors/failures.ts";
import type { TargetContext } from "../hosts/targets.ts";
import { nodeConcerns, findNode, readTarget } from "../hosts/targets.ts";

export type StrategyType = "Reboot" | "Reprovision" | "Escalate";

/** What a fence of one node would do, given the present state of the cluster. */
export interface FencePreview {
  node: Node;
  isControlPlane: boolean;
  facts: TargetContext;
  /** Why it must not begin. */
  obstacles: string[];
  /** What the user must agree to. */
  concerns: string[];
}

/** What decides whether a node may be fenced by hand, all read live. */
export interface ClusterFacts {
  node: Node;
  target: TargetContext;
  remediations: readonly BareMetalRemediation[];
  controlPlane: readonly Node[];
  /** The holder of the node's remediation lease: maintenance, or a remediation of another vendor. */
  leaseHolder: string | undefined;
}

/** Reads what `previewFence` needs. @throws CommandRefusal if there is no such node or no target of it. */
export async function readClusterFacts(
  { runtime, openDevice }: { runtime: KubeRuntime; openDevice: OpenDevice },
  options: { namespace: string; nodeLeaseNamespace: string; nodeName: string },
  signal: AbortSignal,
): Promise<ClusterFacts> {
  const { namespace, nodeName } = options;
  const node = await findNode(runtime, nodeName, signal);
  if (node === undefined)
    throw new CommandRefusal("ObjectNotFound", `there is no node ${nodeName}: kubectl get nodes lists them`);
  const { client } = runtime;
  const [target, remediations, nodes, leaseHolder] = await Promise.all([
    readTarget({ runtime, openDevice }, namespace, { nodeName }, signal),
    client.list<BareMetalRemediation>(BARE_METAL_REMEDIATIONS, {}, signal),
    isControlPlane(node) ? client.list<Node>(NODES, {}, signal) : { items: [] },
    readLeaseHolder(runtime, options.nodeLeaseNamespace, nodeName, signal),
  ]);
  const controlPlane = nodes.items.filter(isControlPlane);
  return { node, target, remediations: remediations.items, controlPlane, leaseHolder };
}

/** Decides what prevents a fence, and what the user must confirm; pure. */
export function previewFence(facts: ClusterFacts, strategy: StrategyType): FencePreview {
  const { node, target, remediations, controlPlane, leaseHolder } = facts;
  const { name } = node.metadata;
  const obstacles = [...target.obstacles];
  const concerns = nodeConcerns(node, "Off");
  if (target.paused !== undefined) obstacles.push(`${target.paused}: end the pause with ironfence resume`);
  if (node.metadata.labels?.[EXCLUDE_FROM_REMEDIATION] === "true") {
    obstacles.push(`node ${name} has the label ${EXCLUDE_FROM_REMEDIATION}=true`);
  }
  if (leaseHolder !== undefined)
    obstacles.push(`${leaseHolder} holds the remediation lease of node ${name}: wait until it is released`);
  const unfinished = remediations.filter(isUnfinished);
  for (const remediation of unfinished.filter((candidate) => subjectNodeKey(candidate) === name)) {
    obstacles.push(`${describe(remediation)} already remediates it: see ironfence status`);
  }
  if (isControlPlane(node)) {
    concerns.push(`node ${name} runs the control plane`);
    const others = controlPlane.filter((other) => other.metadata.name !== name);
    for (const remediation of unfinished.filter((candidate) =>
      others.some((other) => other.metadata.name === subjectNodeKey(candidate)),
    )) {
      obstacles.push(
        `${describe(remediation)} fences another control plane node: one at a time, or etcd loses its quorum`,
      );
    }
    // Fencing a member that is already down does not weaken the quorum. Fencing one that works does.
    const down = others.filter((other) => !isReady(other)).map((other) => other.metadata.name);
    if (isReady(node) && down.length > 0) {
      obstacles.push(
        `node ${name} is Ready, and control plane node ${down.join(", ")} is not: etcd may lose its quorum`,
      );
    }
  }
  if (strategy !== "Reboot") {
    const when = strategy === "Escalate" ? "if reboots do not help, " : "";
    concerns.push(`${when}the host boots from the network and is installed again: the data on its disks is lost`);
  }
  return { node, isControlPlane: isControlPlane(node), facts: target, obstacles, concerns };
}

/** How many pods are bound to the node, and how many of them would be ended. */
export async function countPods(
  runtime: KubeRuntime,
  nodeName: string,
  signal: AbortSignal,
): Promise<{ bound: number; ended: number }> {
  const options = { fieldSelector: `spec.nodeName=${nodeName}` };
  const { items } = await runtime.client.list<Pod>(PODS, options, signal);
  return { bound: items.length, ended: items.filter(mustLeave).length };
}

/** The node of a remediation. A node of another cluster is a different node, even if the names are equal. */
export function subjectNodeKey(remediation: BareMetalRemediation): string | undefined {
  const { nodeName: name, cluster } = subjectOf(remediation);
  return name === undefined ? undefined : nodeKey({ cluster, name });
}

/** Whether a remediation has no verdict yet. */
export function isUnfinished({ status }: BareMetalRemediation): boolean {
  const succeeded = status?.conditions?.find(({ type }) => type === "Succeeded")?.status;
  return succeeded === undefined || succeeded === "Unknown";
}

function describe({ metadata, status }: BareMetalRemediation): string {
  return `BareMetalRemediation ${metadata.namespace}/${metadata.name} (phase ${status?.phase ?? "new"})`;
}

/**
 * The holder of the node's remediation lease (`node-<node>`, medik8s), if it has not expired. The agent is not left
 * out: it holds such a lease only for a remediation, which is an obstacle anyway.
 */
async function readLeaseHolder(
  runtime: KubeRuntime,
  namespace: string,
  nodeName: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    const { spec } = await runtime.client.get<Lease>(LEASES, { namespace, name: `node-${nodeName}` }, signal);
    const { holderIdentity = "", leaseDurationSeconds, renewTime } = spec;
    const renewedMs = parseTimeMs(renewTime);
    if (holderIdentity === "" || renewedMs === undefined || leaseDurationSeconds === undefined) return undefined;
    return renewedMs + leaseDurationSeconds * 1_000 < runtime.clock.nowMs() ? undefined : holderIdentity;
  } catch (error) {
    if (isKubeError(error, "NotFound")) return undefined;
    throw error;
  }
}
