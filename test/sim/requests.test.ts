import assert from "node:assert/strict";
import { it } from "node:test";
import { SKIP_DURATION_IF_OFF } from "../../src/api/names/annotations.ts";
import { RequestTally } from "../../hack/bench/detector-requests.ts";
import { begun, INSTANT, runEarly } from "./early-world.ts";

// Thousands of nodes may fail at once, so an increase of these numbers needs a good reason.

/**
 * The requests of the agent from the end of a duration until the node is back, with one pod, without watches and
 * Events. The safety rules need most live reads: of the node before its remediation is created and deleted, before the
 * power-off and before each change of its marks, and of target, Secret and pause before each order.
 */
const WHOLE_FENCE = {
  "create baremetalremediations": 1,
  "create leases": 1,
  "delete baremetalremediations": 1,
  "delete pods": 1,
  "get baremetalremediations": 3,
  "get configmaps": 2,
  "get fencingtargets": 4,
  "get leases": 3,
  "get nodes": 8,
  "get secrets": 3,
  // With its first remediation, the detector finds out whether it may read FencingTargets, and joins the remediator's
  // watch of them with a list of its own.
  "list discovery": 1,
  "list fencingtargets": 2,
  "list leases": 1,
  "list nodes": 1,
  "list pods": 3,
  "list volumeattachments": 1,
  "patch baremetalremediations": 2,
  "patch baremetalremediations/status": 10,
  "patch fencingtargets/status": 3,
  "patch nodehealthchecks": 1,
  "patch nodehealthchecks/status": 3,
  "patch nodes": 3,
  "patch pods/status": 1,
};
/** The largest size of the bodies of these requests, all together. */
const WHOLE_FENCE_BYTES = 45_000;

it("a whole fence sends no more requests than its steps need", () =>
  runEarly({ hosts: [{ name: "n1", ...INSTANT }], annotations: { [SKIP_DURATION_IF_OFF]: "false" } }, async (world) => {
    world.createPod("n1", "db");
    world.rack.host("n1").hang();
    await world.until("n1 is not Ready", () => !world.isReady("n1"));
    await world.clock.advance(280_000);
    const tally = new RequestTally(world.server, "agent");
    let written = 0;
    world.server.onRequest(({ client, path, bytes }) => {
      if (client === "agent" && !path.includes("/events")) written += bytes;
    });
    await world.until("n1 is remediated", () => begun(world).length > 0);
    await world.until("n1 is back", () => begun(world).length === 0 && world.isReady("n1"));
    await world.clock.advance(1_000);
    const counts = Object.fromEntries(Object.entries(tally.counts).toSorted(([a], [b]) => (a < b ? -1 : 1)));
    assert.deepEqual(counts, WHOLE_FENCE);
    assert.ok(written <= WHOLE_FENCE_BYTES, `${written} bytes`);
    world.assertClean();
  }));
