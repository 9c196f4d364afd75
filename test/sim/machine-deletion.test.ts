import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { BareMetalRemediation } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { NODES } from "../../src/api/kubernetes/core-types.ts";
import { Okd } from "./okd-world.ts";
import type { World } from "./world.ts";
import { NAMESPACE } from "./world.ts";

// The whole remediator deletes the Machine of a node, and its MachineSet creates another one.

const STRATEGY = {
  type: "Escalate",
  via: "MachineDeletion",
  retryLimit: 0,
  powerOffTimeout: "30s",
  powerOnTimeout: "30s",
  drainTimeout: "20s",
  timeout: "60s",
};
const FINALIZER = "machine.machine.openshift.io";

/** Removes a deleted Machine and its Node after a while, as the machine controller does. */
async function letGo(okd: Okd, world: World, machine: string, node: string): Promise<void> {
  world.server.collection(NODES).delete({ name: node });
  okd.patch(machine, { metadata: { finalizers: null } });
  await world.clock.advance(1_000);
}

/** Creates another Machine whose node joins, as the MachineSet and a spare host do. */
function replace(okd: Okd, world: World, machine: string, node: string): void {
  const nodes = world.server.collection(NODES);
  nodes.create({ metadata: { name: node }, spec: {} });
  nodes.mergePatch({ name: node }, { status: { conditions: [{ type: "Ready", status: "True" }] } }, "status");
  okd.createMachine(machine, node);
}

/** Makes Nodes name their Machines, and keeps Machines from disappearing by themselves. */
async function prepare(okd: Okd, world: World): Promise<void> {
  for (const number of [1, 2]) {
    const annotations = { "machine.openshift.io/machine": `openshift-machine-api/m${number}` };
    world.server.collection(NODES).mergePatch({ name: `n${number}` }, { metadata: { annotations } });
    okd.patch(`m${number}`, { metadata: { finalizers: [FINALIZER] } });
  }
  await world.clock.advance(100);
}

async function fail(world: World, ...nodes: string[]): Promise<void> {
  for (const node of nodes) world.rack.host(node).failDisk();
  await world.until("the nodes are not Ready", () => nodes.every((node) => !world.isReady(node)));
}

const isDeleting = (okd: Okd, machine: string): boolean =>
  okd.machine(machine)?.metadata.deletionTimestamp !== undefined;

/** Ends the agent right after the write of a step and before its answer, and starts it again. */
async function crashAt(world: World, step: string): Promise<void> {
  let killed: Promise<void> | undefined;
  const stop = world.server.onChange(({ object }) => {
    const { timeline } = (object as BareMetalRemediation).status ?? {};
    if (object.kind === "BareMetalRemediation" && timeline?.at(-1)?.step === step) killed ??= world.killAgent();
  });
  await world.until(step, () => killed !== undefined);
  stop();
  await killed;
  await world.clock.advance(2_000);
  world.startAgent();
}

function run(test: (okd: Okd, world: World) => Promise<void>): Promise<void> {
  return Okd.run({ requests: false }, async (okd, world) => {
    await prepare(okd, world);
    await test(okd, world);
  });
}

