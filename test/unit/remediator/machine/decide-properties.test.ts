import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { decide } from "../../../../src/remediator/machine/decide.ts";
import type { Observations } from "../../../../src/remediator/machine/model/facts/observations.ts";
import type { Snapshot } from "../../../../src/remediator/machine/model/facts/snapshot.ts";
import { ORDERS_MAX } from "../../../../src/remediator/machine/rules/orders/power-orders.ts";
import { STATE_NAMES } from "../../../../src/remediator/machine/model/decision/state.ts";
import type { Attempt, State } from "../../../../src/remediator/machine/model/decision/state.ts";
import { POWER_PROOF_AGE_MAX_MS } from "../../../../src/remediator/machine/model/decision/timings.ts";
import { node, NOW, OWNER, snapshot } from "./snapshots.ts";
import type { Decision, Effect } from "../../../../src/remediator/machine/model/decision/decision.ts";

// Properties that every decision must have, whatever a remediation has stored and this process has observed, sensible
// or not.

const agoMs = fc.constantFrom(0, 50, 200, 1_400, 1_600, 4_900, 5_100, 11_000, 13_000, 21_000, 60_000);
const atMs = agoMs.map((ms) => NOW.monotonicMs - ms);
const maybe = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(arbitrary, { nil: undefined });

const power: fc.Arbitrary<Observations["power"]> = fc.record({
  last: maybe(fc.record({ state: fc.constantFrom("Off", "On", "Changing", "Unknown"), raw: fc.constant("raw"), atMs })),
  offReads: fc.nat(3),
  offAtMs: maybe(atMs),
  provenAtMs: maybe(atMs),
});

const observations: fc.Arbitrary<Partial<Observations>> = fc.record({
  claim: fc.constantFrom(
    undefined,
    { owned: true, targetUid: "target-uid" } as const,
    { owned: true, targetUid: "target-uid" } as const,
    { owned: true, targetUid: "target-uid" } as const,
    { owned: false, by: OWNER, undoing: true, atMs: NOW.monotonicMs } as const,
  ),
  examined: maybe(fc.constantFrom("Unknown", "True").map((ready) => ({ node: node({ ready }) }))),
  identity: maybe(
    fc.record({
      check: fc.constantFrom(
        { verified: true, message: "" } as const,
        { verified: false, reason: "Mismatch", message: "" } as const,
      ),
      atMs,
    }),
  ),
  lease: maybe(
    fc.record({
      uid: fc.constant("l"),
      resourceVersion: fc.constant("1"),
      renewTimeMs: maybe(agoMs.map((ms) => NOW.epochMs - ms)),
      durationMs: fc.constant(40_000),
      renewedAtMs: maybe(atMs),
      writtenAtMs: maybe(atMs),
      readAtMs: atMs,
      answeringSinceMs: atMs,
    }),
  ),
  order: maybe(
    fc.record({
      attemptId: fc.constantFrom("a1", "a0"),
      action: fc.constantFrom("ForceOff", "On"),
      outcome: fc.constantFrom("Acknowledged", "Uncertain", "Rejected"),
      atMs,
    }),
  ),
  power,
  device: maybe(
    fc.record({
      reason: fc.constant("BMCUnreachable" as const),
      message: fc.constant("away"),
      final: fc.boolean(),
      failures: fc.constant(1),
      retryAtMs: fc.constantFrom(NOW.monotonicMs - 1, NOW.monotonicMs + 1_000),
    }),
  ),
  taint: maybe(
    fc.record({ attemptId: fc.constantFrom("a1", "a0"), found: fc.constantFrom("Ours", "Foreign", "NoNode") }),
  ),
  quarantined: fc.boolean(),
  taintCleared: fc.boolean(),
  marksCleared: fc.boolean(),
  swapped: fc.boolean(),
  released: fc.boolean(),
  drain: maybe(
    fc.record({ pods: fc.nat(1), attachments: fc.nat(1), atMs, checks: fc.constant(1), isReported: fc.boolean() }),
  ),
  override: fc.constantFrom(undefined, "NetworkOnce", "None"),
  backup: maybe(fc.constant({ status: { nodeUID: "node-uid" }, resourceVersion: "1" })),
  nodeDeleted: fc.boolean(),
  rebootRecorded: fc.boolean(),
  devicesClosed: fc.boolean(),
  successor: maybe(fc.record({ waiting: fc.boolean(), atMs })),
  hostReleased: fc.boolean(),
});

