import { BARE_METAL_REMEDIATIONS } from "../../api/bare-metal-remediation.ts";
import type { BareMetalRemediation } from "../../api/bare-metal-remediation.ts";
import { LEASES, NODE_LEASE_NAMESPACE, NODES } from "../../api/core-types.ts";
import type { Lease, Node } from "../../api/core.ts";
import { CLUSTER_API_GROUP, CLUSTER_API_VERSIONS } from "../../api/cluster-api.ts";
import { isKubeError } from "../../kube/errors.ts";
import { findObject } from "../../kube/find-object.ts";
import { findServed } from "../../kube/served-kind.ts";
import type { KubeObject } from "../../kube/resource.ts";
import { keyOf } from "../../kube/watched.ts";
import { parseTimeMs, toTime } from "../../runtime/time.ts";
import { isNewBoot } from "../machine/states/returning.ts";
import { examineRequest } from "./examine-request.ts";
import { orderPower, readPower, readWhole, setBootOverride, verifyIdentity } from "./devices.ts";
import type { EffectContext, EffectSession } from "./effect-context.ts";
import { lookAtStops } from "./read-holds.ts";
import type { MarkChange, MarksPutOn } from "../machine/node-patches/marks.ts";
import {
  isReady,
  isTaintOfFirstVersion,
  markPatch,
  outOfServiceOf,
  signature,
  signedTaint,
} from "../machine/node-patches/marks.ts";
import { getNode, patchNode } from "../clusters/node-writes.ts";
import { outcomeOf } from "./outcome.ts";
import { checkSuccessor, claimHost, ownerOf } from "./claim-host.ts";
import { mayRunEtcd } from "../machine/rules/quorum.ts";
import { countBound, releasePods } from "./release-pods.ts";
import { runReprovisionEffect } from "./reprovision.ts";
import { readLiveMachine, readOwnerMachine } from "../machine-objects/read-machine.ts";
import { backupOf, restorePatch } from "../machine/node-patches/node-backup.ts";
import type { EtcdMember, MachineReading } from "../machine/model/observations.ts";
import { ownsHost } from "../machine/model/observations.ts";
import { clusterOf } from "../../nodes/subject.ts";
import { EXAMINED_AGE_MAX_MS, WRITE_LATE_MAX_MS } from "../machine/model/timings.ts";
import type { Effect } from "../machine/model/decision.ts";
import type { RemediationEvent } from "../machine/model/event.ts";
import type { HoldsRead } from "./read-holds.ts";

/** On every remediation that has begun: nothing of it is forgotten before it is taken back. */
export const FINALIZER = "ironfence.io/remediation";

/**
 * Does one thing, once, and reports what came of it as events, of which `observe` says what they mean. A failed device is an event,
 * too; failures of the API are thrown as KubeErrors.
 */
