import type { FencingTarget, FencingTargetStatus, TargetOutcome } from "../../../api/ironfence/fencing-target.ts";
import { FENCING_TARGETS } from "../../../api/ironfence/fencing-target.ts";
import type { Condition } from "../../../api/schema/meta.ts";
import { isKubeError, KubeError } from "../../../kube/errors.ts";
import type { KubeRuntime } from "../../../kube/runtime.ts";
import { toTime } from "../../../runtime/time.ts";
import { STATE_VERSION } from "../../machine/model/decision/state.ts";
import type { FencedHost } from "../model/host.ts";
import type { HostOwner } from "../../machine/model/facts/host-facts.ts";
import type { Reason } from "../../machine/model/decision/reasons.ts";
import { isActiveOwner } from "../model/active-owner.ts";

// All writes to the status of a FencingTarget. Each is a compare-and-swap on the live object, so that two owners cannot
// both win.

/** How often one write is tried before its last error is thrown. Each conflict means that another write succeeded. */
const WRITE_TRIES_MAX = 6;

type TargetRef = FencedHost["ref"];

/**
 * Claims the host for `owner`, unless another live remediation has it.
 *
 * An owner is no longer live, and is replaced, if its object is gone (by UID) or has its final condition. An owner
 * sends its last order and removes its marks before it writes that condition, and the object disappears only through
 * our finalizer, which undoes what was begun. The next owner relies on nothing from before: it proves the host off
 * again. An owner of an unknown kind is live.
 *
 * @param watched saves a read if it has no owner: the claim is guarded by its version, so a stale one claims nothing.
 * @throws KubeError, NotFound if the target was deleted, or deleted and created again.
 */
export async function claimTarget(
  runtime: KubeRuntime,
  ref: TargetRef,
  owner: HostOwner,
  signal: AbortSignal,
  watched?: FencingTarget,
): ReturnType<FencedHost["claim"]> {
  const { uid, kind, namespace, name } = owner;
  let otherOwner: HostOwner | undefined;
  await updateTargetStatus(
    runtime,
    ref,
    async ({ status }) => {
      const present = status?.owner;
      otherOwner = undefined;
      if (present?.uid === uid) return undefined;
      if (present !== undefined && (await isActiveOwner(runtime, present, signal))) {
        otherOwner = { uid: present.uid, kind: present.kind, namespace: present.namespace, name: present.name };
        return undefined;
      }
      // An owner powers the host off and on: what was read before proves nothing from now on.
      const since = toTime(runtime.clock.nowMs());
      return {
        owner: { uid, kind, namespace, name, since, stateVersion: STATE_VERSION },
        offProof: null,
        earlyOffProof: null,
      };
    },
    signal,
    watched?.status?.owner === undefined ? watched : undefined,
  );
  return otherOwner === undefined ? { owned: true } : { owned: false, by: otherOwner };
}

/** The reason of an outcome that shows that a proof of this target was wrong. */
const WRONG_HOST: Reason = "WrongHost";
/** How many outcomes a target keeps. */
const OUTCOMES_MAX = 10;

/** Releases the claim if `owner` has it, and keeps the outcome. A target that is gone has no owner. */
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
      ({ status, metadata: { generation } }) => {
        if (status?.owner?.uid !== owner.uid) return undefined;
        if (outcome === undefined) return { owner: null };
        // If the process is killed right after this write, the next one releases the host again with the same outcome.
        const others = (status.outcomes ?? []).filter(({ remediation }) => remediation.uid !== outcome.remediation.uid);
        const isWrong = outcome.reason === WRONG_HOST && generation !== undefined;
        return {
          owner: null,
          outcomes: [outcome, ...others].slice(0, OUTCOMES_MAX),
          ...(isWrong && { wrongHost: { time: outcome.time, generation } }),
        };
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
 * Reads the live target, calls `change` for what to set in its status, and sets that in the version that was read. If
 * another write came in between, or the answer was lost, it starts again.
 *
 * @param change may be called several times; undefined leaves the target as it is.
 * @param lastRead a version that was read before. It saves one read; a stale one costs one more try.
 */
export async function updateTargetStatus(
  runtime: KubeRuntime,
  ref: TargetRef,
  change: (target: FencingTarget) => StatusChange | undefined | Promise<StatusChange | undefined>,
  signal: AbortSignal,
  lastRead?: FencingTarget,
): Promise<void> {
  const key = { namespace: ref.namespace, name: ref.name };
  let known = lastRead;
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

/** Reads the target live. @throws KubeError, NotFound if it was deleted, or deleted and created again. */
export async function readLiveTarget(
  runtime: KubeRuntime,
  ref: TargetRef,
  signal: AbortSignal,
): Promise<FencingTarget> {
  const key = { namespace: ref.namespace, name: ref.name };
  return requireSame(await runtime.client.get<FencingTarget>(FENCING_TARGETS, key, signal), ref);
}

function requireSame(target: FencingTarget, ref: TargetRef): FencingTarget {
  if (target.metadata.uid === ref.uid) return target;
  throw new KubeError("NotFound", `FencingTarget ${ref.namespace}/${ref.name} was deleted and created again`);
}

/** The Ready condition, if there is one. */
export function readyOf(status: Pick<FencingTargetStatus, "conditions"> | undefined): Condition | undefined {
  return status?.conditions?.find((condition) => condition.type === "Ready");
}
