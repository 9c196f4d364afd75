import { node, NOW, PROVEN, STALE_LEASE } from "../snapshots.ts";
import { AGO_2S, RENEWED } from "./fixtures.ts";
import type { Step } from "./situations.ts";
import { poweringOff } from "./situations.ts";

/** What a remediation in PoweringOff does once its host is proven off: waits for silence, sets the taint, releases. */
export const PROVEN_OFF_STEPS: readonly Step[] = [
  {
    name: "a host whose node cannot be tainted is not kept off after its time",
    given: poweringOff({
      strategy: { retryLimit: 0 },
      read: "Off×2",
      lease: "silent",
      taint: "cleared",
      observations: { taintFailure: "forbidden" },
      isOutOfTime: true,
    }),
    expected: "→ Undoing (PowerOffTimeout)",
  },
  {
    name: "a taint that may be on the node is removed before an attempt fails because the node cannot be tainted",
    given: poweringOff({
      strategy: { retryLimit: 0 },
      read: "Off×2",
      lease: "silent",
      observations: { taintFailure: "no connection" },
      isOutOfTime: true,
    }),
    expected: "untaint",
  },
  {
    name: "two Off readings prove the host off, and the taint follows at once if the lease is silent",
    given: poweringOff({ read: "Off×2", lease: "silent" }),
    expected: "taint",
  },
  {
    name: "a lease that was renewed shortly before the order delays the taint",
    given: poweringOff({
      read: "Off×2",
      observations: { lease: { ...STALE_LEASE, renewTimeMs: NOW.epochMs - 10_000 } },
    }),
    expected: "wait",
  },
  {
    name: "a Ready condition that is still True delays the taint",
    given: poweringOff({ read: "Off×2", lease: "silent", examined: "Ready" }),
    expected: "wait",
  },
  {
    name: "a Ready condition that a kubelet has posted as False delays the taint",
    given: poweringOff({
      read: "Off×2",
      lease: "silent",
      observations: { examined: { node: node({ ready: "False" }) } },
    }),
    expected: "wait",
  },
  {
    name: "a node that has become Ready since it was examined delays the taint",
    given: poweringOff({ read: "Off×2", lease: "silent", examined: "NotReady", nodeNow: "Ready" }),
    expected: "wait",
  },
  {
    name: "a lease renewal that this process has seen delays the taint, whatever its timestamp",
    given: poweringOff({
      read: "Off×2",
      observations: { lease: { ...STALE_LEASE, renewedAtMs: NOW.monotonicMs - 5_000 } },
    }),
    expected: "wait",
  },
  {
    name: "a lease that was silent for 22 s by the API server's clock delays nothing",
    given: poweringOff({
      read: "Off×2",
      observations: {
        lease: { ...STALE_LEASE, renewTimeMs: NOW.epochMs - 1_000, writtenAtMs: NOW.monotonicMs - 22_000 },
      },
    }),
    expected: "taint",
  },
  {
    name: "a lease that was silent for less than 22 s delays the taint",
    given: poweringOff({
      read: "Off×2",
      observations: {
        lease: { ...STALE_LEASE, renewTimeMs: NOW.epochMs - 300_000, writtenAtMs: NOW.monotonicMs - 21_000 },
      },
    }),
    expected: "wait",
  },
  {
    name: "a renewal that this process has seen ends the silence of a lease",
    given: poweringOff({
      read: "Off×2",
      observations: {
        lease: { ...STALE_LEASE, writtenAtMs: NOW.monotonicMs - 60_000, renewedAtMs: NOW.monotonicMs - 20_000 },
      },
    }),
    expected: "wait",
  },
  {
    name: "a lease with a duration of 80 s delays the taint for longer",
    given: poweringOff({
      attempt: { actionAtMs: NOW.epochMs - 20_000 },
      examined: "Ready",
      observations: {
        power: { ...PROVEN, provenAtMs: NOW.monotonicMs - 21_000 },
        lease: { ...STALE_LEASE, durationMs: 80_000 },
      },
    }),
    expected: "wait",
  },
  {
    name: "a lease of any duration delays the taint for a minute at most",
    given: poweringOff({
      attempt: { actionAtMs: NOW.epochMs - 20_000 },
      examined: "Ready",
      observations: {
        power: { ...PROVEN, provenAtMs: NOW.monotonicMs - 64_000 },
        lease: { ...STALE_LEASE, durationMs: 100_000_000 },
      },
    }),
    expected: "taint",
  },
  {
    name: "silence of a lease while the API server was away does not count",
    given: poweringOff({
      read: "Off×2",
      observations: { lease: { ...STALE_LEASE, answeringSinceMs: NOW.monotonicMs - 21_000 } },
    }),
    expected: "wait",
  },
  {
    name: "silence of a lease while the API server was away does not count, whatever its timestamps show",
    given: poweringOff({
      read: "Off×2",
      observations: {
        lease: {
          ...STALE_LEASE,
          writtenAtMs: NOW.monotonicMs - 90_000,
          answeringSinceMs: NOW.monotonicMs - 21_000,
        },
      },
    }),
    expected: "wait",
  },
  {
    name: "a host is not kept off for a wait for silence that outages keep restarting",
    given: poweringOff({
      strategy: { retryLimit: 0 },
      taint: "cleared",
      observations: {
        power: { ...PROVEN, provenAtMs: NOW.monotonicMs - 23_000 },
        lease: { ...STALE_LEASE, answeringSinceMs: NOW.monotonicMs - 10_000 },
      },
      isOutOfTime: true,
    }),
    expected: "→ Undoing (PowerOffTimeout)",
  },
  {
    name: "a host is not kept off for a wait for silence: a taint that may be on the node is removed first",
    given: poweringOff({
      observations: {
        power: { ...PROVEN, provenAtMs: NOW.monotonicMs - 23_000 },
        lease: { ...STALE_LEASE, answeringSinceMs: NOW.monotonicMs - 10_000 },
      },
      isOutOfTime: true,
    }),
    expected: "untaint",
  },
  {
    name: "a proof that came late still gets the time of one whole wait for silence",
    given: poweringOff({
      taint: "cleared",
      observations: {
        power: { ...PROVEN, provenAtMs: NOW.monotonicMs - 21_000 },
        lease: { ...STALE_LEASE, answeringSinceMs: NOW.monotonicMs - 10_000 },
      },
      isOutOfTime: true,
    }),
    expected: "wait",
  },
  {
    name: "a lease that was read before the proof is read again before the taint",
    given: poweringOff({ read: "Off×2", observations: { lease: { ...STALE_LEASE, readAtMs: NOW.monotonicMs - 101 } } }),
    expected: "readLease",
  },
  {
    name: "the lease is read live right before the taint",
    given: poweringOff({
      attempt: { actionAtMs: NOW.epochMs - 20_000 },
      observations: {
        power: { ...PROVEN, provenAtMs: NOW.monotonicMs - 13_000 },
        lease: { ...STALE_LEASE, renewTimeMs: NOW.epochMs - 25_000, readAtMs: NOW.monotonicMs - 20_000 },
      },
    }),
    expected: "readLease",
  },
  {
    name: "a lease renewal shortly after the proof starts the delay again",
    given: poweringOff({
      attempt: { actionAtMs: NOW.epochMs - 20_000 },
      observations: {
        power: { ...PROVEN, provenAtMs: NOW.monotonicMs - 13_000 },
        lease: { ...STALE_LEASE, renewTimeMs: NOW.epochMs - 10_000, renewedAtMs: NOW.monotonicMs - 4_000 },
      },
    }),
    expected: "wait",
  },
  {
    name: "the release begins once the taint of this attempt is on the node",
    given: poweringOff({ read: "Off×2", lease: "silent", taint: "ours" }),
    expected: "→ Releasing (PowerOffConfirmed)",
  },
  {
    name: "no taint is set on a Node that is to be deleted",
    given: poweringOff({ strategy: { workloadRelease: "DeleteNode" }, read: "Off×2", lease: "silent" }),
    expected: "→ Releasing (PowerOffConfirmed)",
  },
  {
    name: "a node whose lease is renewed after its host was proven off runs on another host",
    given: poweringOff({
      observations: { power: { ...PROVEN, provenAtMs: NOW.monotonicMs - 15_000 }, lease: RENEWED },
    }),
    expected: "→ Undoing (WrongHost)",
  },
  {
    name: "one live read of the lease after the delay is enough",
    given: poweringOff({
      observations: {
        power: { ...PROVEN, provenAtMs: NOW.monotonicMs - 15_000 },
        lease: { ...STALE_LEASE, renewTimeMs: NOW.epochMs - 20_000, readAtMs: NOW.monotonicMs - 1_000 },
      },
    }),
    expected: "taint",
  },
  {
    name: "the node's lease is read before its host counts as the one that is off",
    given: poweringOff({ read: "Off×2" }),
    expected: "readLease",
  },
  {
    name: "a taint that the API server refuses is tried until the power-off's time is over",
    given: poweringOff({
      read: "Off×2",
      lease: "silent",
      observations: {
        kube: {
          call: "handToOwner",
          sinceMs: 0,
          refused: true,
          message: "no",
          failures: 1,
          retryAtMs: NOW.monotonicMs,
        },
      },
    }),
    expected: "taint",
  },
  {
    name: "a proof that has grown old is renewed before the taint",
    given: poweringOff({ lease: "silent", observations: { power: AGO_2S } }),
    expected: "readPower",
  },
  {
    name: "the taint is set again under the order that proved the host off",
    given: poweringOff({ read: "Off×2", lease: "silent", observations: { taint: { attemptId: "a0", found: "Ours" } } }),
    expected: "taint",
  },
  {
    name: "a host that is proven off has its node tainted though its time is over",
    given: poweringOff({ read: "Off×2", lease: "silent", isOutOfTime: true }),
    expected: "taint",
  },
  {
    name: "the release begins once the taint is on the node, though an earlier try to set it failed and the time is over",
    given: poweringOff({
      read: "Off×2",
      lease: "silent",
      taint: "ours",
      isOutOfTime: true,
      observations: { taintFailure: "forbidden" },
    }),
    expected: "→ Releasing (PowerOffConfirmed)",
  },
];
