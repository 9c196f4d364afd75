import { BARE_METAL_REMEDIATIONS } from "../api/bare-metal-remediation.ts";
import type { BareMetalRemediation } from "../api/bare-metal-remediation.ts";
import { LEASES, NODES } from "../api/core-types.ts";
import type { Lease } from "../api/core.ts";
import { BmcError } from "../bmc/errors.ts";
import { isKubeError } from "../kube/errors.ts";
import type { KubeRuntime } from "../kube/runtime.ts";
import { keyOf } from "../kube/watched.ts";
import { abortReason } from "../runtime/clock.ts";
import { DeadlineError, withDeadline } from "../runtime/deadline.ts";
import { backoffMs } from "../runtime/random.ts";
import { toTime } from "../runtime/time.ts";
import { isNewBoot } from "./decide-return.ts";
import type { MarkChange } from "./marks.ts";
import { markPatch, outOfServiceOf, signature } from "./marks.ts";
import { getNode, patchNode } from "./node-writes.ts";
import { NOTHING_READ, recordFailedReading, recordReading } from "./power-seen.ts";
import { deviceProblem } from "./reasons.ts";
import { countBound, releasePods } from "./release.ts";
import { backupOf, restorePatch } from "./restore.ts";
import type { Session } from "./session.ts";
import { NODE_LEASE_NAMESPACE } from "./session.ts";
import type { Effect, Seen, SentOrder, Sibling } from "./snapshot.ts";
import type { FencedHost, HostOwner, HostPower, IdentityVerdict } from "./targets/host.ts";
import { DEVICE_FINAL_RETRY_MS, DEVICE_RETRY_MAX_MS, DEVICE_RETRY_MIN_MS } from "./timings.ts";

/** On every remediation that has begun: nothing of it is forgotten before it is taken back. */
export const FINALIZER = "ironfence.io/remediation";

/** What effects act on. */
export interface EffectContext {
  runtime: KubeRuntime;
  session: Session;
  /** Absent where the host cannot be found. */
  host: FencedHost | undefined;
  siblings: readonly Sibling[];
}

/**
 * Does one thing, once, and notes in the session what came of it. Failures of devices are noted, too; those of the API are
 * thrown as KubeErrors.
 */
export async function runEffect(context: EffectContext, effect: Effect, signal: AbortSignal): Promise<void> {
  const { session, runtime } = context;
  const { client } = runtime;
  const { nodeName } = session;
  const saw = (found: Partial<Seen>): void => {
    session.seen = { ...session.seen, ...found };
  };
  switch (effect.do) {
    case "addFinalizer":
      return setFinalizer(context, true, signal);
    case "dropFinalizer":
      return setFinalizer(context, false, signal);
    case "claimHost":
      return claimHost(context, signal);
    case "releaseHost":
      await context.host?.release(ownerOf(session), signal);
      return saw({ hostReleased: true });
    case "checkSuccessor":
      return checkSuccessor(context, signal);
    case "examine": {
      const identity = verifyIdentity(context, signal);
      try {
        const [node] = await Promise.all([getNode(client, nodeName, signal), readLease(context, signal)]);
        return saw({ examined: { node } });
      } finally {
        await identity;
      }
    }
    case "verifyIdentity":
      return verifyIdentity(context, signal);
    case "readLease":
      return readLease(context, signal);
    case "readPower":
      return readPower(context, effect.withinMs, signal);
    case "forceOff":
      return order(context, "ForceOff", effect.attemptId, signal);
    case "powerOn":
      return order(context, "On", effect.attemptId, signal);
    case "setBootOverride":
      return setBootOverride(context, effect.override, signal);
    case "closeDevices":
      await session.closeDevices();
      return saw({ devicesClosed: true });
    case "quarantine":
      await mark(context, { quarantine: "on" }, effect.attemptId, signal);
      return saw({ quarantined: true, marksCleared: false });
    case "taint":
      return putTaint(context, effect.attemptId, signal);
    case "untaint":
      await mark(context, { outOfService: "off" }, "", signal);
      return saw({ taint: undefined, taintCleared: true, released: false, drain: undefined });
    case "swapMarks":
      await mark(context, { outOfService: "off", quarantine: "on" }, effect.attemptId, signal);
      return saw({ swapped: true, taintCleared: true, quarantined: true, marksCleared: false });
    case "clearMarks":
      await mark(context, { outOfService: "off", quarantine: "off" }, "", signal);
      return saw({ taint: undefined, taintCleared: true, quarantined: false, marksCleared: true });
    case "liftQuarantine": {
      // The watch said that the node is back; the live node has to say so, too.
      const patchFor: Parameters<typeof patchNode>[2] = (node) =>
        isNewBoot(session, node) ? markPatch(node, { outOfService: "off", quarantine: "off" }, "") : [];
      const node = await patchNode(client, nodeName, patchFor, signal);
      return saw({ quarantineLifted: node !== undefined && isNewBoot(session, node) });
    }
    case "releasePods":
      await releasePods(runtime, nodeName, effect.withinMs, signal);
      return saw({ released: true });
    case "checkDrained": {
      const bound = await countBound(client, nodeName, signal);
      const checks = (session.seen.drain?.checks ?? 0) + 1;
      // What is left may need a further deletion: a pod changed while it was being deleted, or was bound only now.
      return saw({ drain: { ...bound, checks, atMs: session.now().monotonicMs }, released: bound.pods === 0 });
    }
    case "backupNode": {
      const node = await getNode(client, nodeName, signal);
      if (node === undefined || node.metadata.uid !== session.status.node?.uid) return saw({ nodeDeleted: true });
      const { resourceVersion } = node.metadata;
      return saw({ backup: { status: backupOf(node, session.status.backup), resourceVersion } });
    }
    case "deleteNode":
      return deleteNode(context, signal);
    case "restoreNode": {
      const { backup } = session.status;
      if (backup === undefined) return;
      const patchFor: Parameters<typeof patchNode>[2] = (node) =>
        node.metadata.uid === backup.nodeUID ? [] : restorePatch(node, backup);
      const node = await patchNode(client, nodeName, patchFor, signal);
      return saw({ restoredUid: node?.metadata.uid });
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
      return saw({ rebootRecorded: true });
    }
  }
}

