import type { FencingTargetStatus, OffProof } from "../../../api/ironfence/fencing-target.ts";
import type { Condition } from "../../../api/schema/meta.ts";
import { isSameOutage } from "../../../api/kubernetes/outage.ts";
import { isOutletAddress } from "../../../bmc/interface/address.ts";
import type { PowerState } from "../../../bmc/interface/driver.ts";
import { levelPower } from "../../../bmc/topology/level-readings.ts";
import { parseTimeMs, toTime } from "../../../runtime/time.ts";
import type { StatusChange } from "../../hosts/fencing-target/target-store.ts";
import { PROBE_TIME_WRITE_MS } from "../schedule/probe-intervals.ts";
import type { DeviceProbe } from "../schedule/probe-result.ts";
import { readyOf } from "../../hosts/fencing-target/target-store.ts";
import type { TargetStatusFacts, TargetCondition } from "./status-facts.ts";
import { withPin, reachability, identityCondition, readiness, stalled } from "./target-conditions.ts";
import { enrolmentOf, OUTLETS_ENROLLED } from "./outlet-conditions.ts";

/** If a host is off for this long, Kubernetes with its default settings no longer reports its node as Ready. */
const OFF_AND_READY_MAX_MS = 120_000;

/**
 * The change of the status of a target; undefined if it is up to date.
 *
 * @param proven the proof that a probe has just made, or undefined; `asBefore` if there was no probe since the last
 * check.
 */
export function statusChange(
  facts: TargetStatusFacts,
  proven: OffProof | undefined | "asBefore",
  nowMs: number,
): StatusChange | undefined {
  const { probe } = facts;
  const present = facts.target.status;
  const target = withPin(facts);
  const reachable = probe === undefined ? undefined : reachability(probe.result.devices);
  const identity = probe === undefined ? undefined : identityCondition(target, facts, probe.result.devices);
  const enrolled = enrolmentOf(target, facts);
  const ready = readiness(target, facts, reachable, identity);
  const before = (present?.conditions ?? []).filter(({ type }) => type !== OUTLETS_ENROLLED || enrolled !== undefined);
  const conditions = mergeConditions(before, target.metadata.generation, nowMs, {
    ...(reachable !== undefined && { Reachable: reachable }),
    ...(identity !== undefined && { IdentityVerified: identity }),
    ...(enrolled !== undefined && { [OUTLETS_ENROLLED]: enrolled }),
    ...(ready !== undefined && { Ready: ready, Stalled: stalled(ready) }),
  });
  // The power of another host must not be reported here.
  const powerState = identity?.status === "False" ? "Unknown" : probe && powerOf(probe.result.devices);
  const offProof = standingProof(facts, proven, ready);
  const onInBoot = powerState === "On" && identity?.status === "True" ? probe?.readyBoot : undefined;
  // What was read before the edit may be the power of another host.
  const isEdited = probe !== undefined && target.metadata.generation !== present?.observedGeneration;
  const isOutdated =
    present?.onInBoot !== undefined && ((isEdited && onInBoot === undefined) || readsOffTooLong(facts));
  const notAfter = probe === undefined ? present?.certificateNotAfter : notAfterOf(probe.result.devices, present);
  const generation = target.metadata.generation;
  const same =
    sameProof(offProof, present?.offProof) &&
    (onInBoot === undefined || onInBoot === present?.onInBoot) &&
    !isOutdated &&
    sameConditions(conditions, present?.conditions ?? []) &&
    (powerState === undefined || powerState === present?.powerState) &&
    notAfter === present?.certificateNotAfter &&
    target.status?.identity?.systemUUID === present?.identity?.systemUUID &&
    target.status?.identity?.nodeName === present?.identity?.nodeName &&
    (probe === undefined || (generation === present?.observedGeneration && !isProbeTimeOld(present, probe.atMs)));
  if (same) return undefined;
  return {
    conditions,
    ...(powerState !== undefined && { powerState }),
    ...(probe !== undefined && { lastProbeTime: toTime(probe.atMs) }),
    ...(probe !== undefined && generation !== undefined && { observedGeneration: generation }),
    ...(notAfter !== present?.certificateNotAfter && { certificateNotAfter: notAfter ?? null }),
    ...(probe?.result.pin !== undefined && { identity: probe.result.pin }),
    ...(onInBoot !== undefined && { onInBoot }),
    ...(isOutdated && { onInBoot: null }),
    ...(offProof !== undefined && { offProof: { ...offProof, bootID: offProof.bootID ?? null } }),
    ...(offProof === undefined && present?.offProof !== undefined && { offProof: null }),
  };
}

/** Whether this probe and an earlier one read Off while the node stayed Ready. The devices may report a wrong state. */
function readsOffTooLong({ target, probe }: TargetStatusFacts): boolean {
  const { powerState, lastProbeTime } = target.status ?? {};
  if (probe?.readyBoot === undefined || powerOf(probe.result.devices) !== "Off" || powerState !== "Off") return false;
  return probe.atMs - (parseTimeMs(lastProbeTime) ?? Infinity) > OFF_AND_READY_MAX_MS;
}

