import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Fault } from "../../../hack/kube-mock/faults.ts";
import { PROVISIONED_STATUS } from "../../../hack/rack/bare-metal-host-status.ts";
import type { BareMetalRemediation } from "../../../src/api/ironfence/bare-metal-remediation.ts";
import { PODS, SECRETS } from "../../../src/api/kubernetes/core-types.ts";
import type { FencingTarget } from "../../../src/api/ironfence/fencing-target.ts";
import { FENCING_TARGETS } from "../../../src/api/ironfence/fencing-target.ts";
import { BARE_METAL_HOSTS } from "../../../src/remediator/hosts/bare-metal-host/store/host-store.ts";
import { NAMESPACE } from "../world.ts";
import { WorkloadWorld } from "./world.ts";

// BareMetalHosts that cannot be read. This must not lead to a late power-off, and no host may stay off because of it.

const HOST = "/apis/metal3.io/v1alpha1/namespaces/caps/baremetalhosts/n3";
const LIST = "/apis/metal3.io/v1alpha1/baremetalhosts";
const SHORT = { retryLimit: 0, powerOffTimeout: "60s", drainTimeout: "30s", powerOnTimeout: "60s", timeout: "120s" };
const FAILURES: Readonly<Record<string, Fault["action"]>> = {
  "answers 500": { kind: "status", status: 500 },
  "may not be read": { kind: "status", status: 403 },
  "has no answer": { kind: "hang" },
};

/** Makes every read of the BareMetalHost fail from now on. */
function spoil(world: WorkloadWorld, action: Fault["action"]): void {
  const match = { client: "agent", method: "GET", watch: false, pathPrefix: HOST };
  world.management.server.faults.inject({ match, times: Infinity, action });
}

/** Calls `act` when the intent of a power-off is stored, before the order. */
function atIntent(world: WorkloadWorld, act: () => void): void {
  let done = false;
  world.management.server.onChange(({ object }) => {
    const isStored = (object as BareMetalRemediation).status?.phase === "PoweringOff";
    if (done || object.kind !== "BareMetalRemediation" || !isStored) return;
    done = true;
    act();
  });
}

/** Adds a detached BareMetalHost for host n3 of the management cluster, which also has a FencingTarget. */
async function twin(world: WorkloadWorld): Promise<void> {
  const { management } = world;
  const targets = management.server.collection<FencingTarget>(FENCING_TARGETS);
  const [device] = targets.get({ namespace: NAMESPACE, name: "n3" })?.spec.devices ?? [];
  const key = { namespace: "caps", name: "n3" };
  const data = { username: btoa("admin"), password: btoa(management.faults.password) };
  management.create(SECRETS, { namespace: "caps", name: "n3-bmc" }, { data });
  const bmc = { address: device?.address ?? assert.fail(), credentialsName: "n3-bmc" };
  const annotations = { "baremetalhost.metal3.io/detached": "" };
  const spec = { online: true, bmc, image: { url: "http://image" } };
  management.create(BARE_METAL_HOSTS, { ...key, annotations }, { spec });
  const status = { ...PROVISIONED_STATUS, operationalStatus: "detached" };
  management.server.collection(BARE_METAL_HOSTS).mergePatch(key, { status }, "status");
  await world.clock.advance(5_000);
}

const WAYS = {
  "in addition to a FencingTarget": async (world: WorkloadWorld): Promise<string> => {
    await twin(world);
    await world.hang("management", "n3");
    world.management.remediate("n3", SHORT);
    return "management";
  },
  "that is powered directly": async (world: WorkloadWorld): Promise<string> => {
    await world.neverJoined("n3");
    const uid = world.machine("n3", undefined);
    world.takeHost("n3", "n3", uid);
    world.remediateMachine("n3", uid, SHORT);
    return "workload";
  },
};

for (const [which, begin] of Object.entries(WAYS)) {
  const options = { targets: which === "in addition to a FencingTarget" };

  describe(`a BareMetalHost ${which} whose read takes long before a power-off`, () => {
    it(`a BareMetalHost ${which} whose read takes long before a power-off lets no power-off through that was paused during the read`, () =>
      WorkloadWorld.run(options, async (world) => {
        atIntent(world, () => spoil(world, { kind: "delay", delayMs: 3_000 }));
        await begin(world);
        await world.until("the intent is stored", () => world.phases.includes("PoweringOff"));
        await world.clock.advance(1_000);
        world.management.pause(true);
        await world.clock.advance(90_000);
        assert.deepEqual(world.powerLog, []);
      }));

    it(`a BareMetalHost ${which} whose read takes long before a power-off lets no power-off through that relies on an identity older than 5 s`, () =>
      WorkloadWorld.run(options, async (world) => {
        atIntent(world, () => spoil(world, { kind: "delay", delayMs: 5_500 }));
        const place = await begin(world);
        await world.until("the intent is stored", () => world.phases.includes("PoweringOff"));
        await world.clock.advance(30_000);
        assert.deepEqual(world.powerLog, []);
        world.management.server.faults.clear();
        await world.until("it is powered off then", () => world.powerLog.includes(`${place} n3 ForceOff`), 30_000);
      }));
  });

  for (const [how, action] of Object.entries(FAILURES)) {
    describe(`a BareMetalHost ${which} that ${how}`, () => {
      it(`a BareMetalHost ${which} keeps no host off if it ${how}`, () =>
        WorkloadWorld.run(options, async (world) => {
          const place = await begin(world);
          await world.until("it is powered off", () => world.powerLog.includes(`${place} n3 ForceOff`));
          spoil(world, action);
          await world.until("it is powered on", () => world.powerLog.includes(`${place} n3 On`), 60_000);
        }));
    });
  }
}

describe("BareMetalHosts that cannot be listed after a restart", () => {
  for (const [how, action] of Object.entries(FAILURES)) {
    it(`BareMetalHosts whose list ${how} after a restart keep no host of a FencingTarget off`, () =>
      WorkloadWorld.run({}, async (world) => {
        world.management.createPod("n3", "db");
        await world.clock.advance(3_000);
        await world.hang("management", "n3");
        const held = { metadata: { finalizers: ["test/held"] } };
        world.management.server.collection(PODS).mergePatch({ namespace: "default", name: "db" }, held);
        world.management.remediate("n3", SHORT);
        await world.until("it is proven off", () => world.phases.includes("Releasing"));
        await world.killAgent();
        const match = { client: "agent", path: LIST };
        world.management.server.faults.inject({ match, times: Infinity, action });
        world.startAgent();
        await world.until("it is powered on", () => world.powerLog.includes("management n3 On"), 120_000);
      }));
  }
});
