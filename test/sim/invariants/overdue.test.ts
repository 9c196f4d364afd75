import { describe, it } from "node:test";
import type { Facts, Step } from "./facts.ts";
import { assertBroken, assertHolds, world, remediation } from "./fixtures.ts";

describe("S14", () => {
  const processing = (reason: string): Record<string, unknown> => ({ type: "Processing", status: "True", reason });
  const waiting = (reason: string, deadlineMs: number, phase = "Releasing"): Partial<Facts> => {
    const attempt = { id: "a1", action: "ForceOff", deadline: new Date(deadlineMs).toISOString() };
    const status = { phase, attempt, conditions: [processing(reason)] };
    return { remediations: new Map([["r1", remediation(status)]]), present: new Set(["r1"]) };
  };
  const warnedAt = (atMs: number) => ({ warnedAtMs: new Map([["r1", new Map([["ApiFailing", atMs]])]]) });
  const warned = warnedAt(0);
  const since = (sinceMs: number, previousSinceMs = 0) => ({
    waits: new Map([["r1", { of: "Releasing ApiFailing", sinceMs, previousSinceMs }]]),
  });
  const PASSED: Step = { type: "passed" };

  it("S14 breaks if neither the condition nor a warning names what is waited for", () => {
    assertBroken("S14", world(waiting("Releasing", 0)), PASSED, /n1 is in Releasing past its deadline/);
    assertBroken("S14", world({ ...waiting("Releasing", 0), ...warned }), PASSED, /reason Releasing/);
    assertBroken("S14", world(waiting("ApiFailing", 0)), PASSED, /without a warning/);
  });

  it("S14 holds if the condition and a warning name the wait within a minute, and while the agent has been hampered", () => {
    assertHolds("S14", world({ ...waiting("ApiFailing", 0), ...warned }), PASSED);
    assertHolds("S14", world(waiting("Releasing", 50_000)), PASSED);
    assertHolds("S14", world({ ...waiting("Releasing", 0), calmSinceMs: 90_000 }), PASSED);
    assertHolds("S14", world(waiting("HostBusy", 0, "Resolving")), PASSED);
  });

  it("S14 lets the warning follow the status by a second, if another reason was reported before", () => {
    const storedAt = (ms: number): Partial<Facts> => ({ ...waiting("PowerOnTimeout", 0), ...since(ms) });
    assertHolds("S14", world({ ...storedAt(99_500), ...warned }), PASSED);
    assertBroken("S14", world(storedAt(99_500)), PASSED, /without a warning/);
    assertBroken("S14", world({ ...storedAt(90_000), ...warned }), PASSED, /without a warning/);
  });

  it("S14 counts no warning that is older than the present wait", () => {
    // Simulates a call to the API that has failed, succeeded, and failed again.
    const again = { ...waiting("ApiFailing", 0), ...since(30_000, 20_000) };
    assertBroken("S14", world({ ...again, ...warnedAt(29_000) }), PASSED, /without a warning/);
    assertHolds("S14", world({ ...again, ...warnedAt(30_000) }), PASSED);
    // The rule also holds in the moment between status and warning, and while no status can be stored.
    const justNow = { ...waiting("PowerOnTimeout", 0), ...since(99_500, 20_000) };
    assertBroken("S14", world({ ...justNow, ...warnedAt(19_000) }), PASSED, /without a warning/);
    assertHolds("S14", world({ ...justNow, ...warnedAt(20_000) }), PASSED);
    const hamperedAtMs = (call: string): number | undefined =>
      call === "patch baremetalremediations/status" ? 50_000 : undefined;
    assertBroken("S14", world({ ...again, ...warnedAt(29_000), hamperedAtMs }), PASSED, /without a warning/);
  });

  it("S14 lets a remediation pass through a state whose deadline is over, if it was reported since then", () => {
    const passing = (sinceMs: number): Partial<Facts> => ({ ...waiting("Releasing", 0), ...since(sinceMs, 98_000) });
    assertHolds("S14", world({ ...passing(99_500), ...warnedAt(30_000) }), PASSED);
    assertBroken("S14", world(passing(99_500)), PASSED, /reason Releasing/);
    assertBroken("S14", world({ ...passing(90_000), ...warnedAt(30_000) }), PASSED, /reason Releasing/);
  });

  it("S14 demands no report from an agent that cannot list remediations", () => {
    const unlisted = (ms: number) => (call: string) => (call === "list baremetalremediations" ? ms : undefined);
    assertHolds("S14", world({ ...waiting("Releasing", 0), hamperedAtMs: unlisted(50_000) }), PASSED);
    assertBroken("S14", world({ ...waiting("Releasing", 0), hamperedAtMs: unlisted(20_000) }), PASSED, /n1/);
  });

  it("S14 asks for a warning alone while no status can be stored", () => {
    const hamperedAtMs = (call: string): number | undefined =>
      call === "patch baremetalremediations/status" ? 50_000 : undefined;
    assertHolds("S14", world({ ...waiting("Releasing", 0), ...warned, hamperedAtMs }), PASSED);
    assertBroken("S14", world({ ...waiting("Releasing", 0), hamperedAtMs }), PASSED, /without a warning/);
  });
});