export async function runEffect(context: EffectContext, effect: Effect, signal: AbortSignal): Promise<void> {
  const { session, nodeRuntime } = context;
  const { client } = nodeRuntime;
  const { nodeName } = session;
  switch (effect.do) {
    case "addFinalizer":
      return setFinalizer(context, true, signal);
    case "dropFinalizer":
      return setFinalizer(context, false, signal);
    case "askForTurn":
      return context.turns.ask(session.remediation);
    case "leaveTurn":
      return context.turns.leave(session.uid);
    case "handOver":
      return context.handOver(`it runs on node ${nodeName ?? ""}, which is to be powered off`);
    case "claimHost":
      return claimHost(context, signal);
    case "releaseHost":
      await context.host?.release(ownerOf(session), { asItIs: effect.asItIs, outcome: outcomeOf(session) }, signal);
      return session.observe({ type: "HostReleased" });
    case "checkSuccessor":
      return checkSuccessor(context, signal);
    case "findCluster":
      return findCluster(context, signal);
    case "resolveSubject":
      return resolveSubject(context, signal);
    case "examine":
      return examineWithIdentity(context, signal);
    case "verifyIdentity":
      return verifyWithStops(context, signal);
    case "examineRequest":
      return examineRequest(context, signal);
    case "lookAtStops":
      return session.observe(await lookAtStops(context, signal));
    case "readLease":
      return readLease(context, signal);
    case "readPower":
      return readPower(context, effect.withinMs, signal);
    case "readWhole":
      return readWhole(context, signal);
    case "forceOff":
      return orderPower(context, "ForceOff", effect.attemptId, signal);
    case "powerOn":
      return orderPower(context, "On", effect.attemptId, signal);
    case "setBootOverride":
      return setBootOverride(context, effect.override, signal);
    case "findMachine":
    case "examineMachine":
    case "askToReplace":
    case "handToOwner":
    case "deleteMachine":
    case "checkReplacement":
    case "examineHost":
    case "takeImageOff":
    case "putImageBack":
    case "deleteSelf":
      return runReprovisionEffect(context, effect, signal);
    case "closeDevices":
      await session.closeDevices();
      return session.observe({ type: "DevicesClosed" });
    case "quarantine":
      await mark(context, { quarantine: "on" }, effect.attemptId, signal);
      return session.observe({ type: "Quarantined" });
    case "taint":
      return putTaint(context, effect.attemptId, signal);
    case "untaint":
      await mark(context, { outOfService: "off" }, "", signal);
      return session.observe({ type: "Untainted" });
    case "swapMarks":
      await mark(context, { outOfService: "off", quarantine: "on" }, effect.attemptId, signal);
      return session.observe({ type: "MarksSwapped" });
    case "clearMarks":
      await mark(context, { outOfService: "off", quarantine: "off" }, "", signal);
      return session.observe({ type: "MarksCleared" });
    case "liftQuarantine": {
      // The watch said that the node is back; the live node has to say so, too.
      const patchFor: Parameters<typeof patchNode>[2] = (node) =>
        isNewBoot(session, node)
          ? markPatch(node, { outOfService: "off", quarantine: "off" }, "", undefined, putOnBy(session, node))
          : [];
      const node = await patchNode(client, nodeName, patchFor, signal);
      return session.observe({ type: "QuarantineLifted", isNewBoot: node !== undefined && isNewBoot(session, node) });
    }
    case "releasePods": {
      const node = await getNode(client, nodeName, signal);
      // A Node object of another UID has joined since: its pods run on another host than the one that is off.
      const isFenced = node === undefined || node.metadata.uid === session.status.node?.uid;
      if (isFenced && nodeName !== undefined) {
        await releasePods(nodeRuntime, nodeName, effect.withinMs, signal);
      }
      return session.observe({ type: "PodsReleased" });
    }
    case "checkDrained": {
      const bound = nodeName === undefined ? { pods: 0, attachments: 0 } : await countBound(client, nodeName, signal);
      return session.observe({ type: "DrainChecked", ...bound, atMs: session.now().monotonicMs });
    }
    case "backupNode": {
      const node = await getNode(client, nodeName, signal);
      if (node === undefined || node.metadata.uid !== session.status.node?.uid) {
        return session.observe({ type: "NodeDeleted" });
      }
      const { resourceVersion } = node.metadata;
      return session.observe({ type: "NodeSaved", backup: backupOf(node, session.status.backup), resourceVersion });
    }
    case "deleteNode":
      return deleteNode(context, signal);
    case "restoreNode": {
      const { backup } = session.status;
      if (backup === undefined) return;
      const patchFor: Parameters<typeof patchNode>[2] = (node) =>
        node.metadata.uid === backup.nodeUID ? [] : restorePatch(node, backup);
      const node = await patchNode(client, nodeName, patchFor, signal);
      return session.observe({ type: "NodeRestored", uid: node?.metadata.uid });
    }
    case "recordReboot": {
      const { uid: nodeUID, bootID } = session.status.node ?? {};
      const reboot = {
        time: toTime(effect.onOrderedAtMs),
        offConfirmedAt: toTime(effect.offConfirmedAtMs),
        ...(nodeUID !== undefined && { nodeUID }),
        ...(bootID !== undefined && { bootID }),
      };
      await context.host?.recordReboot(reboot, signal);
      return session.observe({ type: "RebootRecorded" });
    }
  }
}

