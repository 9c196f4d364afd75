import type { BareMetalRemediation } from "../../../api/ironfence/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../../../api/ironfence/bare-metal-remediation.ts";
import { isKubeError, KubeError } from "../../../kube/errors.ts";
import { abortReason } from "../../../runtime/clock.ts";
import { DeadlineError, withDeadline } from "../../../runtime/deadline.ts";
import type { EffectContext, EffectSession } from "../context/effect-context.ts";
import { fieldsOf } from "../context/effect-context.ts";
import type { FencedHost } from "../../hosts/model/host.ts";
import { RECLAIM_MAX_MS } from "../../machine/model/decision/timings.ts";
import type { HostOwner } from "../../machine/model/facts/host-facts.ts";

/** The remediation as the owner of a host. */
export function ownerOf(session: EffectSession): HostOwner {
  const { uid, name, namespace = "" } = session.remediation.metadata;
  return { uid, kind: BARE_METAL_REMEDIATIONS.kind, namespace, name };
}

/** Claims the host, even from an owner that was deleted, or reports which other owner has it. */
export async function claimHost(context: EffectContext, signal: AbortSignal): Promise<void> {
  const { session, host } = context;
  if (host === undefined) return;
  if (!isOnRecord(session, host)) return takeHost(context, host, signal);
  try {
    await inTime(context, host, signal, (bounded) => takeHost(context, host, bounded));
  } catch (error) {
    if (signal.aborted || !(await isUnreadable(context, host, signal))) throw error;
    context.runtime.logger.warn(
      { ...fieldsOf(session), err: error },
      "cannot read the target of the host: the remediation keeps the host that its status records",
    );
    session.observe({ type: "HostClaimed", targetUid: host.ref.uid });
  }
}

async function inTime<T>(
  { runtime }: EffectContext,
  { ref }: FencedHost,
  signal: AbortSignal,
  call: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const what = `reading ${ref.kind} ${ref.namespace}/${ref.name}`;
  try {
    return await withDeadline(runtime.clock, what, RECLAIM_MAX_MS, signal, call);
  } catch (error) {
    throw error instanceof DeadlineError ? new KubeError("Timeout", error.message, { cause: error }) : error;
  }
}

/** Whether it is the target that cannot be read, and not, for example, the remediation that owns it. */
async function isUnreadable(context: EffectContext, host: FencedHost, signal: AbortSignal): Promise<boolean> {
  try {
    await inTime(context, host, signal, (bounded) => host.readMaintenance(bounded));
    return false;
  } catch (error) {
    if (signal.aborted) throw abortReason(signal);
    return isKubeError(error) && !isKubeError(error, "NotFound");
  }
}

/**
 * Whether the host belongs to this remediation according to stored and watched state. No other remediation claims a
 * host from one that is under way. The host is therefore still ours if its target cannot be read, and must not stay
 * off because of that. A power-off waits nevertheless, because its holds cannot be checked.
 */
function isOnRecord({ status, uid, observations }: EffectSession, { ref, owner }: FencedHost): boolean {
  return status.target?.uid === ref.uid && owner?.uid === uid && !observations.hostReleased;
}

async function takeHost(context: EffectContext, host: FencedHost, signal: AbortSignal): Promise<void> {
  const { session } = context;
  let claim = await host.claim(ownerOf(session), signal);
  let owner: BareMetalRemediation | undefined;
  if (!claim.owned && claim.by.kind === BARE_METAL_REMEDIATIONS.kind) {
    const { by } = claim;
    owner = await readRemediation(context, by, signal);
    if (owner === undefined) {
      // Its finalizer was removed by force, so it will not release the host itself.
      context.runtime.logger.warn({ ...fieldsOf(session), owner: by.uid }, "the host's owner is gone, taking over");
      await host.release(by, { asItIs: true, outcome: undefined }, signal);
      claim = await host.claim(ownerOf(session), signal);
    }
  }
  if (claim.owned) return session.observe({ type: "HostClaimed", targetUid: host.ref.uid });
  const undoing = owner?.status?.phase === "Undoing";
  session.observe({ type: "HostClaimRefused", by: claim.by, undoing, atMs: session.now().monotonicMs });
}

/** The live remediation with that UID; undefined if it is gone. */
async function readRemediation(
  { runtime }: EffectContext,
  ref: Pick<HostOwner, "uid" | "namespace" | "name">,
  signal: AbortSignal,
): Promise<BareMetalRemediation | undefined> {
  try {
    const { namespace, name } = ref;
    const current = await runtime.client.get<BareMetalRemediation>(
      BARE_METAL_REMEDIATIONS,
      { namespace, name },
      signal,
    );
    return current.metadata.uid === ref.uid ? current : undefined;
  } catch (error) {
    if (isKubeError(error, "NotFound")) return undefined;
    throw error;
  }
}

/**
 * Whether another remediation waits for this host, by live reads. No such remediation is missed: one that began to end
 * before our undo was stored does not take the host, and one that begins to end later sees our undo and waits for it.
 */
export async function checkSuccessor(context: EffectContext, signal: AbortSignal): Promise<void> {
  const { session } = context;
  let waiting = false;
  for (const sibling of context.siblings) {
    if (waiting || !sibling.waiting) continue;
    const current = await readRemediation(context, sibling, signal);
    waiting = current !== undefined && isWaiting(current);
  }
  session.observe({ type: "SuccessorChecked", waiting, atMs: session.now().monotonicMs });
}

/** Whether a remediation waits for a host that another one owns. */
export function isWaiting({ metadata, status }: BareMetalRemediation): boolean {
  return (
    metadata.deletionTimestamp === undefined && status?.phase === "Resolving" && status.attempt?.action === "Inherited"
  );
}