/** The remediation as the owner of a host. */
export function ownerOf(session: Session): HostOwner {
  const { uid, name, namespace = "" } = session.remediation.metadata;
  return { uid, kind: BARE_METAL_REMEDIATIONS.kind, namespace, name };
}

async function setFinalizer({ runtime, session }: EffectContext, wanted: boolean, signal: AbortSignal): Promise<void> {
  const { metadata } = session.remediation;
  const others = (metadata.finalizers ?? []).filter((name) => name !== FINALIZER);
  const guard = { uid: metadata.uid, resourceVersion: metadata.resourceVersion };
  const value = wanted ? [...others, FINALIZER] : others;
  session.remediation = await runtime.client.patch<BareMetalRemediation>(
    BARE_METAL_REMEDIATIONS,
    keyOf(session.remediation),
    guard,
    [{ op: "add", path: "/metadata/finalizers", value }],
    {},
    signal,
  );
}

async function claimHost(context: EffectContext, signal: AbortSignal): Promise<void> {
  const { session, host } = context;
  if (host === undefined) return;
  let claim = await host.claim(ownerOf(session), signal);
  let owner: BareMetalRemediation | undefined;
  if (!claim.owned && claim.by.kind === BARE_METAL_REMEDIATIONS.kind) {
    const { by } = claim;
    owner = await liveRemediation(context, by, signal);
    if (owner === undefined) {
      // Its finalizer was removed by force: nobody is left to give the host up.
      context.runtime.logger.warn({ ...fieldsOf(session), owner: by.uid }, "the host's owner is gone, taking over");
      await host.release(by, signal);
      claim = await host.claim(ownerOf(session), signal);
    }
  }
  const atMs = session.now().monotonicMs;
  const seen = claim.owned
    ? ({ owned: true } as const)
    : ({ owned: false, by: claim.by, undoing: owner?.status?.phase === "Undoing", atMs } as const);
  session.seen = { ...session.seen, claim: seen, ...(claim.owned && { hostReleased: false }) };
}

/** The live object of that UID; undefined where it is gone. */
async function liveRemediation(
  { runtime }: EffectContext,
  ref: Pick<HostOwner, "uid" | "namespace" | "name">,
  signal: AbortSignal,
): Promise<BareMetalRemediation | undefined> {
  try {
    const { namespace, name } = ref;
    const live = await runtime.client.get<BareMetalRemediation>(BARE_METAL_REMEDIATIONS, { namespace, name }, signal);
    return live.metadata.uid === ref.uid ? live : undefined;
  } catch (error) {
    if (isKubeError(error, "NotFound")) return undefined;
    throw error;
  }
}