/** The nodes that run etcd, each as it is now: what is watched may be late. */
async function readMembers(context: EffectContext, signal: AbortSignal): Promise<EtcdMember[]> {
  const read = async ({ metadata: { name } }: Node): Promise<EtcdMember> => {
    const node = await getNode(context.nodeRuntime.client, name, signal);
    return { node: name, up: node !== undefined && isReady(node), external: context.hasExternalEtcd };
  };
  return Promise.all(context.etcdNodes().map(read));
}

/** Finds out by the live Machine that owns the remediation which node of which cluster it is about. */
async function resolveSubject(context: EffectContext, signal: AbortSignal): Promise<void> {
  const { runtime, session } = context;
  const { metadata } = session.remediation;
  const read = await readOwnerMachine(runtime, metadata, signal);
  const machine = read.found && clusterOf(read.machine) !== undefined ? await identified(context, read, signal) : read;
  session.observe({ type: "MachineRead", machine, atMs: session.now().monotonicMs });
}

/** A Machine whose cluster can be told from the agent's own. */
async function identified(context: EffectContext, read: MachineReading, signal: AbortSignal): Promise<MachineReading> {
  try {
    await context.identifyOwnCluster(signal);
    return read;
  } catch (error) {
    if (!isKubeError(error, "Forbidden")) throw error;
    return {
      found: false,
      reason: "MachineUnreadable",
      message: `${error.message}: apply deploy/families/cluster-api`,
    };
  }
}

/** Looks whether there is still that Cluster; one that may not be looked for may be there. */
async function findCluster({ runtime, session }: EffectContext, signal: AbortSignal): Promise<void> {
  const { cluster } = session.subject;
  const kind = { group: CLUSTER_API_GROUP, kind: "Cluster", versions: CLUSTER_API_VERSIONS };
  let gone = false;
  try {
    const type = cluster === undefined ? undefined : await findServed(runtime, kind, signal);
    if (cluster !== undefined && type !== undefined) {
      const { namespace, name } = cluster;
      const found = await findObject(runtime.client, type, { namespace, name }, signal);
      gone = found === undefined || isAnotherCluster(session, found);
    }
  } catch (error) {
    if (!isKubeError(error, "Forbidden")) throw error;
  }
  session.observe({ type: "ClusterChecked", isGone: gone, atMs: session.now().monotonicMs });
}

/** Whether a Cluster was made anew under its name since: it is younger than the remediation, and another cluster answers. */
function isAnotherCluster({ remediation, cluster }: EffectSession, { metadata }: KubeObject): boolean {
  const madeAtMs = parseTimeMs(metadata.creationTimestamp) ?? -Infinity;
  const begunAtMs = parseTimeMs(remediation.metadata.creationTimestamp) ?? Infinity;
  return cluster.away?.reason === "ClusterExchanged" && madeAtMs > begunAtMs;
}

/** Looks at the node and at its host's identity at once. An order rests on both: neither serves where the other could not be had. */
async function examineWithIdentity(context: EffectContext, signal: AbortSignal): Promise<void> {
  const { session } = context;
  try {
    await lookWithIdentity(context, examine, signal);
  } catch (error) {
    session.observe({ type: "IdentityDiscarded" });
    throw error;
  }
}

/** What an order rests on that does nothing to pods: who the host is, and what holds orders. */
async function verifyWithStops(context: EffectContext, signal: AbortSignal): Promise<void> {
  // A look that failed holds what it holds, however old it is; to repeat it would keep an On from being sent for as long as it fails.
  const look = async (): Promise<HoldsRead[]> => [await lookAtStops(context, signal)];
  await lookWithIdentity(context, look, signal, ([read]) => read?.type === "HoldsRead" && read.failed);
}

/**
 * Looks by `look`, and at the host's identity, at once. An order rests on both. Where that has taken long all is looked at once
 * more that may be old by then: a BMC takes its time, in which the node may come back, and so does an API that fails, in which an
 * identity grows too old for any order.
 *
 * @param isLasting whether what was found serves however much older it is.
 */
