import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { BareMetalRemediation } from "../../../src/api/ironfence/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../../../src/api/ironfence/bare-metal-remediation.ts";
import { readCreationRecord } from "../../../src/nodes/creation-record.ts";
import type { Metal3Request } from "./machines.ts";
import { METAL3_REMEDIATIONS, Metal3Machines } from "./machines.ts";
import { Metal3World } from "./world.ts";

// Metal3Remediations from the beginning to the end: request, child remediation, state machine, BareMetalHost, its
// operator, node.

class Story {
  readonly world: Metal3World;
  readonly phases: string[] = [];
  readonly #machines: Metal3Machines;

  constructor(world: Metal3World) {
    this.world = world;
    this.#machines = new Metal3Machines(world);
    world.server.onChange(({ object }) => {
      const { phase } = (object as Metal3Request).status ?? {};
      if (object.kind !== METAL3_REMEDIATIONS.kind || phase === undefined || this.phases.at(-1) === phase) return;
      this.phases.push(phase);
    });
  }

  /** Runs `test` with Metal3Remediations served. */
  static run(test: (story: Story, world: Metal3World) => Promise<void>): Promise<void> {
    return Metal3World.run({ ownCluster: true, families: ["metal3-remediation"] }, (world) =>
      test(new Story(world), world),
    );
  }

  ask(strategy: Record<string, unknown> = {}): void {
    this.#machines.ask("m1", strategy);
  }

  get request(): Metal3Request | undefined {
    return this.#machines.request("m1");
  }

  get child(): BareMetalRemediation | undefined {
    return this.#machines.child("m1");
  }

  withdraw(): void {
    this.#machines.withdraw("m1");
  }

  machine(): string {
    return JSON.stringify(this.#machines.machine("m1"));
  }

  async until(what: string, holds: () => boolean): Promise<void> {
    await this.world.until(`${what}; child: ${JSON.stringify(this.child?.status?.timeline)}`, holds);
  }
}

describe("a Metal3Remediation", () => {
  it("a Metal3Remediation brings its node back by one power cycle, and is deleted with its child by the health check", () =>
    Story.run(async (story, world) => {
      await world.hang();
      story.ask();
      await story.until("the node is back", () => story.child?.status?.phase === "Succeeded");
      assert.deepEqual(story.phases, ["Running", "Waiting"]);
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
      assert.equal(story.child?.status?.machine?.name, "m1");
      story.withdraw();
      await story.until("request and child are gone", () => story.request === undefined && story.child === undefined);
      world.assertClean();
    }));

  it("a Metal3Remediation of ironfence's health check powers off no node that comes back before the next agent begins the fence", () =>
    Metal3World.run({ ownCluster: true, families: ["metal3-remediation", "machine-health-check"] }, async (world) => {
      const machines = new Metal3Machines(world);
      machines.createHealthCheck();
      await world.clock.advance(10_000);
      let killed: Promise<void> | undefined;
      const stop = world.server.onChange(({ object }) => {
        if (object.kind !== METAL3_REMEDIATIONS.kind) return;
        stop();
        queueMicrotask(() => void (killed = world.killAgent()));
      });
      const host = await world.hang();
      await world.until("the agent is killed", () => killed !== undefined);
      await killed;
      host.resume();
      await world.until("n1 is Ready", () => world.isReady("n1"));
      const recorded = new Set<string | undefined>();
      world.server.onChange(({ object: { kind, metadata } }) => {
        if (kind === BARE_METAL_REMEDIATIONS.kind) recorded.add(readCreationRecord(metadata.annotations)?.uid);
      });
      // The detector takes the request back only when it has its health checks.
      const match = { resource: "machinehealthchecks", client: "agent" };
      world.server.faults.inject({ match, times: Infinity, action: { kind: "delay", delayMs: 5_000 } });
      world.startAgent();
      await world.until("the request is gone", () => machines.request("m1") === undefined);
      await world.until("its child is gone", () => machines.child("m1") === undefined);
      assert.deepEqual(world.powerLog, []);
      assert.deepEqual([...recorded], [world.node("n1")?.metadata.uid]);
      world.assertClean();
    }));

  it("a Metal3Remediation tries again, then hands its Machine to the owner and marks the host", () =>
    Story.run(async (story, world) => {
      world.rack.host("n1").failDisk();
      await world.until("the node is not Ready", () => !world.isReady("n1"));
      story.ask({ retryLimit: 1 });
      await story.until("the request has ended", () => story.phases.at(-1) === "Deleting machine");
      assert.deepEqual(story.phases, ["Running", "Waiting", "Running", "Waiting", "Deleting machine"]);
      assert.equal(story.request?.status?.retryCount, 1);
      assert.match(story.machine(), /"OwnerRemediated","status":"False"/u);
      assert.equal(world.bmh().metadata.annotations?.["capm3.metal3.io/unhealthy"], "capm3/UnhealthyNode");
      assert.equal(world.powerLog.filter((order) => order === "n1 ForceOff").length, 2);
    }));

  it("a Metal3Remediation that is deleted during a fence leaves its host on and no mark of ironfence", () =>
    Story.run(async (story, world) => {
      await world.hang();
      story.ask();
      await story.until(
        "the host is off",
        () => story.child?.status?.phase === "PoweringOff" && world.offRequests().length > 0,
      );
      story.withdraw();
      await story.until("request and child are gone", () => story.request === undefined && story.child === undefined);
      await world.until("the node is back", () => world.isReady("n1"));
      world.assertClean();
    }));

  it("a Metal3Remediation steps back if the Metal3 provider's controller powers the host as well", () =>
    Story.run(async (story, world) => {
      await world.hang();
      story.ask();
      await story.until("the host is kept off", () => world.offRequests().length > 0);
      const key = `reboot.metal3.io/metal3-remediation-${story.request?.metadata.uid ?? ""}`;
      world.annotate({ [key]: '{"mode":"hard"}' });
      await story.until("our off request is withdrawn", () => world.offRequests().length === 0);
      await world.clock.advance(60_000);
      assert.equal(world.rack.host("n1").power, "Off", "ironfence leaves the off request of another owner");
      assert.match(story.request?.metadata.annotations?.["ironfence.io/refused"] ?? "", /^ConflictingController: /u);
      world.annotate({ [key]: null });
      await world.until("the node is back", () => world.isReady("n1"));
      await story.until("the child is gone", () => story.child === undefined);
      world.assertClean();
    }));
});
