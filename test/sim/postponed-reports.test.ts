import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { BareMetalRemediation } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
import { NODES } from "../../src/api/kubernetes/core-types.ts";
import { NODE_NAME } from "../../src/api/names/annotations.ts";
import { creationRecord } from "../../src/nodes/creation-record.ts";
import { ZONE_LABEL } from "./cluster.ts";
import { NAMESPACE, World } from "./world.ts";

// Many hosts fail at once, and the agent stores later what their remediations wait for.

/** More than twice as many as are reported at once. */
const HOSTS = Array.from({ length: 50 }, (_, index) => `n${index + 1}`);
/** What the remediations wait for. */
const WAITS = { Maintenance: "the end of a maintenance", WaitingForTurn: "admission" } as const;
type Wait = keyof typeof WAITS;
const EACH_WAIT: readonly Wait[] = ["Maintenance", "WaitingForTurn"];

const all = (world: World): BareMetalRemediation[] => [
  ...world.server.collection<BareMetalRemediation>(BARE_METAL_REMEDIATIONS).values(),
];
const unreported = (world: World): BareMetalRemediation[] => all(world).filter(({ status }) => status === undefined);

function maintain(world: World, name: string, maintenance: boolean): void {
  world.server.collection(FENCING_TARGETS).mergePatch({ namespace: NAMESPACE, name }, { spec: { maintenance } });
}

/** Ends the maintenance of a target, and the remediations before it in the queue for admission. */
function letBegin(world: World, name: string): void {
  maintain(world, name, false);
  for (const { metadata } of all(world)) {
    if (metadata.name !== name) world.server.collection(BARE_METAL_REMEDIATIONS).delete({ ...metadata });
  }
}

const ordersTo = (world: World, name: string): string[] =>
  world.powerLog.filter((order) => order.startsWith(`${name} `));

/**
 * Runs `test` when all nodes are down, all remediations wait, and the reports of several of them are postponed.
 *
 * @param test gets a node whose remediation has no status.
 */
function runPostponed(wait: Wait, test: (world: World, name: string) => Promise<void>): Promise<void> {
  return World.run({ hosts: HOSTS, limits: { hosts: wait === "Maintenance" ? Infinity : 1 } }, async (world) => {
    for (const name of HOSTS) {
      maintain(world, name, wait === "Maintenance");
      world.rack.host(name).hang();
    }
    await world.until("all are down", () => HOSTS.every((name) => !world.isReady(name)));
    for (const name of HOSTS) {
      const annotations = { [NODE_NAME]: name, ...creationRecord(world.node(name), ZONE_LABEL) };
      world.create(BARE_METAL_REMEDIATIONS, { namespace: NAMESPACE, name, annotations }, { spec: {} });
    }
    await world.until("some reports are stored", () => unreported(world).length < HOSTS.length - 10, 5_000);
    const [last = assert.fail("no report is postponed")] = unreported(world).slice(-1);
    await test(world, last.metadata.name);
  });
}

describe("a report that is postponed", () => {
  for (const wait of EACH_WAIT) {
    const what = WAITS[wait];

    it(`a report that is postponed by a remediation that waits for ${what} is stored later, with the node as it was when the wait began`, () =>
      runPostponed(wait, async (world, name) => {
        const bootID = world.node(name)?.status.nodeInfo?.bootID;
        const conditions = [{ type: "Ready", status: "True", lastTransitionTime: "2026-01-01T00:00:00Z" }];
        await world.clock.advance(100);
        world.server
          .collection(NODES)
          .mergePatch({ name }, { status: { nodeInfo: { bootID: "another" }, conditions } });
        assert.equal(world.remediation(name)?.status, undefined);
        await world.clock.advance(2_000);
        assert.deepEqual(unreported(world), []);
        const { node } = world.remediation(name)?.status ?? {};
        assert.deepEqual([node?.wasReady, node?.bootIDAtStart], [false, bootID]);
        assert.equal(world.condition(name, "Processing"), `True ${wait}`);
      }));

    it(`a node whose report was postponed when the agent was killed while it waited for ${what} is not powered off if it came back`, () =>
      runPostponed(wait, async (world, name) => {
        await world.killAgent();
        assert.equal(world.remediation(name)?.status, undefined);
        world.rack.host(name).resume();
        await world.until("it is Ready", () => world.isReady(name));
        letBegin(world, name);
        world.startAgent();
        await world.phase(name, "Succeeded", 120_000);
        assert.match(world.story(), new RegExp(`Recovered: node ${name} is Ready again by itself`));
        assert.deepEqual(ordersTo(world, name), []);
      }));

    it(`a Node that is deleted while its report that it waits for ${what} is postponed is still fenced`, () =>
      runPostponed(wait, async (world, name) => {
        await world.clock.advance(100);
        const node = world.node(name);
        world.server.collection(NODES).delete({ name });
        await world.clock.advance(50);
        const { status } = world.remediation(name) ?? {};
        assert.deepEqual([status?.node?.uid, status?.node?.wasReady], [node?.metadata.uid, false], "stored at once");
        letBegin(world, name);
        await world.phase(name, "Succeeded", 300_000);
        assert.deepEqual(ordersTo(world, name), [`${name} ForceOff`, `${name} On`]);
      }));

    for (const killed of ["before", "after"] as const) {
      it(`a Node that is deleted while its report that it waits for ${what} is postponed is still fenced if the agent is killed right ${killed} that`, () =>
        runPostponed(wait, async (world, name) => {
          if (killed === "before") await world.killAgent();
          world.server.collection(NODES).delete({ name });
          if (killed === "after") await world.killAgent();
          assert.equal(world.remediation(name)?.status, undefined);
          await world.clock.advance(30_000);
          letBegin(world, name);
          world.startAgent();
          await world.phase(name, "Succeeded", 300_000);
          assert.deepEqual(ordersTo(world, name), [`${name} ForceOff`, `${name} On`]);
        }));
    }
  }

  it("a report that is postponed does not delay a remediation that may begin meanwhile", () =>
    runPostponed("Maintenance", async (world, name) => {
      maintain(world, name, false);
      await world.clock.advance(100);
      assert.ok(unreported(world).length > 0, "others wait for their reports");
      assert.equal(world.remediation(name)?.status?.phase, "PoweringOff");
    }));
});
