import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { FaultRule, Step } from "../../hack/ipmi-mock/faults.ts";
import { BmcError } from "../../src/bmc/interface/errors.ts";
import type { BmcErrorCode } from "../../src/bmc/interface/errors.ts";
import { forever, hasCode } from "./bmc-fixture.ts";
import { startIpmiWorld } from "./ipmi-fixture.ts";

// Faults of datagrams in transit, and forged datagrams: the driver never reports a false Off and never hangs.
// bmc-faults.test.ts has each fault with each operation.

type Action = FaultRule["action"];

const rejectedReadings: [string, Action, BmcErrorCode][] = [
  ["is cut short", { type: "truncate" }, "BadResponse"],
  ["is longer than it says", { type: "pad" }, "BadResponse"],
  ["has a wrong authentication code", { type: "badAuthCode" }, "BadResponse"],
  ["is not protected at all", { type: "unprotected" }, "BadResponse"],
  ["is to another request", { type: "wrongTag" }, "BadResponse"],
  ["is of another session", { type: "wrongSessionId" }, "BadResponse"],
  ["has a number that was used", { type: "staleSequence" }, "BadResponse"],
  ["is random bytes", { type: "garbage" }, "BadResponse"],
  ["is larger than any message", { type: "garbage", bytes: 20_000 }, "BadResponse"],
  ["is an empty datagram", { type: "garbage", bytes: 0 }, "BadResponse"],
  ["never comes", { type: "loseAnswer" }, "Timeout"],
];

void describe("an answer that cannot be trusted", { concurrency: 11 }, () => {
  for (const [what, action, code] of rejectedReadings) {
    test(`an answer that ${what} is neither a reading nor the success of an order`, async () => {
      await using world = await startIpmiWorld({ host: { power: "Off" } });
      const device = world.open({ callTimeoutMs: 1_500 });
      await device.readPower(forever());
      world.mock.addFault({ steps: ["GetChassisStatus", "ChassisControl"], action });
      // On a slow machine, the deadline of the call may come first.
      await assert.rejects(device.readPower(forever()), (error) => {
        assert.ok(error instanceof BmcError);
        assert.ok([code, "Timeout"].includes(error.code), `${error.code}: ${error.message}`);
        return true;
      });
      await assert.rejects(device.forceOff(forever()), hasCode("Timeout"));
      const logins = (): number => world.mock.steps().filter((step) => step === "OpenSession").length;
      const before = logins();
      world.mock.clearFaults();
      await device.readPower(forever());
      assert.ok(logins() > before, "a copy of the order may come late: its session has ended with it");
    });
  }
});

test("a lost request, and a lost answer, are made good by sending again", async () => {
  await using world = await startIpmiWorld();
  const { mock, host } = world;
  const device = world.open();
  mock.addFault({ steps: ["GetChassisStatus"], times: 1, action: { type: "loseRequest" } });
  await device.readPower(forever());
  mock.addFault({ steps: ["GetChassisStatus"], times: 2, action: { type: "loseAnswer" } });
  await device.readPower(forever());
  mock.addFault({ steps: ["ChassisControl"], times: 1, action: { type: "loseAnswer" } });
  await device.forceOff(forever());
  assert.deepEqual(
    host.orders.map(({ type }) => type),
    ["ForceOff", "ForceOff"],
  );
});

test("an order that was sent twice ends the session, so that no copy of it can take effect later", async () => {
  await using world = await startIpmiWorld({ host: { powerOffDelayMs: 0 } });
  const { mock } = world;
  const device = world.open();
  await device.readPower(forever());
  mock.addFault({ steps: ["ChassisControl"], times: 1, action: { type: "loseRequest" } });
  await device.forceOff(forever());
  assert.deepEqual(mock.steps().slice(-2), ["ChassisControl", "CloseSession"]);
  await device.on(forever());
  assert.equal(mock.steps().filter((step) => step === "OpenSession").length, 2);
});

test("a copy of an order that the network held back does not undo the next order", async () => {
  await using world = await startIpmiWorld({ host: { powerOffDelayMs: 0, powerOnDelayMs: 0 } });
  const { mock, host } = world;
  const device = world.open();
  await device.readPower(forever());
  mock.addFault({ steps: ["ChassisControl"], times: 1, action: { type: "lateRequest", delayMs: 1_500 } });
  await device.forceOff(forever());
  await device.on(forever());
  await new Promise((resolve) => setTimeout(resolve, 1_700));
  assert.deepEqual(
    host.orders.map(({ type }) => type),
    ["ForceOff", "On"],
  );
});

test("an order answered at once keeps its session", async () => {
  await using world = await startIpmiWorld();
  const device = world.open();
  await device.forceOff(forever());
  await device.readPower(forever());
  assert.equal(world.mock.steps().filter((step) => step === "OpenSession").length, 1);
});

