import { BARE_METAL_REMEDIATIONS } from "../../api/bare-metal-remediation.ts";
import type { FencingTarget, FencingTargetStatus, TargetOutcome } from "../../api/fencing-target.ts";
import { FENCING_TARGETS } from "../../api/fencing-target.ts";
import type { Condition } from "../../api/meta.ts";
import { isKubeError, KubeError } from "../../kube/errors.ts";
import type { KubeObject, ResourceType } from "../../kube/resource.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import { toTime } from "../../runtime/time.ts";
import { STATE_VERSION } from "../machine/model/state.ts";
import type { FencedHost } from "./host.ts";
import type { HostOwner } from "../machine/model/host-facts.ts";

// Every write to a FencingTarget's status. Each is a compare-and-swap on the live object, so no two owners can both win.

/** Tries of one write before its last error is the caller's: each lost one means that somebody else's got through. */
const WRITE_TRIES_MAX = 6;

type TargetRef = FencedHost["ref"];

/**
 * Takes the host for `owner`, unless another live remediation has it.
 *
 * An owner is no longer live, and is replaced, once its CR is gone (by UID), or has its final condition: an owner sends its
 * last order and takes its marks off before it writes that, and a CR leaves only through our finalizer, which undoes what was
 * begun. A successor trusts nothing of what was before: it proves the host off anew. An owner of a kind that is not known here
 * is live.
 *
 * @throws KubeError, NotFound where the target is gone or was made anew.
 */
export async function claimTarget(
  runtime: KubeRuntime,
  ref: TargetRef,
  owner: HostOwner,
  signal: AbortSignal,
): ReturnType<FencedHost["claim"]> {
  const { uid, kind, namespace, name } = owner;
  let rival: HostOwner | undefined;
  await updateTargetStatus(
    runtime,
    ref,
    async ({ status }) => {
      const present = status?.owner;
      rival = undefined;
      if (present?.uid === uid) return undefined;
      if (present !== undefined && (await isLive(runtime, present, signal))) {
        rival = { uid: present.uid, kind: present.kind, namespace: present.namespace, name: present.name };
        return undefined;
      }
      // An owner switches the host: from now on what was read before proves nothing.
      const since = toTime(runtime.clock.nowMs());
      return { owner: { uid, kind, namespace, name, since, stateVersion: STATE_VERSION }, offProof: null };
    },
    signal,
  );
  return rival === undefined ? { owned: true } : { owned: false, by: rival };
}

/** Outcomes that a target keeps. */
const OUTCOMES_MAX = 10;

/** Gives the host up if `owner` has it, and keeps what that has come to. A target that is gone has no owner. */
export async function releaseTarget(
  runtime: KubeRuntime,
  ref: TargetRef,
  owner: HostOwner,
  outcome: TargetOutcome | undefined,
  signal: AbortSignal,
): Promise<void> {
  try {
    await updateTargetStatus(
      runtime,
      ref,
      ({ status }) => {
        if (status?.owner?.uid !== owner.uid) return undefined;
        if (outcome === undefined) return { owner: null };
        // A process that was killed right after this write gives the host up once more.
        const others = (status.outcomes ?? []).filter(({ remediation }) => remediation.uid !== outcome.remediation.uid);
        return { owner: null, outcomes: [outcome, ...others].slice(0, OUTCOMES_MAX) };
      },
      signal,
    );
  } catch (error) {
    if (!isKubeError(error, "NotFound")) throw error;
  }
}

/** Records a reboot that was proven off. */
export async function recordReboot(
  runtime: KubeRuntime,
  ref: TargetRef,
  reboot: NonNullable<FencedHost["lastReboot"]>,
  signal: AbortSignal,
): Promise<void> {
  const { time, offConfirmedAt, nodeUID = null, bootID = null } = reboot;
  await updateTargetStatus(runtime, ref, () => ({ lastReboot: { time, offConfirmedAt, nodeUID, bootID } }), signal);
}

/** Fields of a status to set; `null` removes one (RFC 7386), and an object is merged into what is there. */
export type StatusChange = { [Field in keyof FencingTargetStatus]?: Merge<FencingTargetStatus[Field]> | null };
type Merge<T> = T extends readonly unknown[] ? T : T extends object ? { [Field in keyof T]: T[Field] | null } : T;

/**
 * Reads the live target, asks `change` what to set in its status, and sets that in the very version that was read; again from
 * the start where somebody else's write came in between, or the answer to ours was lost.
 *
 * @param change must be safe to ask several times; undefined leaves the target as it is.
 * @param seen a version that was read before: it saves one read, and a stale one costs one more try.
 */
export async function updateTargetStatus(
  runtime: KubeRuntime,
  ref: TargetRef,
  change: (target: FencingTarget) => StatusChange | undefined | Promise<StatusChange | undefined>,
  signal: AbortSignal,
  seen?: FencingTarget,
): Promise<void> {
  const key = { namespace: ref.namespace, name: ref.name };
  let known = seen;
  for (let tries = 1; ; tries++) {
    const target = requireSame(known ?? (await runtime.client.get<FencingTarget>(FENCING_TARGETS, key, signal)), ref);
    known = undefined;
    const { uid, resourceVersion } = target.metadata;
    const status = await change(target);
    if (status === undefined) return;
    try {
      const options = { subresource: "status" };
      await runtime.client.mergePatch(FENCING_TARGETS, key, { uid, resourceVersion }, { status }, options, signal);
      return;
    } catch (error) {
      if (tries >= WRITE_TRIES_MAX || !isKubeError(error, "Conflict", "Network", "Timeout")) throw error;
    }
  }
}

/** Reads the target live. @throws KubeError, NotFound where it is gone or was made anew. */
export async function readTarget(runtime: KubeRuntime, ref: TargetRef, signal: AbortSignal): Promise<FencingTarget> {
  const key = { namespace: ref.namespace, name: ref.name };
  return requireSame(await runtime.client.get<FencingTarget>(FENCING_TARGETS, key, signal), ref);
}

function requireSame(target: FencingTarget, ref: TargetRef): FencingTarget {
  if (target.metadata.uid === ref.uid) return target;
  throw new KubeError("NotFound", `FencingTarget ${ref.namespace}/${ref.name} was deleted and created again`);
}

/** The kinds that own hosts. */
const OWNER_TYPES: readonly ResourceType[] = [BARE_METAL_REMEDIATIONS];

/** Whether an owner may still send a power order. @throws KubeError where that cannot be found out. */
export async function isLive(runtime: KubeRuntime, owner: HostOwner, signal: AbortSignal): Promise<boolean> {
  const type = OWNER_TYPES.find((type) => type.kind === owner.kind);
  if (type === undefined) return true;
  const key = { namespace: owner.namespace, name: owner.name };
  try {
    const found = await runtime.client.get<KubeObject & { status?: { conditions?: Condition[] } }>(type, key, signal);
    if (found.metadata.uid !== owner.uid) return false;
    const succeeded = found.status?.conditions?.find((condition) => condition.type === "Succeeded");
    return succeeded === undefined || succeeded.status === "Unknown";
  } catch (error) {
    if (isKubeError(error, "NotFound")) return false;
    throw error;
  }
}

/** The Ready condition, where there is one. */
export function readyOf(status: Pick<FencingTargetStatus, "conditions"> | undefined): Condition | undefined {
  return status?.conditions?.find((condition) => condition.type === "Ready");
}
