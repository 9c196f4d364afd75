import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import {
  CHASSIS,
  forever,
  hasCode,
  ok,
  openFake,
  redfishError,
  RESET,
  SESSIONS,
  startFakeBmc,
  SYSTEM,
} from "./bmc-fixture.ts";
import type { FakeBmc, Json } from "./bmc-fixture.ts";

const reset = (bmc: FakeBmc): Json => (bmc.system["Actions"] as Json)["#ComputerSystem.Reset"] as Json;
const orders = (bmc: FakeBmc): unknown[] =>
  bmc.requests.filter(({ path, method }) => method === "POST" && path === RESET).map(({ body }) => body["ResetType"]);

test("a host is identified, powered off, read twice and powered on with eight requests in one session, which is ended", async () => {
  await using bmc = await startFakeBmc();
  const device = openFake(bmc, { path: SYSTEM });
  assert.deepEqual(await device.identify(forever()), {
    device: SYSTEM,
    systemUUID: "4c4c4544-0042-3510-8051-b4c04f4e3732",
    serialNumber: "SN-0001",
    manufacturer: "Example",
    model: "R1",
  });
  await device.forceOff(forever());
  assert.deepEqual(await device.readPower(forever()), { state: "Off", raw: "Off" });
  assert.deepEqual(await device.readPower(forever()), { state: "Off", raw: "Off" });
  await device.on(forever());
  await device.close();
  assert.deepEqual(bmc.log(), [
    // The check for redirects, once per hour and only over plain HTTP.
    "GET /redfish/v1/",
    `POST ${SESSIONS}`,
    `GET ${SYSTEM}`,
    `POST ${RESET}`,
    `GET ${SYSTEM}`,
    `GET ${CHASSIS}`,
    `GET ${SYSTEM}`,
    `POST ${RESET}`,
    `DELETE ${SESSIONS}/1`,
  ]);
  assert.deepEqual(orders(bmc), ["ForceOff", "On"]);
  assert.equal(bmc.sessions.size, 0);
});

test("only the literal Off is off", async () => {
  await using bmc = await startFakeBmc();
  await using device = openFake(bmc);
  for (const [shown, state] of [
    ["Off", "Off"],
    ["On", "On"],
    ["PoweringOn", "Changing"],
    ["PoweringOff", "Changing"],
    ["Paused", "Unknown"],
    ["off", "Unknown"],
    ["OFF ", "Unknown"],
    ["", "Unknown"],
    [null, "Unknown"],
    [false, "Unknown"],
    [["Off"], "Unknown"],
    [undefined, "Unknown"],
  ] as const) {
    bmc.system["PowerState"] = shown;
    assert.equal((await device.readPower(forever())).state, state, JSON.stringify(shown));
  }
});

test("a PowerState that is only reachable through __proto__ is ignored", async () => {
  await using bmc = await startFakeBmc();
  await using device = openFake(bmc);
  bmc.override = ({ path }) =>
    path === SYSTEM
      ? { status: 200, body: `{"__proto__":{"PowerState":"Off"},"constructor":{"PowerState":"Off"}}` }
      : undefined;
  assert.equal((await device.readPower(forever())).state, "Unknown");
  assert.equal(Object.hasOwn(Object.prototype, "PowerState"), false);
});

test("the power state is read on the wire every time, past caches", async () => {
  await using bmc = await startFakeBmc();
  await using device = openFake(bmc);
  await device.readPower(forever());
  bmc.system["PowerState"] = "Off";
  assert.equal((await device.readPower(forever())).state, "Off");
  bmc.system["PowerState"] = "On";
  assert.equal((await device.readPower(forever())).state, "On");
  const reads = bmc.requests.filter(({ path }) => path === SYSTEM);
  assert.equal(reads.length, 3);
  assert.ok(reads.every(({ headers }) => headers["cache-control"] === "no-cache"));
});