test("an old answer that comes again says nothing, however well it is authenticated", async () => {
  await using world = await startIpmiWorld({ host: { power: "Off" } });
  const device = world.open();
  for (let reads = 0; reads < 3; reads += 1) assert.equal((await device.readPower(forever())).state, "Off");
  world.bmc.pretendPower("On", 60_000);
  world.mock.addFault({ steps: ["GetChassisStatus"], action: { type: "replay" } });
  for (let reads = 0; reads < 70; reads += 1) assert.equal((await device.readPower(forever())).state, "On");
});

test("answers that come twice or behind the next one do not mislead", async () => {
  await using world = await startIpmiWorld({ host: { power: "Off" } });
  const device = world.open();
  world.mock.addFault({ steps: ["GetChassisStatus"], times: 5, action: { type: "duplicateAnswer" } });
  for (let reads = 0; reads < 5; reads += 1) assert.equal((await device.readPower(forever())).state, "Off");
  world.mock.addFault({ steps: ["GetChassisStatus"], times: 1, action: { type: "reorder" } });
  assert.equal((await device.readPower(forever())).state, "Off");
  world.bmc.pretendPower("On", 60_000);
  assert.equal((await device.readPower(forever())).state, "On");
});

test("a request that the network doubles is carried out once", async () => {
  await using world = await startIpmiWorld();
  world.mock.addFault({ steps: ["ChassisControl"], action: { type: "duplicateRequest" } });
  await world.open().forceOff(forever());
  assert.equal(world.host.orders.length, 1);
});

test("wrong checksums are tolerated if the authentication code vouches for the message", async () => {
  await using world = await startIpmiWorld();
  world.mock.addFault({ action: { type: "badChecksum" } });
  const device = world.open();
  assert.equal((await device.readPower(forever())).state, "On");
  await device.forceOff(forever());
  assert.equal(world.host.orders.length, 1);
});

for (const suite of [1, 15] as const) {
  test(`an IPMI message with a wrong checksum is rejected with cipher suite ${suite}, whose messages have no trailer`, async () => {
    await using world = await startIpmiWorld({ mock: { suites: [suite] } });
    const device = world.open({ ipmi: { cipherSuites: [suite] }, callTimeoutMs: 1_500 });
    assert.equal((await device.readPower(forever())).state, "On");
    world.mock.addFault({ steps: ["GetChassisStatus"], action: { type: "badChecksum" } });
    await assert.rejects(device.readPower(forever()), (error) => error instanceof BmcError && error.retryable);
  });
}

for (const algorithms of [
  [0, 0, 0],
  [1, 0, 0],
  [1, 1, 0],
  [2, 2, 1],
] as const) {
  test(`a login over IPMI is not accepted with the algorithms ${algorithms.join("/")}, which were not requested`, async () => {
    await using world = await startIpmiWorld();
    world.mock.addFault({
      steps: ["OpenSession"],
      action: { type: "otherAlgorithms", algorithms: [...algorithms] },
    });
    await assert.rejects(world.open().readPower(forever()), hasCode("BadResponse", /other algorithms/));
    assert.ok(!world.mock.steps().includes("RAKP1"));
  });
}

test("a RAKP 4 with a wrong code opens no session", async () => {
  await using world = await startIpmiWorld();
  world.mock.addFault({ steps: ["RAKP3"], action: { type: "badAuthCode" } });
  await assert.rejects(world.open().forceOff(forever()), hasCode("BadResponse"));
  assert.ok(!world.mock.steps().includes("SetSessionPrivilegeLevel"));
});

const LOGIN_STEPS: Step[] = ["OpenSession", "RAKP1", "RAKP3"];
void describe("handshakes on a bad wire", { concurrency: 5 }, () => {
  for (const action of [
    { type: "wrongTag" },
    { type: "wrongSessionId" },
    { type: "truncate" },
    { type: "pad", bytes: 2_000 },
    { type: "garbage" },
  ] as const satisfies Action[]) {
    test(`a handshake answer over IPMI that is malformed once (${action.type}) leads to a new handshake, and one that is always malformed fails the login`, async () => {
      await using world = await startIpmiWorld({ mock: { sessionsMax: 64 } });
      for (const steps of LOGIN_STEPS) {
        const device = world.open();
        world.mock.addFault({ steps: [steps], times: 1, action });
        await device.readPower(forever());
        await device.close();
      }
      world.mock.addFault({ steps: LOGIN_STEPS, action });
      await assert.rejects(world.open({ callTimeoutMs: 900 }).readPower(forever()), (error) => {
        assert.ok(error instanceof BmcError);
        assert.ok(["BadResponse", "Timeout"].includes(error.code), error.code);
        return true;
      });
    });
  }
});
