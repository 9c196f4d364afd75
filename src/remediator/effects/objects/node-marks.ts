import type { Node } from "../../../api/kubernetes/core.ts";
import { isKubeError } from "../../../kube/errors.ts";
import type { EffectContext, EffectSession } from "../context/effect-context.ts";
import type { MarkChange, MarksPutOn } from "../../machine/node-patches/marks.ts";
import { isTaintOfFirstVersion, markPatch, outOfServiceOf, signature } from "../../machine/node-patches/marks.ts";
import { patchNode } from "../../clusters/node-writes.ts";
import { ownsHost } from "../../machine/model/facts/observations.ts";
import { WRITE_LATE_MAX_MS } from "../../machine/model/decision/timings.ts";

// Effects on the marks of the node: the out-of-service taint and the quarantine.

export async function mark(
  context: EffectContext,
  change: MarkChange,
  attemptId: string,
  signal: AbortSignal,
): Promise<void> {
  const { nodeRuntime, session } = context;
  if (change.outOfService === "off" && mayBeOnItsWay(session)) await overtakeTaint(context, signal);
  const ownedBy = signedByOurs(session);
  const signedBy = signature(session.uid, attemptId, session.subject.cluster);
  const patchFor: Parameters<typeof patchNode>[2] = (node) => {
    // Known even if the patch fails.
    if (change.outOfService === "off" && outOfServiceOf(node) === "None") session.observe({ type: "NoTaintFound" });
    return markPatch(node, change, signedBy, ownedBy, putOnBy(session, node));
  };
  await patchNode(nodeRuntime.client, session.nodeName, patchFor, signal);
}

/**
 * Writes the quarantine with a new signature, because the API server does not carry out a patch that changes nothing.
 */
export async function signQuarantineAgain(
  { nodeRuntime, runtime, session }: EffectContext,
  signal: AbortSignal,
): Promise<void> {
  const signedBy = signature(session.uid, runtime.random.uuid(), session.subject.cluster);
  const patchFor: Parameters<typeof patchNode>[2] = (node) =>
    node.metadata.uid === session.status.node?.uid ? markPatch(node, { quarantine: "on" }, signedBy) : [];
  await patchNode(nodeRuntime.client, session.nodeName, patchFor, signal);
  session.observe({ type: "Quarantined" });
}

/**
 * Whether a patch that puts our taint on may still take effect: nothing has answered it, and it may wait in a proxy or
 * in a queue.
 */
function mayBeOnItsWay(session: EffectSession): boolean {
  const { taintUnansweredAtMs: sentAtMs } = session.observations;
  return sentAtMs !== undefined && session.now().monotonicMs - sentAtMs < WRITE_LATE_MAX_MS;
}

/**
 * Removes the taint. If it is not there yet, this keeps a patch on its way from putting it on: that patch names the
 * resourceVersion of the node, so any other write makes it fail. The write is then a quarantine with a new signature.
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

/**
 * The UID whose marks are ours. Undefined while this remediation owns the host: all marks that ironfence has signed are
 * then ours.
 */
function signedByOurs(session: EffectSession): string | undefined {
  return ownsHost(session.observations) ? undefined : session.uid;
}

export function putOnBy(session: EffectSession, node: Node): MarksPutOn {
  const { taint, quarantined } = session.observations;
  return {
    outOfService: taint?.found === "Ours" || isTaintOfFirstVersion(session.remediation, node),
    quarantine: quarantined,
  };
}

export async function putTaint(
  { nodeRuntime, session }: EffectContext,
  attemptId: string,
  signal: AbortSignal,
): Promise<void> {
  const { uid } = session.status.node ?? {};
  const signedBy = signature(session.uid, attemptId, session.subject.cluster);
  // A Node with another UID has joined since. It is not the fenced one, so it gets no taint.
  const patchFor: Parameters<typeof patchNode>[2] = (node) => {
    if (node.metadata.uid !== uid) return [];
    // Reported before the answer, which may be lost.
    session.observe({ type: "TaintSent", atMs: session.now().monotonicMs });
    const putOn = { outOfService: isTaintOfFirstVersion(session.remediation, node), quarantine: false };
    return markPatch(node, { outOfService: "on" }, signedBy, undefined, putOn);
  };
  const { taintUnansweredAtMs: earlierAtMs } = session.observations;
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