/**
 * Whether another remediation waits for this host, by live looks: one that began to end before our own undo was stored would
 * not take the host, and one that ends later sees our undo and waits for it.
 */
async function checkSuccessor(context: EffectContext, signal: AbortSignal): Promise<void> {
  const { session } = context;
  let waiting = false;
  for (const sibling of context.siblings) {
    if (waiting || !sibling.waiting) continue;
    const live = await liveRemediation(context, sibling, signal);
    waiting = live !== undefined && isWaiting(live);
  }
  session.seen = { ...session.seen, successor: { waiting, atMs: session.now().monotonicMs } };
}

/** Whether a remediation waits for a host that another one owns. */
export function isWaiting({ metadata, status }: BareMetalRemediation): boolean {
  return (
    metadata.deletionTimestamp === undefined && status?.phase === "Resolving" && status.attempt?.action === "Inherited"
  );
}

async function readLease({ runtime, session }: EffectContext, signal: AbortSignal): Promise<void> {
  const key = { namespace: NODE_LEASE_NAMESPACE, name: session.nodeName };
  let lease: Lease | undefined;
  try {
    lease = await runtime.client.get<Lease>(LEASES, key, signal);
  } catch (error) {
    if (!isKubeError(error, "NotFound")) throw error;
  }
  session.recordLease(lease, session.now().monotonicMs);
}

async function mark(
  { runtime, session }: EffectContext,
  change: MarkChange,
  attemptId: string,
  signal: AbortSignal,
): Promise<void> {
  // All that ironfence has signed on the node is ours while the host is; else only what bears our own UID.
  const ownedBy = session.seen.claim?.owned === true ? undefined : session.uid;
  const signedBy = signature(session.uid, attemptId);
  await patchNode(runtime.client, session.nodeName, (node) => markPatch(node, change, signedBy, ownedBy), signal);
}

async function putTaint({ runtime, session }: EffectContext, attemptId: string, signal: AbortSignal): Promise<void> {
  const { uid } = session.status.node ?? {};
  const signedBy = signature(session.uid, attemptId);
  // A Node object of another UID has joined since: it is not the one that was fenced.
  const patchFor: Parameters<typeof patchNode>[2] = (node) =>
    node.metadata.uid === uid ? markPatch(node, { outOfService: "on" }, signedBy) : [];
  const node = await patchNode(runtime.client, session.nodeName, patchFor, signal);
  const whose = node === undefined || node.metadata.uid !== uid ? "None" : outOfServiceOf(node);
  session.seen = {
    ...session.seen,
    taint: { attemptId, found: whose === "None" ? "NoNode" : whose },
    taintCleared: false,
    swapped: false,
    marksCleared: false,
  };
}

async function deleteNode({ runtime, session }: EffectContext, signal: AbortSignal): Promise<void> {
  const { backup } = session.seen;
  if (backup === undefined) return;
  try {
    const guard = { uid: backup.status.nodeUID, resourceVersion: backup.resourceVersion };
    await runtime.client.delete(NODES, { name: session.nodeName }, { guard }, signal);
    session.seen = { ...session.seen, nodeDeleted: true };
  } catch (error) {
    if (isKubeError(error, "NotFound")) session.seen = { ...session.seen, nodeDeleted: true };
    // Somebody changed the node since it was saved: save it anew.
    else if (isKubeError(error, "Conflict")) session.seen = { ...session.seen, backup: undefined };
    else throw error;
  }
}

// Devices.

async function verifyIdentity(context: EffectContext, signal: AbortSignal): Promise<void> {
  const { session } = context;
  const node = session.seen.examined?.node;
  const verdict = await onDevice<IdentityVerdict>(context, signal, (power) => power.verifyIdentity(node, signal));
  if ("value" in verdict) {
    session.seen = { ...session.seen, identity: { verdict: verdict.value, atMs: session.now().monotonicMs } };
  }
}

