import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { after, afterEach, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { NAMESPACE } from "../../hack/demo/objects.ts";
import { STOP_SWITCH_NAME } from "../../src/api/ironfence/stop-switch.ts";
import { CONFIG_MAPS, NODES, PODS } from "../../src/api/kubernetes/core-types.ts";
import { EXIT_FAILURE, EXIT_REFUSED } from "../../src/cli/errors/failures.ts";
import { until } from "./child-agent.ts";
import type { DrillFixture } from "./drill-fixture.ts";
import { startDrillFixture } from "./drill-fixture.ts";

// What `ironfence drill` does when users and tools change the cluster during it, or when its session ends.

const MAIN = fileURLToPath(new URL("../../src/main.ts", import.meta.url));

describe("ironfence drill while the cluster changes", () => {
  let fixture: DrillFixture;
  before(async () => {
    fixture = await startDrillFixture();
  });
  after(() => fixture.stop());
  afterEach(() => fixture.world.server.faults.clear());

  const setCordon = (name: string, unschedulable: true | null): void => {
    fixture.world.server.collection(NODES).mergePatch({ name }, { spec: { unschedulable } });
  };
  const isCordoned = (name: string): boolean => fixture.node(name).spec.unschedulable === true;
  const deletePod = async (name: string): Promise<void> => {
    fixture.world.server.collection(PODS).delete({ namespace: "default", name });
    await until(fixture.agent, `pod ${name} is gone`, () => !fixture.hasPod(name));
  };
  const pause = (): void => {
    const metadata = { namespace: NAMESPACE, name: STOP_SWITCH_NAME };
    fixture.world.server.collection(CONFIG_MAPS).create({ metadata, data: { paused: "true" } });
  };
  const resume = (): void => {
    fixture.world.server.collection(CONFIG_MAPS).delete({ namespace: NAMESPACE, name: STOP_SWITCH_NAME });
  };
  /** Calls `act` once, as soon as a line on standard error contains these words. */
  const when = (words: string, act: () => void) => {
    let isDone = false;
    return (line: string): void => {
      if (isDone || !line.includes(words)) return;
      isDone = true;
      act();
    };
  };

  test("ironfence drill refuses if the node was cordoned while it asked, or right before it cordons it", async () => {
    for (const [flags, moment] of [
      ["--node node-6", "is Ready: its pods run"],
      ["--node node-6 --yes", "uncordon node node-6"],
    ] as const) {
      const onNote = when(moment, () => setCordon("node-6", true));
      const { code, err } = await fixture.drill(flags, { answers: ["yes"], onNote });
      const left = [isCordoned("node-6"), fixture.orders("node-6")];
      setCordon("node-6", null);
      assert.equal(code, EXIT_REFUSED, err);
      assert.deepEqual(left, [true, []], err);
    }
  });

  test("ironfence drill refuses if what it would do has changed while it asked", async () => {
    const onNote = when("is Ready: its pods run", () => fixture.createPod("late", "node-6"));
    const changed = await fixture.drill("--node node-6", { answers: ["yes"], onNote });
    assert.equal(changed.code, EXIT_REFUSED, changed.err);
    assert.match(
      changed.err,
      /what it would do has changed since it was shown: evict .*default\/late[^]*Nothing was changed/,
    );
    assert.deepEqual([isCordoned("node-6"), fixture.hasPod("late")], [false, true]);
    await deletePod("late");
  });

  test("ironfence drill evicts no pod without a controller that comes during the drain, and uncordons the node", async () => {
    fixture.createPod("held", "node-6");
    fixture.refuseEvictions("held");
    const onNote = when("cordoned after", () => fixture.createPod("guest", "node-6", []));
    const { code, err } = await fixture.drill("--node node-6 --yes --drain-timeout 20s", { onNote });
    assert.equal(code, EXIT_FAILURE, err);
    assert.match(err, /\[DrainUnfinished\] nothing creates these pods again, .*default\/guest/);
    assert.deepEqual([isCordoned("node-6"), fixture.hasPod("guest"), fixture.orders("node-6")], [false, true, []]);
    for (const pod of ["guest", "held"]) await deletePod(pod);
  });

  test("ironfence drill ends if a user uncordons its node during the drain, and leaves the cordon of another drill", async () => {
    fixture.createPod("held", "node-6");
    fixture.refuseEvictions("held");
    const onNote = when("cordoned after", () => {
      const annotations = { "ironfence.io/drill": "2026-01-01T00:00:00.000Z" };
      fixture.world.server.collection(NODES).mergePatch({ name: "node-6" }, { metadata: { annotations } });
    });
    const { code, err } = await fixture.drill("--node node-6 --yes --drain-timeout 20s", { onNote });
    assert.equal(code, EXIT_FAILURE, err);
    assert.match(err, /\[DrainUnfinished\] node node-6 is not cordoned by this drill any more/);
    assert.deepEqual([isCordoned("node-6"), fixture.hasPod("held"), fixture.orders("node-6")], [true, true, []]);
    const next = await fixture.drill("--node node-6 --yes");
    assert.match(next.err, /the drill of 2026-01-01T00:00:00.000Z did not end: kubectl uncordon node-6/);
    setCordon("node-6", null);
    await deletePod("held");
  });

  test("ironfence drill fences nothing if ironfence is paused during the drain, and uncordons the node", async () => {
    const onNote = when("cordoned after", pause);
    const { code, err } = await fixture.drill("--node node-6 --yes --timeout 5s", { onNote });
    const left = fixture.remediations();
    resume();
    assert.equal(code, EXIT_REFUSED, err);
    assert.match(err, /node-6 is drained but not fenced, since ironfence is paused.*Nothing was powered off/);
    assert.doesNotMatch(err, /is created/);
    assert.deepEqual([left, isCordoned("node-6"), fixture.orders("node-6")], [0, false, []]);
  });

  test("ironfence drill deletes its remediation and uncordons the node if the host was not ordered off in time", async () => {
    const onNote = when("is created", pause);
    const { code, err } = await fixture.drill("--node node-6 --yes --timeout 5s", { onNote });
    try {
      assert.equal(code, EXIT_FAILURE, err);
      assert.match(err, /is deleted again: the host was not ordered off[^]*node-6 is uncordoned again/);
      assert.match(err, /\[FenceUnfinished\] node node-6 was not powered off in time, since the fence waited: Paused/);
      await until(fixture.agent, "the remediation is gone", () => fixture.remediations() === 0);
    } finally {
      resume();
    }
    assert.deepEqual([isCordoned("node-6"), fixture.orders("node-6")], [false, []]);
  });

  test("ironfence drill claims nothing to be left behind if the API server refuses to cordon the node", async () => {
    const match = { verbs: ["patch"] as const, resource: "nodes" };
    fixture.world.server.faults.inject({ match, times: Infinity, action: { kind: "status", status: 403 } });
    const { code, err } = await fixture.drill("--node node-6 --yes");
    assert.equal(code, EXIT_FAILURE, err);
    assert.match(err, /APIForbidden/);
    assert.doesNotMatch(err, /left behind|uncordoned/);
  });

  for (const [end, how] of [
    ["the session ends (SIGHUP twice)", "SIGHUP"],
    ["its notes have no reader any more", "close"],
  ] as const) {
    test(`ironfence drill uncordons the node if ${end} during the drain`, async () => {
      fixture.createPod("held", "node-6");
      fixture.refuseEvictions("held");
      const flags = ["--node", "node-6", "--yes", "--drain-timeout", "3s"];
      const inputs = [MAIN, "drill", ...flags, "--kubeconfig", fixture.world.kubeconfigPath];
      const child = spawn(process.execPath, inputs, { stdio: ["ignore", "pipe", "pipe"] });
      const ended = new Promise<number | null>((resolve) => child.once("exit", resolve));
      let wasCordoned = false;
      child.stderr.on("data", (chunk: Buffer) => {
        if (wasCordoned || !chunk.toString().includes("cordoned after")) return;
        wasCordoned = isCordoned("node-6");
        child.stdout.destroy();
        if (how === "close") child.stderr.destroy();
        else for (let times = 0; times < 2; times += 1) child.kill("SIGHUP");
      });
      assert.deepEqual([await ended, wasCordoned, isCordoned("node-6")], [EXIT_FAILURE, true, false]);
      assert.deepEqual([fixture.hasPod("held"), fixture.orders("node-6")], [true, []]);
      await deletePod("held");
    });
  }

  test("ironfence drill succeeds if a user uncordons the node during the fence", async () => {
    const onNote = when("is created", () => setCordon("node-5", null));
    const { code, err } = await fixture.drill("--node node-5 --yes --timeout 50s", { onNote });
    assert.equal(code, 0, err);
    assert.deepEqual([isCordoned("node-5"), fixture.orders("node-5")], [false, ["ForceOff", "On"]]);
    assert.equal(fixture.node("node-5").metadata.annotations?.["ironfence.io/drill"], undefined);
    await until(fixture.agent, "the remediation is gone", () => fixture.remediations() === 0);
  });

  test("ironfence drill says what is left if the node cannot be uncordoned after the fence", async () => {
    const onNote = when("fenced and back after", () => {
      const match = { client: "ironfence", verbs: ["patch"] as const, resource: "nodes" };
      fixture.world.server.faults.inject({ match, times: Infinity, action: { kind: "status", status: 403 } });
    });
    const { code, err } = await fixture.drill("--node node-4 --yes --timeout 50s", { onNote });
    assert.equal(code, EXIT_FAILURE, err);
    assert.match(err, /left behind: node node-4 may be cordoned \(.*\): kubectl uncordon node-4/);
    assert.match(err, /\[FenceFailed\] node node-4 is back, but could not be uncordoned/);
  });
});
