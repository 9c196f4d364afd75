import type { FencingTarget, FencingTargetStatus, OffProof } from "../../api/ironfence/fencing-target.ts";
import type { Condition } from "../../api/schema/meta.ts";
import type { Outage } from "../../api/kubernetes/outage.ts";
import { isSameOutage } from "../../api/kubernetes/outage.ts";
import { parseBmcAddress } from "../../bmc/interface/address.ts";
import type { PowerState } from "../../bmc/interface/driver.ts";
import type { IdentityVerdict } from "../../bmc/devices/topology.ts";
import { levelPower } from "../../bmc/devices/topology.ts";
import { parseTimeMs, toTime } from "../../runtime/time.ts";
import { expectedIdentity, identityJudge } from "../hosts/model/identity.ts";
import type { Conflict } from "../hosts/fencing-target/target-index.ts";
import type { StatusChange } from "../hosts/fencing-target/target-store.ts";
import { PROBE_TIME_WRITE_MS } from "./probe-intervals.ts";
import type { DeviceProbe, ProbeResult } from "./probe-result.ts";
import { readyOf } from "../hosts/fencing-target/target-store.ts";

// What the status of a FencingTarget reports about a probe. Pure; docs/reference/target-reasons.md explains every
// reason to users.

/** Everything from which the status is computed. */
export interface TargetStatusFacts {
  target: FencingTarget;
  /** Why the target is ambiguous; undefined if it is not. */
  conflict: Conflict | undefined;
  /**
   * Why the target names no node; undefined if the node exists, or if its cluster cannot be read.
   */
  nodeMissing: string | undefined;
  /** The system UUID that the node reports. */
  nodeSystemUUID: string | undefined;
  /**
   * The last probe of the present spec; undefined if there was none yet. `readyBoot`: the boot of the node before it,
   * if it was Ready.
   */
  probe: { result: ProbeResult; atMs: number; readyBoot?: string | undefined } | undefined;
  /** The outage of its node for which a health check requests a proof of Off; undefined if there is none. */
  outage: Outage | undefined;
}

type ConditionVerdict = Pick<Condition, "status" | "reason" | "message">;

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
  const identity = probe === undefined ? undefined : identityOf(target, facts, probe.result.devices);
  const ready = readiness(target, facts, reachable, identity);
  const conditions = mergeConditions(present?.conditions ?? [], target.metadata.generation, nowMs, {
    ...(reachable !== undefined && { Reachable: reachable }),
    ...(identity !== undefined && { IdentityVerified: identity }),
    ...(ready !== undefined && { Ready: ready, Stalled: stalled(ready) }),
  });
  // The power of another host must not be reported here.
  const powerState = identity?.status === "False" ? "Unknown" : probe && powerOf(probe.result.devices);
  const offProof = standingProof(facts, proven, ready);
  const onInBoot = powerState === "On" && identity?.status === "True" ? probe?.readyBoot : undefined;
  const notAfter = probe === undefined ? present?.certificateNotAfter : notAfterOf(probe.result.devices, present);
  const generation = target.metadata.generation;
  const same =
    sameProof(offProof, present?.offProof) &&
    (onInBoot === undefined || onInBoot === present?.onInBoot) &&
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
    ...(offProof !== undefined && { offProof: { ...offProof, bootID: offProof.bootID ?? null } }),
    ...(offProof === undefined && present?.offProof !== undefined && { offProof: null }),
  };
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
 * For generic tools (kstatus), which interpret "not Ready" as progress: a target that is not Ready waits for the
 * operator.
 */
function stalled({ status, reason, message }: ConditionVerdict): ConditionVerdict {
  return status === "True" ? { status: "False", reason, message: "" } : { status: "True", reason, message };
}

/**
 * The proof that the host is off, while nothing contradicts it. A proof that an owner has removed is not restored: only
 * the check that follows a probe may add one.
 */
function standingProof(
  { target, outage }: TargetStatusFacts,
  proven: OffProof | undefined | "asBefore",
  ready: ConditionVerdict | undefined,
): OffProof | undefined {
  const proof = proven === "asBefore" ? target.status?.offProof : proven;
  const isUsable = ready?.status === "True" && target.status?.owner === undefined;
  return isUsable && isSameOutage(proof, outage) ? proof : undefined;
}