test("an Off that the System's own chassis contradicts does not count as Off", async () => {
  await using bmc = await startFakeBmc();
  await using device = openFake(bmc);
  bmc.system["PowerState"] = "Off";
  for (const shown of ["On", "PoweringOff", "Paused"]) {
    bmc.chassis["PowerState"] = shown;
    const reading = await device.readPower(forever());
    assert.equal(reading.state, "Unknown");
    assert.match(reading.raw, new RegExp(`chassis ${shown}`));
  }
  bmc.chassis["PowerState"] = "Off";
  assert.equal((await device.readPower(forever())).state, "Off");
});

test("a read of the chassis serves the next reading, but not after an order, another state, a failure or a second", async () => {
  await using bmc = await startFakeBmc();
  await using device = openFake(bmc);
  const looks = (): number => bmc.log().filter((line) => line === `GET ${CHASSIS}`).length;
  const readOff = async (looksExpected: number): Promise<void> => {
    assert.equal((await device.readPower(forever())).state, "Off");
    assert.equal(looks(), looksExpected);
  };
  await device.forceOff(forever());
  bmc.chassis["PowerState"] = null;
  await readOff(1);
  await readOff(1);
  await device.forceOff(forever());
  await readOff(2);
  bmc.system["PowerState"] = "PoweringOn";
  await device.readPower(forever());
  bmc.system["PowerState"] = "Off";
  await readOff(3);
  bmc.override = ({ path }) => (path === SYSTEM ? { status: 503 } : undefined);
  await assert.rejects(device.readPower(forever()), hasCode("Busy"));
  bmc.override = () => undefined;
  await readOff(4);
  await delay(1_050);
  bmc.chassis["PowerState"] = "On";
  assert.equal((await device.readPower(forever())).state, "Unknown");
});

test("an enclosure that is on, or shared with other Systems, does not show the power of the host", async () => {
  await using bmc = await startFakeBmc();
  bmc.system["PowerState"] = "Off";
  bmc.chassis["PowerState"] = "On";
  bmc.chassis["ChassisType"] = "Enclosure";
  {
    await using device = openFake(bmc);
    assert.equal((await device.readPower(forever())).state, "Off");
    assert.equal((await device.readPower(forever())).state, "Off");
    assert.equal(bmc.log().filter((line) => line === `GET ${CHASSIS}`).length, 1, "it is asked once");
  }
  bmc.chassis["ChassisType"] = "Sled";
  bmc.chassis["Links"] = { ComputerSystems: [{ "@odata.id": SYSTEM }, { "@odata.id": "/redfish/v1/Systems/2" }] };
  await using device = openFake(bmc);
  assert.equal((await device.readPower(forever())).state, "Off");
});

test("a chassis that cannot be read leaves the read failed, not Off", async () => {
  await using bmc = await startFakeBmc();
  await using device = openFake(bmc);
  bmc.system["PowerState"] = "Off";
  bmc.override = ({ path }) => (path === CHASSIS ? { status: 500 } : undefined);
  await assert.rejects(device.readPower(forever()), hasCode("BadResponse"));
});

test("the order goes to the action's own target, without If-Match", async () => {
  await using bmc = await startFakeBmc();
  await using device = openFake(bmc);
  reset(bmc)["target"] = "/redfish/v1/oem/power/1";
  bmc.override = ({ path }) => {
    if (path === SYSTEM) return ok(bmc.system, { etag: '"7"' });
    return path === "/redfish/v1/oem/power/1" ? { status: 200, body: "OK" } : undefined;
  };
  await device.forceOff(forever());
  const order = bmc.requests.find(({ path }) => path === "/redfish/v1/oem/power/1");
  assert.deepEqual(order?.body, { ResetType: "ForceOff" });
  assert.equal(order?.headers["if-match"], undefined);
});

