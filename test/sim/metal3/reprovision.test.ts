import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BARE_METAL_HOSTS } from "../../../src/remediator/hosts/bare-metal-host/store/host-store.ts";
import { METAL3, Metal3World } from "./world.ts";

// A BareMetalHost that Metal3 installs again, with its running operator.

const STRATEGY = { type: "Reprovision", via: "BareMetalHost", requireReboot: false } as const;

function imageOf(world: Metal3World): unknown {
  const host = world.server.collection(BARE_METAL_HOSTS).get({ namespace: METAL3, name: "n1" });
  return (host as { spec?: { image?: unknown } } | undefined)?.spec?.image;
}

const step = (world: Metal3World): string | undefined => world.remediation("n1")?.status?.installation?.step;

/** @param isUsed whether a Metal3Machine keeps using the host. @returns the image that is installed on it. */
async function begin(world: Metal3World, isUsed = false): Promise<string> {
  if (!isUsed) world.edit({ spec: { consumerRef: null } });
  const host = await world.hang();
  world.remediate("n1", STRATEGY);
  return host.machineID;
}

describe("a BareMetalHost", () => {
  it("a BareMetalHost is deprovisioned and provisioned again, and its node joins again with its labels", () =>
    Metal3World.run({}, async (world) => {
      const installed = await begin(world);
      await world.phase("Succeeded");
      const host = world.rack.host("n1");
      assert.notEqual(host.machineID, installed, "what was on the disk is gone");
      assert.deepEqual(imageOf(world), { url: "http://image" });
      assert.equal(world.bmh().provisioningState, "provisioned");
      assert.ok(world.isReady("n1"));
      world.assertClean();
    }));

  it("a BareMetalHost that a user uses is not touched, and the other way is named", () =>
    Metal3World.run({}, async (world) => {
      await begin(world, true);
      await world.phase("Failed");
      assert.equal(world.condition("Succeeded").reason, "HostNotInstallable");
      assert.match(world.condition("Succeeded").message, /MachineDeletion/u);
      assert.deepEqual(world.powerLog, []);
      world.assertClean();
    }));

  for (const at of ["Deprovisioning", "Provisioning"] as const) {
    it(`a BareMetalHost is still installed if the agent crashes while it is ${at}`, () =>
      Metal3World.run({}, async (world) => {
        const installed = await begin(world);
        await world.until(at, () => step(world) === at);
        await world.killAgent();
        await world.clock.advance(5_000);
        world.startAgent();
        await world.phase("Succeeded");
        assert.notEqual(world.rack.host("n1").machineID, installed);
        assert.deepEqual(imageOf(world), { url: "http://image" });
        world.assertClean();
      }));

    it(`a BareMetalHost whose reprovision is canceled while it is ${at} has its image restored and is powered on`, () =>
      Metal3World.run({}, async (world) => {
        await begin(world);
        await world.until(at, () => step(world) === at);
        await world.clock.advance(1_000);
        world.abort();
        await world.until("it is gone", () => world.remediation("n1") === undefined);
        assert.deepEqual(imageOf(world), { url: "http://image" });
        await world.until("it is provisioned", () => world.bmh().provisioningState === "provisioned");
        await world.until("the node is Ready", () => world.isReady("n1"));
        world.assertClean();
      }));
  }

  it("a BareMetalHost that a user takes meanwhile is left to that user", () =>
    Metal3World.run({}, async (world) => {
      await begin(world);
      await world.until("the image is off", () => step(world) === "Deprovisioning" && imageOf(world) === undefined);
      world.edit({
        spec: {
          consumerRef: { kind: "Metal3Machine", name: "theirs", namespace: METAL3 },
          image: { url: "http://theirs" },
        },
      });
      await world.phase("Failed");
      assert.match(world.condition("Succeeded").reason, /^(HostTaken|TargetGone)$/u);
      assert.deepEqual(imageOf(world), { url: "http://theirs" });
      world.assertClean();
    }));
});
