import { MACHINE } from "../../../api/annotations.ts";
import type { Node } from "../../../api/core.ts";
import type { BareMetalHost } from "../../../api/metal3.ts";
import { meaningfulUuid, sameUuid } from "../identity.ts";
import { hostText } from "./power-path.ts";
import { parseProviderID } from "./provider-id.ts";

// A kubelet says of its own Node which host it runs on, so that may be a lie, and a Node that has outlived its host says what was true
// once. What it says is compared with what the other Nodes of its cluster say.

/**
 * Why a Node is not believed to run on a host: it names another one, or another Node says that it runs on the same. Undefined where
 * nothing speaks against it. Pure.
 *
 * @param nodeName undefined for a Machine that has not become a Node.
 * @param node undefined for that, and where a reboot has deleted the Node.
 * @param nodes of the same cluster, the Node itself included or not: it may have joined anew since it was looked at.
 */
export function disputeOf(
  host: BareMetalHost,
  nodeName: string | undefined,
  node: Node | undefined,
  nodes: Iterable<Node>,
): string | undefined {
  const providerID = node?.spec.providerID ?? "";
  if (node !== undefined && namesHost(providerID, host) === false) {
    return `spec.providerID ${providerID} of Node ${node.metadata.name} names another BareMetalHost than ${hostText(host)}, UID ${host.metadata.uid}, which its Machine has: correct what is wrong there, since neither is trusted`;
  }
  for (const other of nodes) {
    const way = other.metadata.name === nodeName ? undefined : claimOf(host, node, other);
    if (way === undefined) continue;
    const who = nodeName === undefined ? "the Machine's node" : `Node ${nodeName}`;
    return `${who} and Node ${other.metadata.name} (by its ${way}) both run on ${hostText(host)}, as they say: delete the Node that is stale, or find out which kubelet lies; neither is trusted`;
  }
  return undefined;
}

/** By what a Node says that it runs on a host; undefined where it does not. */
function claimOf(host: BareMetalHost, node: Node | undefined, other: Node): string | undefined {
  const { consumerRef, metadata } = host;
  const providerID = other.spec.providerID ?? "";
  const taker = parseConsumer(providerID);
  const isTaker = taker === undefined || consumerRef === undefined || taker === consumerRef.name;
  // One that names a former consumer is believed by nobody, whatever Node it is of.
  if (namesHost(providerID, host) === true && isTaker) return `spec.providerID ${providerID}`;
  const machine = other.metadata.annotations?.[MACHINE];
  const okdTaker = `${consumerRef?.namespace ?? metadata.namespace}/${consumerRef?.name}`;
  if (consumerRef?.kind === "Machine" && machine === okdTaker) return `annotation ${MACHINE}`;
  if (consumerRef === undefined && other.metadata.name === metadata.name) return "name";
  const [uuid, otherUuid] = [node, other].map((known) => meaningfulUuid(known?.status.nodeInfo?.systemUUID));
  const isSame = uuid !== undefined && otherUuid !== undefined && sameUuid(uuid, otherUuid);
  return isSame ? `system UUID ${otherUuid}` : undefined;
}

/** Whether a providerID names this host; undefined where it names none. */
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