async function lookWithIdentity(
  context: EffectContext,
  look: (context: EffectContext, signal: AbortSignal) => Promise<readonly RemediationEvent[]>,
  signal: AbortSignal,
  isLasting: (found: readonly RemediationEvent[]) => boolean = () => false,
): Promise<void> {
  const { session } = context;
  const now = (): number => session.now().monotonicMs;
  const startedMs = now();
  let verifiedMs = startedMs;
  const verify = async (): Promise<void> => {
    await verifyIdentity(context, signal);
    verifiedMs = now();
  };
  const verifying = verify();
  // It is awaited below, once the look is over: a rejection that nobody awaits until then would end the process.
  verifying.catch(() => undefined);
  let found: readonly RemediationEvent[];
  let lookedMs: number;
  try {
    found = await look(context, signal);
    lookedMs = now();
  } finally {
    await verifying;
  }
  if (lookedMs - verifiedMs > EXAMINED_AGE_MAX_MS) await verify();
  // Of what is looked at together one answer may have come at once, and another late.
  if (now() - startedMs > EXAMINED_AGE_MAX_MS && !isLasting(found)) found = await look(context, signal);
  // Reported when all is awaited: what failed in part must not count.
  for (const event of found) session.observe(event);
}

/** The live node, with what else decides about its power-off. */
async function examine(context: EffectContext, signal: AbortSignal): Promise<readonly RemediationEvent[]> {
  const { session, nodeRuntime } = context;
  const [node, stops] = await Promise.all([
    getNode(nodeRuntime.client, session.nodeName, signal),
    lookAtStops(context, signal),
    readLease(context, signal),
    readMachine(context, signal),
  ]);
  const bearsOurs = node !== undefined && (signedTaint(node) || isTaintOfFirstVersion(session.remediation, node));
  const members = node !== undefined && mayRunEtcd(node) ? await readMembers(context, signal) : [];
  const { subject, cluster } = session;
  const dispute = await context.host?.disputeOf(subject, node, cluster.nodes.values(), signal);
  return [stops, { type: "NodeExamined", node, dispute, members, bearsOurs }];
}

/** Reads the Machine on record live, where it says more than who asked: it may have been deleted, or named its node. */
async function readMachine({ runtime, session }: EffectContext, signal: AbortSignal): Promise<void> {
  const { machine, cluster, nodeName } = session.subject;
  if (machine === undefined || (cluster === undefined && nodeName !== undefined)) return;
  const read = await readLiveMachine(runtime, machine, signal);
  session.observe({ type: "MachineRead", machine: read, atMs: session.now().monotonicMs });
}

async function setFinalizer({ runtime, session }: EffectContext, wanted: boolean, signal: AbortSignal): Promise<void> {
  const { metadata } = session.remediation;
  const others = (metadata.finalizers ?? []).filter((name) => name !== FINALIZER);
  const guard = { uid: metadata.uid, resourceVersion: metadata.resourceVersion };
  const value = wanted ? [...others, FINALIZER] : others;
  const written = await runtime.client.patch<BareMetalRemediation>(
    BARE_METAL_REMEDIATIONS,
    keyOf(session.remediation),
    guard,
    [{ op: "add", path: "/metadata/finalizers", value }],
    {},
    signal,
  );
  session.learn(written);
}

async function readLease({ nodeRuntime, session }: EffectContext, signal: AbortSignal): Promise<void> {
  const { nodeName: name } = session;
  let lease: Lease | undefined;
  try {
    if (name !== undefined) {
      lease = await nodeRuntime.client.get<Lease>(LEASES, { namespace: NODE_LEASE_NAMESPACE, name }, signal);
    }
  } catch (error) {
    if (!isKubeError(error, "NotFound")) throw error;
  }
  const atMs = session.now().monotonicMs;
  session.observe({ type: "LeaseRead", lease, readAtMs: atMs, contact: session.cluster.runtime.contact(), atMs });
}

async function mark(context: EffectContext, change: MarkChange, attemptId: string, signal: AbortSignal): Promise<void> {
  const { nodeRuntime, session } = context;
  if (change.outOfService === "off" && mayBeOnItsWay(session)) await overtakeTaint(context, signal);
  const ownedBy = signedByOurs(session);
  const signedBy = signature(session.uid, attemptId, session.subject.cluster);
  const patchFor: Parameters<typeof patchNode>[2] = (node) => {
    // That much is known whatever becomes of the patch.
    if (change.outOfService === "off" && outOfServiceOf(node) === "None") session.observe({ type: "NoTaintFound" });
    return markPatch(node, change, signedBy, ownedBy, putOnBy(session, node));
  };
  await patchNode(nodeRuntime.client, session.nodeName, patchFor, signal);
}

