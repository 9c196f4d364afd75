import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import { Registry } from "prom-client";
import { WithheldRemediations } from "../../../src/cli/agent/withheld-remediations.ts";
import { readWithheldRemediations } from "../../../src/api/ironfence/withheld-remediation.ts";
import type { EventNote } from "../../../src/kube/events.ts";
import { VirtualClock } from "../../lib/virtual-clock.ts";
import { nodeObject, silentLogger } from "../kube/support.ts";

const T0 = Date.UTC(2026, 0, 1);
const STARTED = {
  healthCheck: "NodeHealthCheck all",
  subject: "n1",
  about: nodeObject("n1", "u1", 1),
  remedy: "BareMetalRemediation fencing/n1",
  because: "it is Unknown",
};
const KEPT = {
  at: "2026-01-01T00:00:00Z",
  node: "n1",
  healthCheck: "NodeHealthCheck all",
  remedy: "BareMetalRemediation fencing/n1",
  because: "it is Unknown",
};

describe("a withheld remediation", () => {
  let clock: VirtualClock;
  let notes: EventNote[];
  let observations: WithheldRemediations;

  const make = (): WithheldRemediations => {
    const events = { record: (note: EventNote) => void notes.push(note) };
    return new WithheldRemediations({ clock, logger: silentLogger, events, registry: new Registry() });
  };
  const kept = () => readWithheldRemediations(observations.annotations);

  beforeEach(() => {
    clock = new VirtualClock(T0);
    notes = [];
    observations = make();
    observations.restore(undefined);
  });

  it("a withheld remediation is kept once for an outage, with its end, and is recorded as an Event on the node", async () => {
    observations.started(STARTED);
    await clock.advance(60_000);
    observations.started({ ...STARTED, remedy: "BareMetalRemediation fencing/n1-2" });
    assert.deepEqual(kept(), [KEPT]);
    observations.ended({ healthCheck: "NodeHealthCheck all", subject: "n2" });
    observations.ended({ healthCheck: "another", subject: "n1" });
    assert.deepEqual(kept(), [KEPT]);
    observations.ended(STARTED);
    assert.deepEqual(kept(), [{ ...KEPT, until: "2026-01-01T00:01:00Z" }]);
    observations.started(STARTED);
    assert.equal(kept().length, 2);
    const texts = notes.map(({ regarding, type, reason, note }) => [regarding.metadata.name, type, reason, note]);
    const text =
      "NodeHealthCheck all would remediate it by BareMetalRemediation fencing/n1, because it is Unknown. Nothing was done: this agent only observes";
    assert.deepEqual(texts, [
      ["n1", "Warning", "WouldRemediate", text],
      ["n1", "Warning", "WouldRemediate", text],
    ]);
  });

  it("a withheld remediation by a later step is another withheld remediation", () => {
    observations.started(STARTED);
    observations.started({ ...STARTED, remedy: "FenceAgentsRemediation fencing/n1" });
    assert.equal(kept().length, 2);
  });

  it("a withheld remediation is bounded: the last 20, with texts of at most 240 characters", () => {
    for (let index = 0; index < 30; index += 1) {
      observations.started({ ...STARTED, subject: `n${index}`, because: "x".repeat(1_000) });
    }
    assert.deepEqual([kept().length, kept()[0]?.node, kept()[19]?.node], [20, "n10", "n29"]);
    assert.ok(kept().every(({ because }) => because.length === 240));
  });

  it("a withheld remediation is reported once for each of 30 nodes that are down together", () => {
    for (let round = 0; round < 3; round += 1)
      for (let index = 0; index < 30; index += 1) observations.started({ ...STARTED, subject: `n${index}` });
    assert.equal(notes.length, 30);
    observations.ended({ ...STARTED, subject: "n3" });
    observations.started({ ...STARTED, subject: "n3" });
    assert.equal(notes.length, 31, "a new outage of one of them");
  });

  it("a withheld remediation ends once for what the last leader has left, and not for the next outage", () => {
    observations.started(STARTED);
    const { annotations } = observations;
    observations = make();
    observations.restore(annotations);
    observations.endInherited(() => true);
    observations.started(STARTED);
    observations.endInherited(() => true);
    assert.deepEqual(
      kept().map(({ until }) => until === undefined),
      [false, true],
    );
  });

  it("a withheld remediation goes on with the next leader, which does not write before it has read it", () => {
    observations.started(STARTED);
    observations.started({ ...STARTED, subject: "n2" });
    const { annotations } = observations;
    observations = make();
    assert.deepEqual(observations.annotations, {});
    observations.restore(annotations);
    observations.started(STARTED);
    observations.endInherited(() => true);
    const open = kept().map(({ node, until }) => [node, until]);
    assert.deepEqual(open, [
      ["n1", undefined],
      ["n2", "2026-01-01T00:00:00Z"],
    ]);
    assert.deepEqual(readWithheldRemediations({ "ironfence.io/would-have-remediated": "nonsense" }), []);
  });

  it("a withheld remediation is not reported as done: Events of acts are left out, those of findings are recorded", () => {
    const note = { regarding: STARTED.about, type: "Normal", action: "HealthCheck", note: "x" } as const;
    for (const reason of ["DetectedUnhealthy", "RemediationCreated", "RemediationRemoved", "MachineDeleted"]) {
      observations.events.record({ ...note, reason });
    }
    assert.deepEqual(
      notes.map(({ reason }) => reason),
      ["DetectedUnhealthy"],
    );
  });
});