const attempt: fc.Arbitrary<Partial<Attempt>> = fc.record({
  kind: fc.constantFrom("Reboot", "Reprovision"),
  action: fc.constantFrom("None", "Inherited", "ForceOff", "On"),
  actionAtMs: agoMs.map((ms) => NOW.epochMs - ms),
  orders: fc.nat(ORDERS_MAX),
  sent: fc.boolean(),
  done: fc.boolean(),
  offConfirmedAtMs: maybe(agoMs.map((ms) => NOW.epochMs - ms)),
  releasingSinceMs: maybe(agoMs.map((ms) => NOW.epochMs - ms)),
  bootOverride: fc.boolean(),
});

const snapshots: fc.Arbitrary<Snapshot> = fc
  .record({
    state: fc.constantFrom(...STATE_NAMES),
    attempt,
    observations,
    remediation: fc.record({ deleting: fc.boolean(), timedOut: fc.boolean() }),
    strategy: fc.record({
      type: fc.constantFrom("Reboot", "Reprovision", "Escalate"),
      workloadRelease: fc.constantFrom("OutOfServiceTaint", "DeleteNode"),
      requireReboot: fc.boolean(),
    }),
    other: fc.record({
      node: fc.constantFrom(undefined, node(), node({ ready: "True", bootID: "new-boot" }), node({ uid: "new-uid" })),
      stop: fc.constantFrom(
        undefined,
        { reason: "Paused", message: "by a test" } as const,
        { reason: "Maintenance", message: "by a test" } as const,
      ),
      remainingMs: fc.constantFrom(0, 60_000),
    }),
  })
  .map(snapshot);

function check(holds: (snapshot: Snapshot, decision: Decision) => boolean): void {
  fc.assert(
    fc.property(snapshots, (given) => holds(given, decide(given, NOW))),
    { numRuns: 5_000, verbose: 1 },
  );
}

const does = (decision: Decision, ...effects: Effect["do"][]): boolean =>
  decision.effects.some((effect) => effects.includes(effect.do));
const owned = (given: Snapshot): boolean => given.observations.claim?.owned === true;
const isProven = ({ observations }: Snapshot): boolean =>
  observations.power.provenAtMs !== undefined &&
  observations.power.offAtMs !== undefined &&
  NOW.monotonicMs - observations.power.offAtMs < POWER_PROOF_AGE_MAX_MS;
const implies = (premise: boolean, conclusion: boolean): boolean => !premise || conclusion;