test("the driver reads the ActionInfo of a Reset without AllowableValues, and sends ForceOff if there is neither", async () => {
  await using bmc = await startFakeBmc();
  for (const nothing of [undefined, null, []]) {
    reset(bmc)["ResetType@Redfish.AllowableValues"] = nothing;
    await using device = openFake(bmc);
    await device.forceOff(forever());
    assert.deepEqual(orders(bmc).slice(-1), ["ForceOff"]);
  }
  reset(bmc)["@Redfish.ActionInfo"] = "/redfish/v1/info";
  let offered = ["On", "ForceOff"];
  bmc.override = ({ path }) =>
    path === "/redfish/v1/info"
      ? ok({
          Parameters: [
            { Name: "Other", AllowableValues: [] },
            { Name: "ResetType", AllowableValues: offered },
          ],
        })
      : undefined;
  {
    await using device = openFake(bmc);
    await device.forceOff(forever());
    assert.equal(orders(bmc).length, 4);
  }
  offered = ["GracefulShutdown"];
  bmc.system["PowerState"] = "On";
  await using device = openFake(bmc);
  await assert.rejects(device.forceOff(forever()), hasCode("Unsupported", /ForceOff/));
  assert.equal(orders(bmc).length, 4);
});

test("a BMC without ForceOff is not asked for anything weaker", async () => {
  await using bmc = await startFakeBmc();
  await using device = openFake(bmc);
  reset(bmc)["ResetType@Redfish.AllowableValues"] = [
    "GracefulShutdown",
    "PowerCycle",
    "ForceRestart",
    "PushPowerButton",
  ];
  await assert.rejects(device.forceOff(forever()), hasCode("Unsupported"));
  bmc.system["PowerState"] = "Off";
  reset(bmc)["ResetType@Redfish.AllowableValues"] = ["GracefulShutdown", "PowerCycle", "ForceRestart"];
  await assert.rejects(device.on(forever()), hasCode("Unsupported"));
  assert.deepEqual(orders(bmc), []);
});

test("a list of resets that holds for the present power state only is read again after each order", async () => {
  await using bmc = await startFakeBmc();
  await using device = openFake(bmc);
  const list = (): void => {
    const isOn = bmc.system["PowerState"] === "On";
    reset(bmc)["ResetType@Redfish.AllowableValues"] = isOn ? ["ForceOff", "PowerCycle"] : ["On"];
  };
  bmc.override = () => {
    list();
    return undefined;
  };
  await device.identify(forever());
  await device.forceOff(forever());
  await device.on(forever());
  assert.deepEqual(orders(bmc), ["ForceOff", "On"]);
  assert.equal(bmc.system["PowerState"], "On");
});

test("ForceOn is sent if On is not offered", async () => {
  await using bmc = await startFakeBmc();
  await using device = openFake(bmc);
  reset(bmc)["ResetType@Redfish.AllowableValues"] = ["ForceOn", "ForceOff"];
  await device.on(forever());
  assert.deepEqual(orders(bmc), ["ForceOn"]);
});

test("a System without a Reset action is Unsupported", async () => {
  await using bmc = await startFakeBmc();
  await using device = openFake(bmc);
  bmc.system["Actions"] = {};
  await assert.rejects(device.forceOff(forever()), hasCode("Unsupported", /Reset/));
});

for (const [vendor, status, messageId] of [
  ["iLO", 400, "iLO.2.14.InvalidOperationForSystemState"],
  ["iDRAC", 409, "IDRAC.2.8.PSU501"],
] as const) {
  test(`a refusal by ${vendor} is an error unless the host is already in the ordered state`, async () => {
    await using bmc = await startFakeBmc();
    await using device = openFake(bmc);
    bmc.override = ({ path }) => (path === RESET ? redfishError(status, messageId, "not in this state") : undefined);
    bmc.system["PowerState"] = "Off";
    await device.forceOff(forever());
    await assert.rejects(device.on(forever()), hasCode("Refused", /not in this state/));
    bmc.system["PowerState"] = "PoweringOff";
    await assert.rejects(device.forceOff(forever()), hasCode("Refused"));
    bmc.system["PowerState"] = "On";
    await device.on(forever());
    await assert.rejects(device.forceOff(forever()), hasCode("Refused"));
  });
}

