import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { seededRandom } from "../lib/seeded-random.ts";
import { DetectorWorld, vendorType } from "./detector-fixture.ts";

// Compares the whole detector with a small model: after every second the same nodes must have a remediation.

const DURATION_SECONDS = 10;
/** How long a node stays in one state: shorter and longer than the duration of the condition. */
const STAYS_SECONDS = [1, 2, 5, 9, 11, 13, 25];
const NODES = ["n0", "n1", "n2", "n3", "n4"];
const SECONDS = 150;
const SEEDS = process.env["SEED"] === undefined ? [1, 2, 3, 4] : [Number(process.env["SEED"])];

type Ready = "True" | "False" | "Unknown";

/** The expected behavior for one node. */
class Model {
  ready: Ready = "True";
  sinceSecond = 0;
  untilSecond = 0;
  remediated = false;
  remediations = 0;

  change(ready: Ready, second: number, staySeconds: number): void {
    this.ready = ready;
    this.sinceSecond = second;
    this.untilSecond = second + staySeconds;
  }

  /** While a node is neither healthy nor unhealthy, nothing changes. */
  judge(second: number): void {
    if (this.ready === "True") this.remediated = false;
    else if (second - this.sinceSecond >= DURATION_SECONDS && !this.remediated) {
      this.remediated = true;
      this.remediations += 1;
    }
  }
}

describe("detector: nodes that flap", () => {
  for (const seed of SEEDS) {
    it(`detector: a node that flaps is remediated once in each outage, as the contract says (seed ${seed})`, async () => {
      const random = seededRandom(seed);
      const pick = <T>(choices: readonly T[]): T => choices[Math.floor(random.next() * choices.length)] as T;
      const world = new DetectorWorld();
      world.template();
      for (const name of NODES) world.node(name);
      // The attempt budget is so large that it has no effect. Other tests cover it.
      world.check({}, "check", { "ironfence.io/attempt-budget": "50/1m" });
      world.start();
      await world.until("enabled", () => world.status().phase === "Enabled");
      await world.clock.advance(1_000 - (world.clock.nowMs() % 1_000));
      const models = new Map(NODES.map((name) => [name, new Model()]));
      const created = new Map<string, number>();
      const unsubscribe = world.server.collection(vendorType("Fence")).subscribe(({ type, object }) => {
        const { name } = object.metadata;
        if (type === "ADDED") created.set(name, (created.get(name) ?? 0) + 1);
      });
      for (let second = 0; second < SECONDS; second += 1) {
        for (const [name, model] of models) {
          if (second >= model.untilSecond) {
            const ready = pick((["True", "False", "Unknown"] as const).filter((other) => other !== model.ready));
            world.ready(name, ready);
            model.change(ready, second, pick(STAYS_SECONDS));
          }
          model.judge(second);
        }
        await world.clock.advance(900);
        const wanted = NODES.filter((name) => models.get(name)?.remediated === true);
        const found = world.fences().map(({ metadata }) => metadata.name);
        assert.deepEqual(found.sort(), wanted, `in second ${second}`);
        await world.clock.advance(100);
      }
      for (const model of models.values()) model.judge(SECONDS);
      unsubscribe();
      assert.deepEqual(
        NODES.map((name) => created.get(name) ?? 0),
        NODES.map((name) => models.get(name)?.remediations),
      );
      await world.stop();
    });
  }
});