describe("whatever was stored and seen, decide", () => {
  it("decide puts the taint on, deletes pods and deletes nodes only while the host is proven off (S1)", () =>
    check((given, decision) => implies(does(decision, "taint", "releasePods", "deleteNode"), isProven(given))));

  it("decide sends ForceOff only together with its intent, under an id that was never used (S4)", () =>
    check((given, decision) => {
      const order = decision.effects.find((effect) => effect.do === "forceOff");
      if (order === undefined) return true;
      const stored = decision.status?.attempt;
      const isNew = given.state.name === "Verifying" || order.attemptId === "fresh";
      return stored?.action === "ForceOff" && stored.id === order.attemptId && !stored.sent && isNew;
    }));

  it("decide sends On only together with its intent", () =>
    check((_given, decision) => implies(does(decision, "powerOn"), decision.status?.attempt?.action === "On")));

  it("decide sends at most ORDERS_MAX orders of one kind in a cycle, except to a host that a final undo must power on", () =>
    check((given, decision) =>
      implies(
        does(decision, "powerOn", "forceOff"),
        (decision.status?.attempt?.orders ?? Infinity) <= ORDERS_MAX ||
          (given.state.name === "Undoing" && given.remediation.deleting),
      ),
    ));

  it("decide orders no power without a fresh, verified identity (S7)", () =>
    check((given, decision) => {
      const { identity } = given.observations;
      const verified = identity?.check.verified === true && NOW.monotonicMs - identity.atMs <= 5_000;
      return implies(does(decision, "powerOn", "forceOff"), verified);
    }));

  it("decide orders no power-off during a hold, and no power-on during maintenance", () =>
    check((given, decision) => {
      const { hold } = given;
      const isHeld =
        hold?.reason === "Maintenance" ? does(decision, "powerOn", "forceOff") : does(decision, "forceOff");
      return implies(hold !== undefined, !isHeld);
    }));

  it("decide sends no power order and puts on no mark for a host that it does not own (S10)", () =>
    check((given, decision) =>
      implies(
        !owned(given),
        !does(decision, "powerOn", "forceOff", "taint", "quarantine", "swapMarks", "setBootOverride", "deleteNode"),
      ),
    ));

  it("decide powers on only after the taint was removed (S3)", () =>
    check((given, decision) => {
      const fenced = given.state.name === "Releasing" || given.state.name === "PoweringOff";
      return implies(
        does(decision, "powerOn"),
        !fenced && (given.state.name !== "Undoing" || given.observations.taintCleared),
      );
    }));

  it("decide leaves Releasing for the power-on only if the node is drained or out of time, and only after the taint is swapped", () =>
    check((given, decision) => {
      const leaves =
        given.state.name === "Releasing" && ["PoweringOn", "Provisioning"].includes(decision.status?.phase ?? "");
      if (!leaves) return true;
      const { drain, swapped } = given.observations;
      const drained = drain?.pods === 0 && drain.attachments === 0;
      const untainted = given.strategy.workloadRelease === "DeleteNode" || swapped;
      return untainted && (drained || given.remainingMs <= 0);
    }));

  it("decide never changes a verdict, and gives none while a mark may be on the node or the host is owned", () =>
    check((given, decision) => {
      const isFinal = (name: string | undefined): boolean => name === "Succeeded" || name === "Failed";
      if (isFinal(given.state.name)) return decision.status === undefined;
      if (!isFinal(decision.status?.phase)) return true;
      const clean = decision.status?.phase === "Succeeded" || given.observations.marksCleared;
      return clean && (!owned(given) || given.observations.hostReleased) && decision.effects.length === 0;
    }));

  it("decide drops the finalizer only once everything is undone", () =>
    check((given, decision) => {
      if (!does(decision, "dropFinalizer") || given.state.name !== "Undoing") return true;
      return (
        given.remediation.deleting &&
        given.observations.marksCleared &&
        (!owned(given) || given.observations.hostReleased)
      );
    }));

  it("decide acts, waits for a time, or rests in a state that only others can end", () =>
    check((given, decision) => {
      const rests: readonly State["name"][] = ["Succeeded", "Failed"];
      const acts = decision.status !== undefined || decision.effects.length > 0 || decision.nextCheckMs !== undefined;
      return acts || rests.includes(given.state.name) || given.hold !== undefined;
    }));

  it("decide changes state only along the arrows of docs/explanation/remediation.md", () => {
    const text = readFileSync(new URL("../../../../docs/explanation/remediation.md", import.meta.url), "utf8");
    check((given, decision) => {
      const to = decision.status?.phase;
      const from = given.state.name;
      return to === undefined || to === from || text.includes(`  ${from} --> ${to}`);
    });
  });

  it("decide never waits for a negative time", () =>
    check((_given, decision) => decision.nextCheckMs === undefined || decision.nextCheckMs >= 0));
});
