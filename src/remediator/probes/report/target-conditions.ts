import type { FencingTarget } from "../../../api/ironfence/fencing-target.ts";
import { isOutletAddress, parseBmcAddress } from "../../../bmc/interface/address.ts";
import type { IdentityCheck } from "../../../bmc/identity/identity-check.ts";
import { expectedIdentity, identityJudge } from "../../hosts/model/identity.ts";
import { outletsOf } from "../../hosts/model/enrolment.ts";
import { enrolmentOf } from "./outlet-conditions.ts";
import type { TargetCondition, TargetStatusFacts } from "./status-facts.ts";
import type { DeviceProbe } from "../schedule/probe-result.ts";

// What the status of a FencingTarget reports about a probe. Pure; docs/reference/target-reasons.md explains every
// reason to users.

/**
 * For generic tools (kstatus), which interpret "not Ready" as progress: a target that is not Ready waits for the
 * operator.
 */
export function stalled({ status, reason, message }: TargetCondition): TargetCondition {
  return status === "True" ? { status: "False", reason, message: "" } : { status: "True", reason, message };
}

/** Whether a probe found everything that a fence needs. Otherwise the next probe is sooner. */
export function isHealthy(facts: TargetStatusFacts): boolean {
  if (facts.probe === undefined) return false;
  const { devices } = facts.probe.result;
  const usable = devices.flatMap((device) => (device.ok && device.obstacle === undefined ? [device] : []));
  if (usable.length < devices.length) return false;
  const target = withPin(facts);
  // If there are other devices, a missing enrolment does not count: the operator enrols outlets, so a sooner probe does
  // not help.
  const answers = usable.flatMap(({ outlet, identity }) => (outlet === undefined ? [identity] : []));
  return answers.length === 0
    ? enrolmentOf(target, facts)?.status === "True"
    : identityJudge(target, facts.nodeSystemUUID)(answers).verified;
}

/** The target with the pin of the probe, as it will be stored. The conditions describe that target. */
export function withPin(facts: TargetStatusFacts): FencingTarget {
  const pin = facts.probe?.result.pin;
  if (pin === undefined) return facts.target;
  return { ...facts.target, status: { ...facts.target.status, identity: pin } };
}

/** The condition `Reachable`: whether all devices answer. */
export function reachability(devices: readonly DeviceProbe[]): TargetCondition {
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

/** The condition `IdentityVerified`: whether the devices that answered belong to the host of the target. */
export function identityCondition(
  target: FencingTarget,
  facts: TargetStatusFacts,
  devices: readonly DeviceProbe[],
): TargetCondition {
  const judge = identityJudge(target, facts.nodeSystemUUID);
  const answers = devices.flatMap((device) => (device.ok && device.outlet === undefined ? [device.identity] : []));
  if (outletsOf(target).length === target.spec.devices.length) return identityByOutlets(target, facts);
  if (answers.length === 0) {
    return { status: "Unknown", reason: "NoAnswer", message: "no device has answered, so the host cannot be verified" };
  }
  const check: IdentityCheck = judge(answers);
  if (!check.verified) {
    if (check.reason === "Mismatch") return { status: "False", reason: "Mismatch", message: check.message };
    const reason = expectedIdentity(target) === undefined ? "NothingToCompare" : "NotReported";
    return { status: "Unknown", reason, message: check.message };
  }
  if (facts.conflict?.byReport === true) {
    return { status: "Unknown", reason: "NotUnique", message: facts.conflict.message };
  }
  const checked = identityJudge(required(target), facts.nodeSystemUUID)(answers).verified;
  return checked
    ? { status: "True", reason: "Matched", message: check.message }
    : { status: "Unknown", reason: "VerificationDisabled", message: check.message };
}

/** The identity of a host that only its outlets show. */
function identityByOutlets(target: FencingTarget, facts: TargetStatusFacts): TargetCondition {
  const none = { status: "Unknown", reason: "NoAnswer", message: "the target has no device" } as const;
  const enrolled = enrolmentOf(target, facts) ?? none;
  return enrolled.status === "True" ? enrolled : { ...enrolled, status: "Unknown" };
}

/** The target as if it did not waive its identity check. */
export function required(target: FencingTarget): FencingTarget {
  const identity = { ...target.spec.identity, verification: "Required" as const };
  return { ...target, spec: { ...target.spec, identity } };
}

/** The condition `Ready`: whether a fence would work. Undefined if only a probe can show that, and none has. */
export function readiness(
  target: FencingTarget,
  facts: TargetStatusFacts,
  reachable: TargetCondition | undefined,
  identity: TargetCondition | undefined,
): TargetCondition | undefined {
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
  const enrolled = enrolmentOf(target, facts);
  const usable = levels.some((level) => {
    const answers = level.flatMap((device) => (device.ok && device.obstacle === undefined ? [device.identity] : []));
    if (answers.length < level.length) return false;
    const hasOutlets = level.some(({ address }) => isOutletAddress(address));
    return hasOutlets ? enrolled?.status === "True" : judge(answers).verified;
  });
  const obstacle = obstacleOf(facts.probe.result.devices);
  if (!usable) {
    const isIdentified = identity.status === "True" || identity.reason === "VerificationDisabled";
    const why = reachable.status === "False" ? reachable : isIdentified ? (obstacle ?? identity) : identity;
    return { ...why, status: "False" };
  }
  const unenrolled = enrolled?.status === "True" ? undefined : enrolled;
  const broken = reachable.status === "False" ? reachable : (obstacle ?? unenrolled);
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
function obstacleOf(devices: readonly DeviceProbe[]): TargetCondition | undefined {
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
  "the host can be fenced while its BMC has power: if one power supply feeds both, a power failure makes the BMC unreachable, and only another level of spec.devices with its own power can prove the host off";

/** Whether all devices are interfaces of one BMC, possibly with several protocols. Driver servers and PDUs are none. */
function hasOneBmc(target: FencingTarget): boolean {
  const hosts = target.spec.devices.map((device) => {
    const address = parseBmcAddress(device.address);
    if (address.protocol === "driver" || address.protocol === "snmp") return undefined;
    return address.protocol === "ipmi"
      ? address.hostname
      : new URL(address.origin).hostname.replace(/^\[(.*)\]$/, "$1");
  });
  return hosts[0] !== undefined && new Set(hosts).size === 1;
}