function sameProof(a: OffProof | undefined, b: OffProof | undefined): boolean {
  return a?.time === b?.time && (a === undefined || isSameOutage(a, b));
}

/** Whether a probe found everything that a fence needs. Otherwise the next probe is sooner. */
export function isHealthy(facts: TargetStatusFacts): boolean {
  if (facts.probe === undefined) return false;
  const { devices } = facts.probe.result;
  const answers = devices.flatMap((device) => (device.ok && device.obstacle === undefined ? [device.identity] : []));
  return answers.length === devices.length && identityJudge(withPin(facts), facts.nodeSystemUUID)(answers).verified;
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
 * Whether the status reports a problem that has ended, and no probe of this process can replace it. A refused login
 * waits for its time.
 */
export function isOutdated(facts: TargetStatusFacts): boolean {
  const { target, conflict, nodeMissing, probe } = facts;
  if (probe !== undefined || conflict !== undefined || nodeMissing !== undefined || target.spec.maintenance)
    return false;
  const reachable = target.status?.conditions?.find(({ type }) => type === "Reachable");
  const ready = readyOf(target.status);
  return ready !== undefined && WITHOUT_PROBE.has(ready.reason) && reachable?.reason !== "AuthenticationFailed";
}

/** The target as it will be when the pin of the probe is stored: the conditions are about that one. */
function withPin(facts: TargetStatusFacts): FencingTarget {
  const pin = facts.probe?.result.pin;
  if (pin === undefined) return facts.target;
  return { ...facts.target, status: { ...facts.target.status, identity: pin } };
}

function reachability(devices: readonly DeviceProbe[]): ConditionVerdict {
  const failed = devices.filter((device) => !device.ok);
  const [first] = failed;
  if (first === undefined) {
    const what = devices.length === 1 ? "the device answers" : `all ${devices.length} devices answer`;
    return { status: "True", reason: "Answering", message: what };
  }
  return { status: "False", reason: first.reason, message: failed.map(failureText).join("; ") };
}

function failureText(probe: DeviceProbe & { ok: false }): string {
  const advice = ADVICE[probe.reason]?.replaceAll("INDEX", String(probe.index));
  return advice === undefined ? probe.message : `${probe.message}: ${advice}`;
}

/** The next step for failures whose message cannot name the field of the target to change. */
const ADVICE: Partial<Record<(DeviceProbe & { ok: false })["reason"], string>> = {
  AuthenticationFailed:
    "correct the Secret of spec.devices[INDEX].credentialsSecretRef; these credentials are tried only rarely from now on, because more tries lock accounts",
  Unreachable:
    "correct spec.devices[INDEX].address if it is wrong, otherwise check the power and the network of the BMC",
  PrivilegeTooLow: "give the account the privilege to control power",
  TlsUntrusted: "correct spec.devices[INDEX].tls; compare the SHA-256 with the one that the console of the BMC shows",
  SystemNotFound: "correct the path in spec.devices[INDEX].address",
  SystemAmbiguous: "name the System in the path of spec.devices[INDEX].address",
};

function identityOf(
  target: FencingTarget,
  facts: TargetStatusFacts,
  devices: readonly DeviceProbe[],
): ConditionVerdict {
  const judge = identityJudge(target, facts.nodeSystemUUID);
  const answers = devices.flatMap((device) => (device.ok ? [device.identity] : []));
  if (answers.length === 0) {
    return { status: "Unknown", reason: "NoAnswer", message: "no device has answered, so the host cannot be verified" };
  }
  const verdict: IdentityVerdict = judge(answers);
  if (!verdict.verified) {
    if (verdict.reason === "Mismatch") return { status: "False", reason: "Mismatch", message: verdict.message };
    const reason = expectedIdentity(target) === undefined ? "NothingToCompare" : "NotReported";
    return { status: "Unknown", reason, message: verdict.message };
  }
  if (facts.conflict?.byReport === true) {
    return { status: "Unknown", reason: "NotUnique", message: facts.conflict.message };
  }
  const checked = identityJudge(required(target), facts.nodeSystemUUID)(answers).verified;
  return checked
    ? { status: "True", reason: "Matched", message: verdict.message }
    : { status: "Unknown", reason: "VerificationDisabled", message: verdict.message };
}

/** The target as if it did not waive its identity check. */
export function required(target: FencingTarget): FencingTarget {
  const identity = { ...target.spec.identity, verification: "Required" as const };
  return { ...target, spec: { ...target.spec, identity } };
}

function readiness(
  target: FencingTarget,
  facts: TargetStatusFacts,
  reachable: ConditionVerdict | undefined,
  identity: ConditionVerdict | undefined,
): ConditionVerdict | undefined {
  if (facts.conflict?.unread === true) {
    return { status: "False", reason: "BareMetalHostsUnreadable", message: facts.conflict.message };
  }
  if (facts.conflict !== undefined) return { status: "False", reason: "Ambiguous", message: facts.conflict.message };
  if (target.spec.maintenance) {
    return { status: "False", reason: "Maintenance", message: "spec.maintenance is true: no power order is sent" };
  }
  if (identity?.status === "False") return identity;
  if (facts.nodeMissing !== undefined) {
    const also = reachable?.status === "False" ? `. The devices cannot be used either: ${reachable.message}` : "";
    return { status: "False", reason: "NodeNotFound", message: `${facts.nodeMissing}${also}` };
  }
  if (facts.probe === undefined || reachable === undefined || identity === undefined) return undefined;
  const levels = [...Map.groupBy(facts.probe.result.devices, (device) => device.level).values()];
  const judge = identityJudge(target, facts.nodeSystemUUID);
  const usable = levels.some((level) => {
    const answers = level.flatMap((device) => (device.ok && device.obstacle === undefined ? [device.identity] : []));
    return answers.length === level.length && judge(answers).verified;
  });
  const obstacle = obstacleOf(facts.probe.result.devices);
  if (!usable) {
    const isIdentified = identity.status === "True" || identity.reason === "VerificationDisabled";
    const why = reachable.status === "False" ? reachable : isIdentified ? (obstacle ?? identity) : identity;
    return { ...why, status: "False" };
  }
  const broken = reachable.status === "False" ? reachable : obstacle;
  if (broken !== undefined) {
    const message = `the host can be fenced, but not by every level: ${broken.message}`;
    return { status: "True", reason: "Degraded", message };
  }
  return {
    status: "True",
    reason: "Usable",
    message: hasOneBmc(target) ? USABLE_WITH_POWER : "the host can be fenced",
  };
}

/** What would prevent a power-off or its proof although the device answers. */
function obstacleOf(devices: readonly DeviceProbe[]): ConditionVerdict | undefined {
  const obstacles = devices.flatMap((device) => (device.ok ? (device.obstacle ?? []) : []));
  const [first] = obstacles;
  if (first === undefined) return undefined;
  return { status: "False", reason: first.reason, message: obstacles.map(({ message }) => message).join("; ") };
}

/**
 * Unreachable is not off: a BMC that failed together with the power supply of its host proves nothing, and fencing
 * waits for the operator.
 */
const USABLE_WITH_POWER =
  "the host can be fenced while its BMC has power: if the power supply of the host also powers the BMC, a power failure stops both, unless another level of spec.devices has its own power";

/** Whether all devices are interfaces of one BMC, possibly with several protocols. */
function hasOneBmc(target: FencingTarget): boolean {
  const hosts = target.spec.devices.map((device) => {
    const address = parseBmcAddress(device.address);
    return address.protocol === "ipmi"
      ? address.hostname
      : new URL(address.origin).hostname.replace(/^\[(.*)\]$/, "$1");
  });
  return new Set(hosts).size === 1;
}

function powerOf(devices: readonly DeviceProbe[]): FencingTargetStatus["powerState"] {
  return decidingLevel(devices).state;
}

/** The power state according to the first level that reports one, and the devices of that level. */
export function decidingLevel(devices: readonly DeviceProbe[]): { level: DeviceProbe[]; state: PowerState } {
  const levels = [...Map.groupBy(devices, (device) => device.level)].toSorted(([a], [b]) => a - b);
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
  wanted: Partial<Record<"Reachable" | "IdentityVerified" | "Ready" | "Stalled", ConditionVerdict>>,
): Condition[] {
  const merged = new Map(present.map((condition) => [condition.type, condition]));
  for (const [type, verdict] of Object.entries(wanted)) {
    const before = merged.get(type);
    const lastTransitionTime = before?.status === verdict.status ? before.lastTransitionTime : toTime(nowMs);
    const { status, reason, message } = verdict;
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
