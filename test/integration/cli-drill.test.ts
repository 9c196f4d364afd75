import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { NAMESPACE } from "../../hack/demo/objects.ts";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
import { NODES, PODS } from "../../src/api/kubernetes/core-types.ts";
import { EXIT_FAILURE, EXIT_REFUSED, EXIT_USAGE } from "../../src/cli/errors/failures.ts";
import { until } from "./child-agent.ts";
import type { CliOptions, CliResult } from "./cli-fixture.ts";
import type { DrillFixture } from "./drill-fixture.ts";
import { startDrillFixture } from "./drill-fixture.ts";

// Runs `ironfence drill` on a small cluster with one agent. API server and BMCs use HTTPS.

describe("ironfence drill", () => {
  let fixture: DrillFixture;
  before(async () => {
    fixture = await startDrillFixture();
  });
  after(() => fixture.stop());
  beforeEach(() => fixture.world.server.faults.clear());

  const drill = (flags: string, options?: CliOptions): Promise<CliResult> => fixture.drill(flags, options);

  test("ironfence drill shows each step beforehand, and changes nothing with --dry-run or without an agreement", async () => {
    fixture.createPod("plan", "node-4");
    const { code, err } = await drill("--node node-4 --dry-run");
    assert.equal(code, 0, err);
    assert.match(
      err,
      /1\. cordon node node-4\n.*2\. evict [1-9] pods .*default\/plan.*in at most 10m0s\n[^]*uncordon node node-4/,
    );
    const asked = await drill("--node node-4", { answers: ["no"] });
    assert.equal(asked.code, EXIT_REFUSED);
    const unattended = await drill("--node node-4");
    assert.equal(unattended.code, EXIT_REFUSED);
    assert.match(unattended.err, /NotConfirmed/);
    assert.equal((await drill("--yes")).code, EXIT_USAGE);
    assert.deepEqual(
      [fixture.node("node-4").spec.unschedulable, fixture.hasPod("plan"), fixture.orders("node-4")],
      [undefined, true, []],
    );
  });

  test("ironfence drill refuses a node that must not be fenced now, or whose pods would not come back", async () => {
    fixture.createPod("bare", "node-6", []);
    const bare = await drill("--node node-6 --yes");
    assert.equal(bare.code, EXIT_REFUSED);
    assert.match(bare.err, /nothing creates these pods again: default\/bare/);
    fixture.world.server.collection(PODS).delete({ namespace: "default", name: "bare" });
    const key = { namespace: NAMESPACE, name: "node-6" };
    fixture.world.server.collection(FENCING_TARGETS).mergePatch(key, { spec: { maintenance: true } });
    const maintained = await drill("--node node-6 --yes");
    fixture.world.server.collection(FENCING_TARGETS).mergePatch(key, { spec: { maintenance: false } });
    assert.equal(maintained.code, EXIT_REFUSED);
    for (const role of ["control-plane", "etcd"]) {
      const nodes = fixture.world.server.collection(NODES);
      const label = (value: string | null): object => ({ labels: { [`node-role.kubernetes.io/${role}`]: value } });
      nodes.mergePatch({ name: "node-6" }, { metadata: label("") });
      const member = await drill("--node node-6 --yes");
      nodes.mergePatch({ name: "node-6" }, { metadata: label(null) });
      assert.equal(member.code, EXIT_REFUSED, role);
      assert.match(member.err, /etcd may need its member for quorum/);
    }
    assert.deepEqual(
      [fixture.orders("node-6"), fixture.remediations(), fixture.node("node-6").spec.unschedulable],
      [[], 0, undefined],
    );
  });

  test("ironfence drill cordons, drains, fences and restores the node, and shows how long each step took", async () => {
    fixture.createPod("web", "node-5");
    const { code, out, err } = await drill("--node node-5 --yes --timeout 50s -o json");
    assert.equal(code, 0, err);
    const { restored, steps } = JSON.parse(out) as { restored: boolean; steps: { step: string; seconds: number }[] };
    assert.equal(restored, true);
    assert.deepEqual(
      steps.map(({ step }) => step),
      ["cordoned", "drained", "fenced and back", "uncordoned"],
    );
    assert.ok(steps.every(({ seconds }) => seconds >= 0) && (steps[2]?.seconds ?? 0) > 1, out);
    assert.deepEqual(fixture.orders("node-5"), ["ForceOff", "On"]);
    assert.deepEqual(
      [fixture.isReady("node-5"), fixture.node("node-5").spec.unschedulable, fixture.hasPod("web")],
      [true, undefined, false],
    );
    await until(fixture.agent, "the finished remediation is gone", () => fixture.remediations() === 0);
  });

  test("ironfence drill ends if pods do not leave in time, and uncordons the node", async () => {
    fixture.createPod("held", "node-6");
    fixture.refuseEvictions();
    const { code, err } = await drill("--node node-6 --yes --drain-timeout 3s");
    assert.equal(code, EXIT_FAILURE);
    assert.match(err, /node node-6 is uncordoned again[^]*DrainUnfinished.*default\/held/);
    assert.deepEqual(
      [fixture.node("node-6").spec.unschedulable, fixture.hasPod("held"), fixture.orders("node-6")],
      [undefined, true, []],
    );
  });

  test("ironfence drill uncordons the node if the user ends it while the pods leave, and says what is left if the fence has begun", async () => {
    fixture.refuseEvictions();
    const early = new AbortController();
    const ended = drill("--node node-6 --yes", {
      signal: early.signal,
      onNote: (line) => {
        if (line.includes("cordoned after")) setTimeout(() => early.abort(new Error("stopped by SIGINT")), 500);
      },
    });
    assert.notEqual((await ended).code, 0);
    assert.match((await ended).err, /node node-6 is uncordoned again/);
    assert.deepEqual([fixture.node("node-6").spec.unschedulable, fixture.remediations()], [undefined, 0]);

    fixture.world.server.faults.clear();
    const late = new AbortController();
    const left = drill("--node node-6 --yes", {
      signal: late.signal,
      onNote: (line) => {
        if (line.includes("PoweringOff")) late.abort(new Error("stopped by SIGINT"));
      },
    });
    const { err } = await left;
    assert.match(
      err,
      /left behind: BareMetalRemediation .* continues, and node node-6 is cordoned\. .*kubectl delete baremetalremediation -n \S+ node-6-by-hand-\w+\), .*kubectl uncordon node-6/,
    );
    assert.equal(fixture.node("node-6").spec.unschedulable, true);
    await until(
      fixture.agent,
      "the agent has finished the fence",
      () => fixture.isReady("node-6") && fixture.orders("node-6").length === 2,
    );
  });
});
