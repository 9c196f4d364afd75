import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Replayer } from "../../src/telemetry/decisions/replay.ts";
import { DecisionRecorder } from "../../src/telemetry/decisions/recorder.ts";
import { decode, encode } from "../../src/telemetry/decisions/entry.ts";
import { PURE_FUNCTIONS } from "../../src/cli/agent/pure-functions.ts";
import { play } from "./explore/play.ts";
import type { Run } from "./explore/run.ts";
import { scenario } from "./explore/scenarios.ts";
import { walkOf } from "./explore/walk.ts";

async function record(run: Run): Promise<string[]> {
  const lines: string[] = [];
  await play(run, { record: (line) => lines.push(line.trimEnd()) });
  return lines;
}

function replay(lines: readonly string[]): Replayer["result"] {
  const replayer = new Replayer(PURE_FUNCTIONS);
  lines.every((line) => replayer.take(line));
  return replayer.result;
}

const FENCE = await record(scenario("reboot", 1));

describe("a recorded log", () => {
  it("a recorded log holds every decision of a fence, and leads to the same ones byte for byte", () => {
    const { difference, decisions, events, endsEarly } = replay(FENCE);
    assert.deepEqual([difference, endsEarly], [undefined, undefined]);
    assert.ok(decisions > 20 && events > 20, `${decisions} decisions, ${events} events`);
  });

  for (const name of ["reprovision", "handOver", "wrongHost", "hostInstalled", "machineReplaced", "massOutage"]) {
    it(`a recorded log leads to the same decisions in the scenario ${name}`, async () => {
      assert.equal(replay(await record(scenario(name, 1))).difference, undefined);
    });
  }

  for (const name of ["detected", "early", "massOutage", "okdChecked", "metal3Checked"]) {
    it(`a recorded log holds the decisions of the detector in the scenario ${name}, and leads to the same ones`, async () => {
      const lines = await record(scenario(name, 1));
      const byDetector = lines.filter((line) => /"by":"[a-z0-9-]+-health-check"/.test(line));
      assert.ok(byDetector.length > 10, `${byDetector.length} decisions of the detector`);
      const { difference, decisions } = replay(lines);
      assert.deepEqual([difference, decisions > byDetector.length], [undefined, true]);
    });
  }

  it("a recorded log shows a decision of the detector that has changed, and names its health check", async () => {
    const lines = await record(scenario("detected", 1));
    const at = lines.findIndex((line) => line.includes('"actions":[{"type":"create"'));
    const changed = lines.with(at, (lines[at] ?? "").replace('"type":"create"', '"type":"delete"'));
    const { difference } = replay(changed);
    assert.deepEqual([difference?.line, difference?.session], [at + 1, "NodeHealthCheck all"]);
  });

  it("a recorded log is refused if it names a function that this program does not have", () => {
    const at = FENCE.findIndex((line) => line.includes('"by":"decide"'));
    const unknown = FENCE.with(at, (FENCE[at] ?? "").replace('"by":"decide"', '"by":"decideOtherwise"'));
    assert.throws(() => replay(unknown), /line \d+: this program has no decisions by decideOtherwise/);
  });

  it("a recorded log begins again with each process, so that it holds what happens before and after a crash", async () => {
    const crash = { at: "effect", index: 6, how: "crash", place: "between" } as const;
    const { difference, sessions } = replay(await record({ ...scenario("reboot", 1), faults: [crash] }));
    assert.equal(difference, undefined);
    assert.ok(sessions > 1);
  });

  for (const seed of [7, 11, 23]) {
    it(`a recorded log of the random run with seed ${seed} leads to the same decisions`, async () => {
      assert.equal(replay(await record(walkOf(seed))).difference, undefined);
    });
  }

  it("a recorded log ends when it has its largest size, and says so", () => {
    const lines: string[] = [];
    const write = (line: string): boolean => lines.push(line) > 0;
    const recorder = new DecisionRecorder({ process: "p", write, bytesMax: 300 });
    recorder.begin("uid", "ns/n1");
    for (let atMs = 0; atMs < 100; atMs += 1) recorder.event("uid", { type: "PowerReadFailed", atMs });
    assert.ok(lines.length < 6);
    assert.match(replay(lines).endsEarly ?? "", /largest size/);
  });

  it("a recorded log shows a decision that has changed, and where", () => {
    const at = FENCE.findIndex((line) => line.includes('"do":"forceOff"'));
    const changed = FENCE.with(at, (FENCE[at] ?? "").replace('"do":"forceOff"', '"do":"powerOn"'));
    const { difference } = replay(changed);
    assert.equal(difference?.line, at + 1);
    assert.ok(difference.replayed.includes('"do":"forceOff"') && difference.recorded.includes('"do":"powerOn"'));
  });

  it("a recorded log shows a decision that changes since an event is missing", () => {
    const at = FENCE.findIndex((line) => line.includes('"type":"PowerRead"'));
    assert.notEqual(replay(FENCE.toSpliced(at, 1)).difference, undefined);
  });

  it("a recorded log is plain JSON, line by line, which reads and writes the same", () => {
    for (const line of FENCE) assert.equal(encode(decode(line)), line);
  });
});
