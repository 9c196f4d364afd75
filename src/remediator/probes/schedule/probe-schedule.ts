import type { FencingTarget } from "../../../api/ironfence/fencing-target.ts";
import { sameCredentials } from "../../../bmc/interface/credentials.ts";
import type { Random } from "../../../runtime/random.ts";
import { backoffMs } from "../../../runtime/random.ts";
import type { ProbeIntervals } from "./probe-intervals.ts";
import type { RefusedLogin } from "./probe-result.ts";

// When a target is probed. Pure, on monotonic milliseconds.

/** The shortest time between two probes because of new boots. The kubelet chooses which boot it reports. */
const BOOT_GAP_MIN_MS = 60_000;

/** The state of a target when it was last checked. A probe is due as soon as it changes. */
export interface ProbeTrigger {
  /** Generation, owner and Secrets of the target. */
  fingerprint: string;
  /** The system UUID of the node while it is Ready, otherwise empty: the identity of a new node can be pinned. */
  readyUuid: string;
  /** The outage of the node in which its host has to be proven off, otherwise empty. */
  outage: string;
  /**
   * The boot of the Ready node in which its host was not read On yet, if a health check needs that; otherwise empty.
   */
  unreadBoot: string;
}

/** What decides when a target is due. */
export interface ProbeSchedule {
  trigger: ProbeTrigger;
  /** The time of the last probe; undefined if there was none. */
  probedAtMs: number | undefined;
  dueAtMs: number;
}

/** When the target is due with the present `trigger`. */
export function dueAtMs(schedule: ProbeSchedule, trigger: ProbeTrigger, intervals: ProbeIntervals): number {
  const changed =
    schedule.trigger.fingerprint !== trigger.fingerprint ||
    (trigger.readyUuid !== "" && trigger.readyUuid !== schedule.trigger.readyUuid) ||
    (trigger.outage !== "" && trigger.outage !== schedule.trigger.outage);
  const booted = trigger.unreadBoot !== "" && trigger.unreadBoot !== schedule.trigger.unreadBoot;
  if (!changed && !booted) return schedule.dueAtMs;
  const isBootAgain = !changed && schedule.trigger.unreadBoot !== "";
  const gapMs = isBootAgain ? BOOT_GAP_MIN_MS : intervals.changeMs;
  return schedule.probedAtMs === undefined ? 0 : Math.min(schedule.dueAtMs, schedule.probedAtMs + gapMs);
}

/**
 * How long after the agent's start a target is first probed. Targets that were probed before are spread over the
 * interval. A target whose login was refused waits for its full time, so that an agent that restarts in a loop does not
 * lock accounts.
 */
export function firstDelayMs(
  target: FencingTarget,
  { deviceCount, inOutage }: { deviceCount: number; inOutage: boolean },
  intervals: ProbeIntervals,
  random: Random,
): number {
  const reachable = target.status?.conditions?.find((condition) => condition.type === "Reachable");
  if (reachable === undefined || target.status?.observedGeneration !== target.metadata.generation) return 0;
  const ready = target.status?.conditions?.find((condition) => condition.type === "Ready");
  // A conflict may have ended while no agent was running, and only a probe shows the present state of the target.
  if (ready?.reason === "Ambiguous") return 0;
  if (reachable.reason === "AuthenticationFailed") return jittered(intervals.authRetryMs, random);
  return inOutage ? 0 : quietMs(deviceCount, intervals) * random.next();
}

/**
 * The same for a BareMetalHost, which has no record of earlier probes: a random time in the interval, so that an agent
 * that restarts in a loop neither overloads BMCs nor locks accounts.
 */
export function firstHostDelayMs(hostCount: number, intervals: ProbeIntervals, random: Random): number {
  return quietMs(hostCount, intervals) * random.next();
}

/**
 * How long after a probe the next one is due.
 *
 * @param probe.inOutage how many probes there were in the outage in which the host is to be proven off; 0 outside of
 * one.
 * @param probe.nodeDown whether the node of the target exists and is not Ready.
 */
export function nextDelayMs(
  probe: { healthy: boolean; loginRefused: boolean; failuresInARow: number; inOutage: number; nodeDown: boolean },
  counts: { devices: number; failingTargets: number; outages: number },
  intervals: ProbeIntervals,
  random: Random,
): number {
  if (probe.healthy) {
    const restMs = jittered(quietMs(counts.devices, intervals), random);
    if (probe.inOutage === 0) return restMs;
    const outageMs = backoffMs(random, intervals.outageMs, intervals.quietMs, probe.inOutage - 1);
    return Math.min(restMs, Math.max(outageMs, counts.outages * intervals.spacingMs));
  }
  const floorMs = counts.failingTargets * intervals.spacingMs;
  if (probe.loginRefused) return jittered(Math.max(intervals.authRetryMs, floorMs), random);
  const longestMs = probe.nodeDown ? intervals.downRetryMs : intervals.retryMaxMs;
  const retryMs = backoffMs(random, Math.min(intervals.retryMinMs, longestMs), longestMs, probe.failuresInARow - 1);
  return Math.max(retryMs, floorMs);
}

/** A refused login, and the time until which it is not tried again. */
export interface LockedLogin extends RefusedLogin {
  untilMs: number;
}

/**
 * The refused logins that are still skipped. The time of each runs from its first refusal, so skipping it does not
 * extend the time.
 */
export function lockedLogins(
  before: readonly LockedLogin[],
  refused: readonly RefusedLogin[],
  intervals: ProbeIntervals,
  nowMs: number,
): LockedLogin[] {
  return refused.map((login) => {
    const known = before.find(
      ({ address, credentials, untilMs }) =>
        untilMs > nowMs && address === login.address && sameCredentials(credentials, login.credentials),
    );
    return known ?? { ...login, untilMs: nowMs + intervals.authRetryMs };
  });
}

function quietMs(deviceCount: number, intervals: ProbeIntervals): number {
  return Math.max(intervals.quietMs, deviceCount * intervals.spacingMs);
}

/** Up to 10 % more, so that targets that were created together are probed at different times. */
function jittered(delayMs: number, random: Random): number {
  return delayMs * (1 + random.next() / 10);
}
