import assert from "node:assert/strict";
import { it } from "node:test";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { NAMESPACE, World } from "./world.ts";

it("a reboot fences, frees and restores a dead node, each step in its order", () =>
  World.run({}, async (world) => {
    world.createPod("n1", "db");
    await world.clock.advance(3_000);
    const before = world.node("n1");
    const host = await world.hang("n1");
    world.remediate("n1");
    await world.phase("n1", "Succeeded");
    assert.equal(world.condition("n1", "Succeeded"), "True NodeRestored");
    assert.equal(world.condition("n1", "Processing"), "False Succeeded");
    assert.deepEqual(world.phases.get("n1"), [
      "Verifying",
      "PoweringOff",
      "Releasing",
      "PoweringOn",
      "Rejoining",
      "Restoring",
      "Succeeded",
    ]);
    assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
    assert.deepEqual(world.markLog, ["n1 +taint", "n1 -taint", "n1 +quarantine", "n1 -quarantine"]);
    assert.deepEqual(world.pods("n1"), []);
    assert.equal(host.os, "running");
    assert.deepEqual(world.node("n1")?.metadata.labels, before?.metadata.labels);
    assert.equal(world.target("n1")?.status?.lastReboot?.bootID, before?.status.nodeInfo?.bootID);
    world.assertClean();
  }));

it("a reboot succeeds although the health check deletes the remediation as soon as the node is Ready", () =>
  World.run({}, async (world) => {
    await world.hang("n1");
    let said: string | undefined;
    const stop = world.server.onChange(({ object }) => {
      if (object.kind !== "Node" || !world.isReady("n1")) return;
      stop();
      queueMicrotask(() =>
        world.server.collection(BARE_METAL_REMEDIATIONS).delete({ namespace: NAMESPACE, name: "n1" }),
      );
    });
    world.server.onChange(({ object }) => {
      if (object.kind === "BareMetalRemediation") said = world.condition("n1", "Succeeded") ?? said;
    });
    world.remediate("n1");
    await world.until("the remediation is gone", () => said !== undefined && world.remediation("n1") === undefined);
    assert.equal(said, "True NodeRestored");
    assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
    world.assertClean();
  }));

it("a reboot orders a host off that reads Off already, and proves it off only after that", () =>
  World.run({}, async (world) => {
    world.createPod("n1", "db");
    await world.clock.advance(3_000);
    await world.hang("n1");
    world.otherClientOrders("n1", "ForceOff");
    await world.until("n1 is off", () => world.rack.host("n1").power === "Off");
    const calls = world.devices.calls.length;
    world.remediate("n1");
    await world.until("n1 is tainted", () => world.markLog.includes("n1 +taint"));
    const asked = world.devices.calls.slice(calls).flatMap(({ host, call }) => (host === "n1" ? [call] : []));
    const ordered = asked.indexOf("ForceOff");
    assert.ok(ordered >= 0, asked.join(", "));
    assert.deepEqual(
      asked.slice(ordered + 1, ordered + 3),
      ["readPower", "readPower"],
      "two fresh readings after the order",
    );
    await world.phase("n1", "Succeeded");
    world.assertClean();
  }));