/**
 * When the first certificate expires. A certificate that a device has shown before counts until every device answers
 * again.
 */
function notAfterOf(devices: readonly DeviceProbe[], present: FencingTargetStatus | undefined): string | undefined {
  const isUnseen = devices.some(({ ok, certificateUntilMs }) => !ok && certificateUntilMs === undefined);
  const before = isUnseen ? parseTimeMs(present?.certificateNotAfter) : undefined;
  const shown = [...devices.map(({ certificateUntilMs }) => certificateUntilMs), before].flatMap((ms) => ms ?? []);
  return shown.length === 0 ? undefined : toTime(Math.min(...shown));
}

/**
 * The proof that the host is off, while nothing contradicts it. A proof that an owner has removed is not restored: only
 * the check that follows a probe may add one.
 */
function standingProof(
  { target, outage }: TargetStatusFacts,
  proven: OffProof | undefined | "asBefore",
  ready: TargetCondition | undefined,
): OffProof | undefined {
  const proof = proven === "asBefore" ? target.status?.offProof : proven;
  const isUsable = ready?.status === "True" && target.status?.owner === undefined;
  return isUsable && isSameOutage(proof, outage) ? proof : undefined;
}

function sameProof(a: OffProof | undefined, b: OffProof | undefined): boolean {
  return a?.time === b?.time && (a === undefined || isSameOutage(a, b));
}

/**
 * Reasons of Ready that do not depend on a probe. After one of them ends, only a probe shows the state of the target.
 */
const WITHOUT_PROBE: ReadonlySet<string> = new Set([
  "Ambiguous",
  "BareMetalHostsUnreadable",
  "Maintenance",
  "NodeNotFound",
]);

/**
 * Whether the status reports a problem that has ended, and this process has no probe yet to replace it. False if the
 * login was refused, because it must wait for its time.
 */
export function isOutdated(facts: TargetStatusFacts): boolean {
  const { target, conflict, nodeMissing, probe } = facts;
  if (probe !== undefined || conflict !== undefined || nodeMissing !== undefined || target.spec.maintenance)
    return false;
  const reachable = target.status?.conditions?.find(({ type }) => type === "Reachable");
  const ready = readyOf(target.status);
  return ready !== undefined && WITHOUT_PROBE.has(ready.reason) && reachable?.reason !== "AuthenticationFailed";
}

function powerOf(devices: readonly DeviceProbe[]): FencingTargetStatus["powerState"] {
  return decidingLevel(devices).state;
}

/**
 * The power state according to the first level that reports one, and the devices of that level. Outlets do not count:
 * one that is on shows nothing about the host, and one that was switched off by hand may not feed it any more.
 */
export function decidingLevel(devices: readonly DeviceProbe[]): { level: DeviceProbe[]; state: PowerState } {
  const ofHost = devices.filter(({ address }) => !isOutletAddress(address));
  const levels = [...Map.groupBy(ofHost, (device) => device.level)].toSorted(([a], [b]) => a - b);
  for (const [, level] of levels) {
    const readings = level.flatMap((device) => (device.ok ? [device.reading] : []));
    const { state } = levelPower(readings, level.length);
    if (state !== "Unknown") return { level, state };
  }
  return { level: [], state: "Unknown" };
}

/**
 * The conditions with those of `wanted` added or replaced. The time of a condition changes only with its status
 * (`metav1.Condition`).
 */
function mergeConditions(
  present: readonly Condition[],
  generation: number | undefined,
  nowMs: number,
  wanted: Partial<Record<"Reachable" | "IdentityVerified" | "OutletsEnrolled" | "Ready" | "Stalled", TargetCondition>>,
): Condition[] {
  const merged = new Map(present.map((condition) => [condition.type, condition]));
  for (const [type, condition] of Object.entries(wanted)) {
    const before = merged.get(type);
    const lastTransitionTime = before?.status === condition.status ? before.lastTransitionTime : toTime(nowMs);
    const { status, reason, message } = condition;
    merged.set(type, {
      type,
      status,
      reason,
      message,
      lastTransitionTime,
      ...(generation !== undefined && { observedGeneration: generation }),
    });
  }
  return [...merged.values()];
}

function sameConditions(a: readonly Condition[], b: readonly Condition[]): boolean {
  return (
    a.length === b.length &&
    a.every((condition, i) => {
      const other = b[i];
      return (
        condition.type === other?.type &&
        condition.status === other.status &&
        condition.reason === other.reason &&
        condition.message === other.message &&
        condition.observedGeneration === other.observedGeneration
      );
    })
  );
}

function isProbeTimeOld(present: FencingTargetStatus | undefined, probedAtMs: number): boolean {
  const writtenMs = parseTimeMs(present?.lastProbeTime);
  return writtenMs === undefined || probedAtMs - writtenMs >= PROBE_TIME_WRITE_MS;
}