/** Whether a patch that puts our taint on may still take effect: nothing has answered it, and it may wait in a proxy or in a queue. */
function mayBeOnItsWay(session: EffectSession): boolean {
  const { taintUnansweredAtMs: sentAtMs } = session.seen;
  return sentAtMs !== undefined && session.now().monotonicMs - sentAtMs < WRITE_LATE_MAX_MS;
}

/**
 * Takes the taint off, or keeps a patch that would put it on from taking effect: that one names the node's resourceVersion, which
 * this write changes in any case, by a quarantine under a signature of its own.
 */
async function overtakeTaint({ nodeRuntime, runtime, session }: EffectContext, signal: AbortSignal): Promise<void> {
  const signedBy = signature(session.uid, runtime.random.uuid(), session.subject.cluster);
  const ownedBy = signedByOurs(session);
  const patchFor: Parameters<typeof patchNode>[2] = (node) => {
    const untaint = markPatch(node, { outOfService: "off" }, "", ownedBy, putOnBy(session, node));
    if (untaint.length > 0) return untaint;
    session.observe({ type: "Quarantined" });
    return markPatch(node, { quarantine: "on" }, signedBy);
  };
  await patchNode(nodeRuntime.client, session.nodeName, patchFor, signal);
  session.observe({ type: "TaintOvertaken" });
}

/** All that ironfence has signed on the node is ours while the host is; else only what bears our own UID. */
function signedByOurs(session: EffectSession): string | undefined {
  return ownsHost(session.seen) ? undefined : session.uid;
}

function putOnBy(session: EffectSession, node: Node): MarksPutOn {
  const { taint, quarantined } = session.seen;
  return {
    outOfService: taint?.found === "Ours" || isTaintOfFirstVersion(session.remediation, node),
    quarantine: quarantined,
  };
}

async function putTaint(
  { nodeRuntime, session }: EffectContext,
  attemptId: string,
  signal: AbortSignal,
): Promise<void> {
  const { uid } = session.status.node ?? {};
  const signedBy = signature(session.uid, attemptId, session.subject.cluster);
  // A Node object of another UID has joined since: it is not the one that was fenced.
  const patchFor: Parameters<typeof patchNode>[2] = (node) => {
    if (node.metadata.uid !== uid) return [];
    // Known before the answer, which may be lost.
    session.observe({ type: "TaintSent", atMs: session.now().monotonicMs });
    const putOn = { outOfService: isTaintOfFirstVersion(session.remediation, node), quarantine: false };
    return markPatch(node, { outOfService: "on" }, signedBy, undefined, putOn);
  };
  const { taintUnansweredAtMs: earlierAtMs } = session.seen;
  let node: Node | undefined;
  try {
    node = await patchNode(nodeRuntime.client, session.nodeName, patchFor, signal);
  } catch (error) {
    const isAnswered = isKubeError(error) && error.status !== undefined;
    const message = error instanceof Error ? error.message : String(error);
    session.observe({ type: "TaintFailed", message, isAnswered, earlierAtMs });
    throw error;
  }
  const whose = node === undefined || node.metadata.uid !== uid ? "None" : outOfServiceOf(node);
  const found = whose === "None" ? "NoNode" : whose;
  session.observe({ type: "TaintAnswered", attemptId, found });
}

async function deleteNode({ nodeRuntime, session }: EffectContext, signal: AbortSignal): Promise<void> {
  const { nodeName } = session;
  const { backup } = session.seen;
  if (backup === undefined || nodeName === undefined) return;
  try {
    const guard = { uid: backup.status.nodeUID, resourceVersion: backup.resourceVersion };
    await nodeRuntime.client.delete(NODES, { name: nodeName }, { guard }, signal);
    session.observe({ type: "NodeDeleted" });
  } catch (error) {
    if (isKubeError(error, "NotFound")) session.observe({ type: "NodeDeleted" });
    // Somebody changed the node since it was saved: save it anew.
    else if (isKubeError(error, "Conflict")) session.observe({ type: "SavedNodeOutdated" });
    else throw error;
  }
}