describe("a node whose reboots did not help", () => {
  it("a node whose reboots did not help has its Machine deleted, and the remediation goes once a node of another name has taken the place", () =>
    run(async (okd, world) => {
      await fail(world, "n1");
      world.remediate("n1", STRATEGY);
      await world.until("the Machine is deleted", () => isDeleting(okd, "m1"));
      assert.equal(world.remediation("n1")?.status?.provenReboots, 1);
      assert.equal(world.condition("n1", "PermanentNodeDeletionExpected"), "True MachineDeletionExpected");
      assert.equal(world.rack.host("n1").power, "Off");
      await letGo(okd, world, "m1", "n1");
      replace(okd, world, "m9", "n9");
      await world.until("the remediation is gone", () => world.remediation("n1") === undefined);
      assert.equal(isDeleting(okd, "m2"), false);
    }));

  it("a node whose reboots did not help costs few requests if its Machine cannot be deleted because of conflicts, and that is reported", () =>
    run(async (okd, world) => {
      const match = { verbs: ["delete"] as const, resource: "machines", client: "agent" };
      world.server.faults.inject({ match, times: Infinity, action: { kind: "status", status: 409 } });
      let deletions = 0;
      world.server.onRequest(({ client, method, path }) => {
        if (client !== "agent" || method !== "DELETE" || !path.endsWith("/machines/m1")) return;
        deletions += 1;
        // Otherwise, an agent that writes without end would run until no memory is left.
        if (deletions === 1_000) void world.killAgent();
      });
      await fail(world, "n1");
      world.remediate("n1", { ...STRATEGY, powerOnTimeout: "120s" });
      await world.until("a deletion is refused", () => deletions > 0);
      await world.clock.advance(30_000);
      assert.ok(deletions < 40, `${deletions} deletions`);
      assert.equal(world.condition("n1", "Processing"), "True ApiFailing");
      world.server.faults.clear();
      await world.until("the Machine is deleted", () => isDeleting(okd, "m1"), 15_000);
    }));

  it("a node whose reboots did not help has its Machine deleted though a reboot has deleted the Node that names it", () =>
    run(async (okd, world) => {
      await fail(world, "n1");
      world.remediate("n1", { ...STRATEGY, workloadRelease: "DeleteNode" });
      await world.until("the Machine is deleted", () => isDeleting(okd, "m1"));
    }));

  it("a node whose reboots did not help has a remediation that goes with its Machine, and waits for no Node that it has deleted before", () =>
    run(async (okd, world) => {
      await fail(world, "n1");
      world.remediate("n1", { ...STRATEGY, workloadRelease: "DeleteNode" });
      await world.until("the Machine is deleted", () => isDeleting(okd, "m1"));
      okd.patch("m1", { metadata: { finalizers: null } });
      await world.clock.advance(1_000);
      // The garbage collector does this if the Machine owns the remediation.
      world.server.collection(BARE_METAL_REMEDIATIONS).delete({ namespace: NAMESPACE, name: "n1" });
      await world.until("the remediation is gone", () => world.remediation("n1") === undefined, 5_000);
      assert.equal(world.rack.host("n1").power, "Off");
    }));

  it("a node whose reboots did not help has its Machine deleted, and its host is not powered on if the remediation goes with that before it is on record", () =>
    run(async (okd, world) => {
      await fail(world, "n1");
      world.remediate("n1", STRATEGY);
      let killed: Promise<void> | undefined;
      const stop = world.server.onChange(({ object }) => {
        if (object.kind === "Machine" && object.metadata.deletionTimestamp !== undefined) killed ??= world.killAgent();
      });
      await world.until("the Machine is deleted", () => killed !== undefined);
      stop();
      await killed;
      await letGo(okd, world, "m1", "n1");
      world.server.collection(BARE_METAL_REMEDIATIONS).delete({ namespace: NAMESPACE, name: "n1" });
      world.startAgent();
      await world.until("the remediation is gone", () => world.remediation("n1") === undefined);
      assert.equal(world.powerLog.at(-1), "n1 ForceOff");
      assert.equal(world.rack.host("n1").power, "Off");
    }));

  it("a node whose reboots did not help has its Machine deleted once, whatever moment the agent ends at", () =>
    run(async (okd, world) => {
      await fail(world, "n1");
      world.remediate("n1", STRATEGY);
      for (const step of ["MachineDeletionExpected", "MachineDeleted"]) await crashAt(world, step);
      await letGo(okd, world, "m1", "n1");
      await world.killAgent();
      world.startAgent();
      await world.clock.advance(5_000);
      assert.equal(world.remediation("n1")?.status?.phase, "Provisioning");
      replace(okd, world, "m9", "n9");
      await world.until("the remediation is gone", () => world.remediation("n1") === undefined);
    }));

  it("a node whose reboots did not help waits until the other one has its Machine replaced", () =>
    run(async (okd, world) => {
      await fail(world, "n1", "n2");
      world.remediate("n1", STRATEGY);
      world.remediate("n2", STRATEGY);
      await world.until("one waits", () =>
        ["n1", "n2"].some((node) => world.condition(node, "Processing") === "True ReplacementTurn"),
      );
      await world.until("one is deleted", () => isDeleting(okd, "m1") || isDeleting(okd, "m2"));
      const [first, second] = isDeleting(okd, "m1") ? (["1", "2"] as const) : (["2", "1"] as const);
      await world.clock.advance(30_000);
      assert.equal(isDeleting(okd, `m${second}`), false);
      await letGo(okd, world, `m${first}`, `n${first}`);
      replace(okd, world, "m9", "n9");
      await world.until("the other one is deleted", () => isDeleting(okd, `m${second}`));
      await letGo(okd, world, `m${second}`, `n${second}`);
      replace(okd, world, "m8", "n8");
      await world.until(
        "both are gone",
        () => [...world.server.collection(BARE_METAL_REMEDIATIONS).values()].length === 0,
      );
    }));

  it("a node whose reboots did not help is left to the operator if no other one comes in time, and its host to the controller that deprovisions it", () =>
    run(async (okd, world) => {
      await fail(world, "n1");
      world.remediate("n1", STRATEGY);
      await world.until("the Machine is deleted", () => isDeleting(okd, "m1"));
      await letGo(okd, world, "m1", "n1");
      await world.phase("n1", "Failed");
      assert.equal(world.condition("n1", "Succeeded"), "False ReplacementTimeout");
      assert.equal(world.rack.host("n1").power, "Off");
    }));

  it("a node whose reboots did not help keeps its Machine if that is a master's", () =>
    run(async (okd, world) => {
      okd.patch("m1", { metadata: { labels: { "machine.openshift.io/cluster-api-machine-role": "master" } } });
      await fail(world, "n1");
      world.remediate("n1", STRATEGY);
      await world.phase("n1", "Failed");
      assert.equal(world.condition("n1", "Succeeded"), "False ControlPlaneNode");
      assert.equal(isDeleting(okd, "m1"), false);
      assert.equal(world.rack.host("n1").power, "On");
    }));

  it("a node whose reboots did not help keeps the Machine that its annotation names if that is another node's", () =>
    run(async (okd, world) => {
      const annotations = { "machine.openshift.io/machine": "openshift-machine-api/m2" };
      world.server.collection(NODES).mergePatch({ name: "n1" }, { metadata: { annotations } });
      await fail(world, "n1");
      world.remediate("n1", STRATEGY);
      await world.phase("n1", "Failed");
      assert.equal(world.condition("n1", "Succeeded"), "False NoMachine");
      assert.equal(isDeleting(okd, "m2"), false);
    }));

  it("a node whose reboots did not help keeps its Machine if the BMC did not answer: no reboot was proven", () =>
    run(async (okd, world) => {
      await fail(world, "n1");
      world.rack.bmc("n1").setReachability("silent");
      world.remediate("n1", STRATEGY);
      await world.phase("n1", "Failed");
      assert.equal(world.condition("n1", "Succeeded"), "False RebootsNotProven");
      assert.equal(isDeleting(okd, "m1"), false);
    }));
});
