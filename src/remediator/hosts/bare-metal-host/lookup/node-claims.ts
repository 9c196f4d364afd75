import { MACHINE } from "../../../../api/names/annotations.ts";
import type { Node } from "../../../../api/kubernetes/core.ts";
import type { BareMetalHost } from "../../../../api/metal3/metal3.ts";
import { meaningfulUuid, sameUuid } from "../../model/identity.ts";
import { hostText } from "../store/power-path.ts";
import { parseProviderID } from "./provider-id.ts";

// A kubelet itself reports on which host its Node runs. That may be false, or outdated if the Node has outlived its
// host, so it is compared with what the other Nodes of its cluster report.

/**
 * Why it is doubtful that a Node runs on a host: it names another host, or another Node reports the same host.
 * Undefined if nothing contradicts it. Pure.
 *
 * @param nodeName undefined for a Machine that has no Node yet.
 * @param node undefined in that case, and if a reboot has deleted the Node.
 * @param nodes of the same cluster, with or without the Node itself: it may have joined again since it was read.
 */
export function disputeOf(
  host: BareMetalHost,
  nodeName: string | undefined,
  node: Node | undefined,
  nodes: Iterable<Node>,
): string | undefined {
  const providerID = node?.spec.providerID ?? "";
  if (node !== undefined && namesHost(providerID, host) === false) {
    return `spec.providerID ${providerID} of Node ${node.metadata.name} names another BareMetalHost than ${hostText(host)}, UID ${host.metadata.uid}, which its Machine has: ironfence uses neither; correct the wrong one`;
  }
  for (const other of nodes) {
    const way = other.metadata.name === nodeName ? undefined : claimOf(host, node, other);
    if (way === undefined) continue;
    const who = nodeName === undefined ? "the Machine's node" : `Node ${nodeName}`;
    return `${who} and Node ${other.metadata.name} (by its ${way}) both report that they run on ${hostText(host)}: delete the stale Node, or find out which kubelet reports a wrong host; neither is trusted`;
  }
  return undefined;
}

/** The field by which a Node reports that it runs on a host; undefined if it does not. */
function claimOf(host: BareMetalHost, node: Node | undefined, other: Node): string | undefined {
  const { consumerRef, metadata } = host;
  const providerID = other.spec.providerID ?? "";
  const named = parseConsumer(providerID);
  const isCurrent = named === undefined || consumerRef === undefined || named === consumerRef.name;
  // A providerID that names a former consumer is not trusted on any Node.
  if (namesHost(providerID, host) === true && isCurrent) return `spec.providerID ${providerID}`;
  const machine = other.metadata.annotations?.[MACHINE];
  const okdMachine = `${consumerRef?.namespace ?? metadata.namespace}/${consumerRef?.name}`;
  if (consumerRef?.kind === "Machine" && machine === okdMachine) return `annotation ${MACHINE}`;
  if (consumerRef === undefined && other.metadata.name === metadata.name) return "name";
  const [uuid, otherUuid] = [node, other].map((known) => meaningfulUuid(known?.status.nodeInfo?.systemUUID));
  const isSame = uuid !== undefined && otherUuid !== undefined && sameUuid(uuid, otherUuid);
  return isSame ? `system UUID ${otherUuid}` : undefined;
}

/** Whether a providerID names this host; undefined if it names no host. */
function namesHost(providerID: string, { metadata }: BareMetalHost): boolean | undefined {
  const named = parseProviderID(providerID);
  if (named === undefined) return undefined;
  const isNamed = !("name" in named) || (named.name === metadata.name && named.namespace === metadata.namespace);
  return isNamed && (named.uid === undefined || named.uid === metadata.uid);
}

function parseConsumer(providerID: string): string | undefined {
  const named = parseProviderID(providerID);
  return named !== undefined && "name" in named ? named.consumer : undefined;
}