test("a BMC that is not ready is Busy, whatever HTTP status it answers with", async () => {
  await using bmc = await startFakeBmc();
  await using device = openFake(bmc);
  for (const reply of [
    { status: 503, headers: { "retry-after": "30" } },
    { status: 429 },
    redfishError(400, "IDRAC.2.8.SYS518"),
    redfishError(500, "Base.1.18.ServiceTemporarilyUnavailable"),
  ]) {
    bmc.override = ({ path }) => (path === RESET ? reply : undefined);
    await assert.rejects(device.forceOff(forever()), hasCode("Busy"));
  }
});

test("an order whose answer is lost is sent once, and fails", async () => {
  await using bmc = await startFakeBmc();
  await using device = openFake(bmc);
  bmc.override = ({ path }) => (path === RESET ? "reset" : undefined);
  await assert.rejects(device.forceOff(forever()), hasCode("Unreachable"));
  assert.deepEqual(orders(bmc), ["ForceOff"]);
});

test("an order that is never answered ends at the deadline, sent once", async () => {
  await using bmc = await startFakeBmc();
  await using device = openFake(bmc, { callTimeoutMs: 1_500 });
  await device.readPower(forever());
  bmc.override = ({ path }) => (path === RESET ? "hang" : undefined);
  await assert.rejects(device.forceOff(forever()), hasCode("Timeout"));
  assert.deepEqual(orders(bmc), ["ForceOff"]);
});

test("an order that is aborted while it waits for the login is never sent", async () => {
  await using bmc = await startFakeBmc();
  await using device = openFake(bmc, { path: SYSTEM });
  const aborted = new AbortController();
  bmc.override = ({ path }) => {
    if (path === SESSIONS) aborted.abort();
    return undefined;
  };
  await assert.rejects(device.forceOff(aborted.signal), hasCode("Aborted"));
  await device.close();
  assert.deepEqual(orders(bmc), []);
  assert.equal(bmc.sessions.size, 0, "the session of the aborted call is ended");
});

test("a read whose connection broke is sent again", async () => {
  await using bmc = await startFakeBmc();
  await using device = openFake(bmc);
  let broken = 0;
  bmc.override = ({ path }) => (path === SYSTEM && (broken += 1) === 1 ? "reset" : undefined);
  assert.equal((await device.readPower(forever())).state, "On");
  bmc.override = ({ path }) => (path === SYSTEM ? "reset" : undefined);
  await assert.rejects(device.readPower(forever()), hasCode("Unreachable"));
});

test("a task is watched for a refusal, not for a proof", async () => {
  await using bmc = await startFakeBmc();
  await using device = openFake(bmc);
  const task = "/redfish/v1/TaskService/Tasks/1";
  let looks = 0;
  let ending: Json = { TaskState: "Running" };
  bmc.override = ({ path }) => {
    if (path === RESET) return { status: 202, headers: { location: task } };
    if (path !== task) return undefined;
    looks += 1;
    return looks === 1 ? { status: 202, body: { TaskState: "Running" } } : ok(ending);
  };
  ending = { TaskState: "Completed" };
  await device.forceOff(forever());
  assert.equal(looks, 2);
  looks = 0;
  ending = { TaskState: "Exception" };
  await assert.rejects(device.forceOff(forever()), hasCode("Refused", /Exception/));
  // The task never ends, so the order counts as accepted.
  ending = { TaskState: "Running" };
  await device.forceOff(forever());
  // If a task asks the client to wait for a minute, the driver does not poll it.
  looks = 0;
  bmc.override = ({ path }) =>
    path === RESET ? { status: 202, headers: { location: task, "retry-after": "60" } } : undefined;
  await device.forceOff(forever());
  assert.equal(looks, 0);
});
