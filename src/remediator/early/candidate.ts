import { EXCLUDE_FROM_REMEDIATION } from "../../api/names/labels.ts";
import type { Node } from "../../api/kubernetes/core.ts";
import type { FencingTarget } from "../../api/ironfence/fencing-target.ts";
import { OUT_OF_SERVICE } from "../../api/kubernetes/taints.ts";
import { isReady } from "../../nodes/ready.ts";

/**
 * Why the host of a node is not proven off before its duration begins. Undefined if it may be. Pure.
 *
 * A node that is not Ready waits for the end of its duration: with Ready=False its kubelet may be shutting the host
 * down, and with Ready=Unknown another proof counts.
 */
export function whyNotEarly(node: Node | undefined, target: FencingTarget): string | undefined {
  if (node === undefined) return "there is no such node";
  if (!isReady(node)) return "the node is not Ready";
  if (node.metadata.deletionTimestamp !== undefined) return "the Node is being deleted";
  if (node.spec.unschedulable === true) return "the node is cordoned";
  if (node.metadata.labels?.[EXCLUDE_FROM_REMEDIATION] === "true") return "the node is excluded";
  if (node.spec.taints?.some(({ key }) => key === OUT_OF_SERVICE.key) === true) return "the node is out of service";
  return whyTargetNotEarly(node, target);
}

function whyTargetNotEarly(node: Node, target: FencingTarget): string | undefined {
  const { status, metadata } = target;
  const unusable = whyTargetUnusable(target);
  if (unusable !== undefined) return unusable;
  if (status?.wrongHost !== undefined && status.wrongHost.generation === metadata.generation) {
    return "an earlier proof was wrong, and the target has not been edited since";
  }
  const { bootID } = node.status.nodeInfo ?? {};
  if (bootID === undefined || status?.onInBoot !== bootID) return "the host was not read On in this boot";
  return undefined;
}

/** Why the devices of a target are not opened before a remediation needs them. Undefined if they may be. Pure. */
export function whyTargetUnusable({ spec, status, metadata }: FencingTarget): string | undefined {
  const condition = (type: string) => status?.conditions?.find((known) => known.type === type)?.status;
  if (spec.maintenance) return "the target is in maintenance";
  if (status?.owner !== undefined) return "a remediation owns the host";
  if (status?.observedGeneration !== metadata.generation) return "the target was edited after its last probe";
  if (condition("Ready") !== "True") return "the target is not Ready";
  if (condition("IdentityVerified") !== "True") return "the identity of the host is not verified";
  return undefined;
}