async function readPower(context: EffectContext, withinMs: number | undefined, signal: AbortSignal): Promise<void> {
  const { session, runtime } = context;
  const reading = await onDevice(context, signal, (power) =>
    withinMs === undefined
      ? power.readPower(signal)
      : withDeadline(runtime.clock, "the reading of the power state", withinMs, signal, (bounded) =>
          power.readPower(bounded),
        ),
  );
  const { power } = session.seen;
  const atMs = session.now().monotonicMs;
  const next = "value" in reading ? recordReading(power, reading.value, atMs) : recordFailedReading(power, atMs);
  session.seen = { ...session.seen, power: next };
}

/** Sends one power order. Its intent is stored and the identity verified; both are used up by it, whatever comes of it. */
async function order(
  context: EffectContext,
  action: SentOrder["action"],
  attemptId: string,
  signal: AbortSignal,
): Promise<void> {
  const { session, runtime } = context;
  const previous = session.seen.order;
  session.seen = { ...session.seen, identity: undefined, power: NOTHING_READ };
  runtime.logger.info({ ...fieldsOf(session), action, attempt: attemptId }, "power order");
  const sent = await onDevice(context, signal, (power) =>
    action === "ForceOff" ? power.forceOff(signal) : power.on(signal),
  );
  const outcome = "error" in sent ? outcomeOf(sent.error, previous) : "Acknowledged";
  const atMs = session.now().monotonicMs;
  session.seen = { ...session.seen, order: { attemptId, action, outcome, atMs } };
}

/**
 * What a failed order came to. One that got no connection was not sent, or its connection broke: it is sent again once; a
 * BMC that does so every time (it restarts, it drops connections) is believed by its state.
 */
function outcomeOf(error: unknown, previous: SentOrder | undefined): SentOrder["outcome"] {
  const code = error instanceof BmcError ? error.code : undefined;
  if (code === "Timeout" || code === "BadResponse") return "Uncertain";
  return code === "Unreachable" && previous?.outcome === "Rejected" ? "Uncertain" : "Rejected";
}

async function setBootOverride(
  context: EffectContext,
  override: "NetworkOnce" | "None",
  signal: AbortSignal,
): Promise<void> {
  const { session } = context;
  const read = await onDevice(context, signal, async (power) => {
    await power.setBootOverride(override, signal);
    const present = await power.readBootOverride(signal);
    if (present !== override) {
      throw new BmcError("Refused", `the BMC took the boot override ${override}, but reports ${present}`);
    }
    return present;
  });
  if ("value" in read) session.seen = { ...session.seen, override: read.value };
}

/** Calls the host's devices, opening them where needed, and notes failure or success for the back-off. */
async function onDevice<T>(
  context: EffectContext,
  signal: AbortSignal,
  call: (power: HostPower) => Promise<T>,
): Promise<{ value: T } | { error: unknown }> {
  const { session, host, runtime } = context;
  try {
    if (host === undefined) throw new BmcError("Unreachable", "the host's FencingTarget is gone");
    session.power ??= await host.open(signal);
    session.seen = { ...session.seen, devicesClosed: false };
    const value = await call(session.power);
    session.seen = { ...session.seen, device: undefined };
    return { value };
  } catch (error) {
    if (signal.aborted) throw abortReason(signal);
    const known = error instanceof DeadlineError ? new BmcError("Timeout", error.message, { cause: error }) : error;
    const problem = deviceProblem(known);
    if (problem === undefined) throw error;
    const failures = (session.seen.device?.failures ?? 0) + 1;
    const inMs = problem.final
      ? DEVICE_FINAL_RETRY_MS
      : backoffMs(runtime.random, DEVICE_RETRY_MIN_MS, DEVICE_RETRY_MAX_MS, failures - 1);
    const retryAtMs = session.now().monotonicMs + inMs;
    session.seen = { ...session.seen, device: { ...problem, failures, retryAtMs } };
    runtime.logger.warn({ ...fieldsOf(session), reason: problem.reason, failures, err: known }, "device call failed");
    // Opened anew next time: with fresh credentials, and without a session that the BMC may have forgotten.
    await session.closeDevices();
    return { error: known };
  }
}

/** What stands in every log line about a remediation. */
export function fieldsOf(session: Session): { remediation: string; uid: string; node: string } {
  const { namespace = "", name } = session.remediation.metadata;
  return { remediation: `${namespace}/${name}`, uid: session.uid, node: session.nodeName };
}
