import type { BareMetalRemediation } from "../api/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../api/bare-metal-remediation.ts";
import { isKubeError } from "../kube/errors.ts";
import type { EffectContext } from "./effect-context.ts";
import { fieldsOf } from "./effect-context.ts";
import type { Session } from "./session.ts";
import type { HostOwner } from "./targets/host.ts";

/** The remediation as the owner of a host. */
export function ownerOf(session: Session): HostOwner {
  const { uid, name, namespace = "" } = session.remediation.metadata;
  return { uid, kind: BARE_METAL_REMEDIATIONS.kind, namespace, name };
}

/** Takes the host, also from an owner that is gone for good, or notes who has it. */
export async function claimHost(context: EffectContext, signal: AbortSignal): Promise<void> {
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
      await host.release(by, { asItIs: true }, signal);
      claim = await host.claim(ownerOf(session), signal);
    }
  }
  const atMs = session.now().monotonicMs;
  const seen = claim.owned
    ? ({ owned: true, targetUid: host.ref.uid } as const)
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
export async function checkSuccessor(context: EffectContext, signal: AbortSignal): Promise<void> {
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
