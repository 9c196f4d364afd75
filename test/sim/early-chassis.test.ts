import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
import { begun, cutPower, INSTANT, ordersOfAgent, runEarly } from "./early-world.ts";
import type { World } from "./world.ts";
import { NAMESPACE } from "./world.ts";

// A chassis of several hosts whose manager and network switch restart together. The nodes stop renewing their leases
// although the hosts are on, and the manager reports Off until it has read their power.

const HOSTS = ["n1", "n2", "n3", "n4", "n5"].map((name) => ({ name, ...INSTANT }));
/** n5 is in another chassis. */
const CHASSIS = HOSTS.slice(0, 4).map(({ name }) => name);
/** The number of tested moments between two renewals. */
const PHASES = 8;
/** How long the manager reports its hosts as off after it answers again. */
const UNREAD_MS = 600_000;
/** Shorter than the grace period of Kubernetes: 50 s from the last renewal, which was at most 10 s earlier. */
const SILENT_MS = 39_000;

interface Restart {
  how: string;
  /** How long the manager does not answer. */
  downMs: number;
  /** How long before the switch the manager restarts. */
  aheadMs?: number;
  /** Whether it does not report its start time. */
  isUndated?: boolean;
  /** Whether it refuses connections while it starts. */
  refuses?: boolean;
}

const RESTARTS: readonly Restart[] = [
  { how: "down for 3 s", downMs: 3_000 },
  { how: "down for 11 s", downMs: 11_000 },
  { how: "down for 18 s", downMs: 18_000 },
  { how: "down for 18 s, the manager four minutes before the switch", downMs: 18_000, aheadMs: 240_000 },
  { how: "down for 18 s without a report of the start of the manager", downMs: 18_000, isUndated: true },
  {
    how: "down for 13 s with a manager that refuses connections and does not report its start",
    downMs: 13_000,
    isUndated: true,
    refuses: true,
  },
];

describe("a chassis whose manager and switch restart together", () => {
  for (const { how, downMs, aheadMs = 0, isUndated = false, refuses = false } of RESTARTS) {
    it(`a chassis whose manager and switch restart together, ${how}, has no host released early because it reports Off`, async () => {
      for (let seed = 1; seed <= PHASES; seed += 1) {
        await runEarly({ hosts: HOSTS, seed }, async (world) => {
          if (isUndated) for (const name of CHASSIS) world.faults.undated.add(name);
          for (const name of CHASSIS) world.createPod(name, `db-${name}`);
          await world.clock.advance((seed * 10_000) / PHASES);
          for (const name of CHASSIS) {
            world.rack.bmc(name).restart(refuses ? 0 : downMs, UNREAD_MS + downMs);
            if (refuses) world.rack.bmc(name).setReachability("refused");
          }
          world.clock.schedule(downMs, () => {
            for (const name of CHASSIS) world.rack.bmc(name).setReachability("up");
          });
          await world.clock.advance(aheadMs);
          for (const name of CHASSIS) world.network.cut.add(name);
          await world.clock.advance(SILENT_MS);
          for (const name of CHASSIS) world.network.cut.delete(name);
          await world.clock.advance(20_000);
          assert.equal(begun(world).length, 0);
          assert.deepEqual(
            CHASSIS.map((name) => world.pods(name).length),
            CHASSIS.map(() => 1),
          );
        });
      }
    });
  }
});

/** Adds a second device to n1 on a separate level: the BMC of n2, which controls n1 from now on. */
async function addSecondLevel(world: World): Promise<void> {
  world.rack.bmc("n2").rewire(world.rack.host("n1"));
  const targets = world.server.collection(FENCING_TARGETS);
  targets.delete({ namespace: NAMESPACE, name: "n2" });
  const devices = ["n1", "n2"].map((bmc, index) => ({
    address: `redfish://${bmc}`,
    level: 1 + index,
    credentialsSecretRef: { name: "bmc" },
    timeouts: { call: "2s" },
  }));
  targets.mergePatch({ namespace: NAMESPACE, name: "n1" }, { spec: { devices } });
  await world.clock.advance(60_000);
  world.createPod("n1", "db");
}

describe("a host with devices on two levels", () => {
  it("there is no early release by the second interface of a BMC that restarts with its switch, while the first one is not up", () =>
    runEarly({ hosts: HOSTS }, async (world) => {
      // Like IPMI, the second interface reports neither the start time of the BMC nor the power of a Chassis.
      world.faults.undated.add("n2");
      world.faults.alone.add("n2");
      await addSecondLevel(world);
      world.rack.bmc("n1").setReachability("refused");
      world.rack.bmc("n2").pretendPower("Off", 35_000);
      world.network.cut.add("n1");
      await world.clock.advance(SILENT_MS);
      world.network.cut.delete("n1");
      await world.clock.advance(10_000);
      assert.deepEqual(ordersOfAgent(world), []);
      assert.equal(world.pods("n1").length, 1);
    }));

  it("a host whose BMC died with it is remediated early by a second device that has been up for long", () =>
    runEarly({ hosts: HOSTS }, async (world) => {
      await addSecondLevel(world);
      await world.clock.advance(600_000);
      cutPower(world, "n1");
      world.rack.bmc("n1").setReachability("refused");
      await world.until("a remediation", () => begun(world).length > 0, 45_000);
      assert.equal(world.isReady("n1"), true);
    }));
});
