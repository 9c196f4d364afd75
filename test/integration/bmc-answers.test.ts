import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { forever, hasCode, ok, openFake, RESET, SESSIONS, startFakeBmc, SYSTEM } from "./bmc-fixture.ts";
import type { Json, Reply } from "./bmc-fixture.ts";

// Answers of broken or hostile BMCs. The driver never reports a false Off, and always ends in time with the right error
// code.

test("the System is chosen by path, by id, or because it is alone, and never guessed", async () => {
  await using bmc = await startFakeBmc();
  const read = async (path: string, isHost?: () => boolean): Promise<string> => {
    await using device = openFake(bmc, { path, ...(isHost && { isHost }) });
    return (await device.identify(forever())).device;
  };
  assert.equal(await read(""), SYSTEM);
  assert.equal(await read("/1"), SYSTEM);
  assert.equal(await read(SYSTEM), SYSTEM);
  await assert.rejects(read("/2"), hasCode("SystemNotFound"));
  await assert.rejects(read("/redfish/v1/Systems/2"), hasCode("SystemNotFound"));
  const members = (...ids: string[]): Json[] => ids.map((id) => ({ "@odata.id": `/redfish/v1/Systems/${id}` }));
  for (const [collection, code] of [
    [{ Members: members("1", "2") }, "SystemAmbiguous"],
    [{ Members: members("1"), "Members@odata.count": 2 }, "SystemAmbiguous"],
    [{ Members: members("1"), "Members@odata.nextLink": "/redfish/v1/Systems?$skip=1" }, "SystemAmbiguous"],
    [{ Members: [...members("1"), {}] }, "SystemAmbiguous"],
    [{ Members: [] }, "Busy"],
    [{}, "Busy"],
  ] as const) {
    bmc.override = ({ path }) => (path === "/redfish/v1/Systems" ? ok(collection) : undefined);
    await assert.rejects(read(""), hasCode(code));
  }
  for (const collection of [{ Members: [] }, {}]) {
    await using empty = await startFakeBmc();
    empty.override = ({ path }) => (path === "/redfish/v1/Systems" ? ok(collection) : undefined);
    await using device = openFake(empty);
    await assert.rejects(device.identify(forever()), hasCode("SystemNotFound"), "none was ever there");
  }
  // A System that is selected by its identity must not be taken from an incomplete list, because another System may
  // have the same identity.
  for (const rest of [
    { "Members@odata.count": 3 },
    { "Members@odata.nextLink": "/redfish/v1/Systems?$skip=1" },
    { Members: [...members("1"), {}] },
    { Members: members("1", ...Array.from({ length: 16 }, () => "1")) },
  ]) {
    bmc.override = ({ path }) => (path === "/redfish/v1/Systems" ? ok({ Members: members("1"), ...rest }) : undefined);
    await assert.rejects(
      read("", () => true),
      hasCode("SystemAmbiguous"),
    );
  }
});

test("a path that names something else than a ComputerSystem is refused: its PowerState is not the host's", async () => {
  await using bmc = await startFakeBmc();
  await using device = openFake(bmc, { path: "/redfish/v1/Chassis/1" });
  bmc.chassis["PowerState"] = "Off";
  await assert.rejects(device.readPower(forever()), hasCode("SystemNotFound", /ComputerSystem/));
});

test("an identity contains no placeholder", async () => {
  await using bmc = await startFakeBmc();
  await using device = openFake(bmc);
  for (const uuid of [
    "00000000-0000-0000-0000-000000000000",
    "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF",
    "",
    " ",
    null,
    7,
  ]) {
    Object.assign(bmc.system, { UUID: uuid, SerialNumber: "  ", Manufacturer: null, Model: undefined });
    assert.deepEqual(await device.identify(forever()), { device: SYSTEM });
  }
});

test("a redirect is followed once for a read within the service, never elsewhere, never for an order", async () => {
  await using other = await startFakeBmc();
  await using bmc = await startFakeBmc();
  await using device = openFake(bmc, { path: SYSTEM });
  bmc.override = ({ path }) => {
    if (path === SYSTEM) return { status: 308, headers: { location: `${SYSTEM}/` } };
    return path === `${SYSTEM}/` ? ok(bmc.system) : undefined;
  };
  assert.equal((await device.readPower(forever())).state, "On");
  bmc.override = ({ path }) =>
    path.startsWith(SYSTEM) ? { status: 307, headers: { location: `${other.url}${SYSTEM}` } } : undefined;
  await assert.rejects(device.readPower(forever()), hasCode("BadResponse", /points to another host/));
  await assert.rejects(device.forceOff(forever()), hasCode("BadResponse"));
  bmc.override = ({ path, method }) => (method === "GET" ? { status: 308, headers: { location: path } } : undefined);
  await assert.rejects(device.readPower(forever()), hasCode("BadResponse"));
  assert.deepEqual(other.requests, []);
});

test("no reference away from the BMC is followed, so that no token reaches another host", async () => {
  await using other = await startFakeBmc();
  const away = `${other.url}/redfish/v1/x`;
  const cases: ((system: Json) => Record<string, Reply>)[] = [
    () => ({ [SESSIONS]: { status: 404 }, "/redfish/v1/": ok({ Links: { Sessions: { "@odata.id": away } } }) }),
    () => ({ "/redfish/v1/Systems": ok({ Members: [{ "@odata.id": away }] }) }),
    () => ({ "/redfish/v1/Systems": ok({ Members: [{ "@odata.id": `//${new URL(away).host}/x` }] }) }),
    (system) => ({ [SYSTEM]: ok({ ...system, Actions: { "#ComputerSystem.Reset": { target: away } } }) }),
    (system) => ({
      [SYSTEM]: ok({
        ...system,
        Actions: { "#ComputerSystem.Reset": { target: RESET, "@Redfish.ActionInfo": away } },
      }),
    }),
    () => ({ [RESET]: { status: 202, headers: { location: away } } }),
  ];
  for (const build of cases) {
    await using bmc = await startFakeBmc();
    const replies = build(bmc.system);
    bmc.override = ({ path }) => replies[path];
    await using device = openFake(bmc);
    await assert.rejects(device.forceOff(forever()), hasCode("BadResponse", /points to another host/));
  }
  assert.deepEqual(other.requests, []);
});

test("a reference that cannot be followed fails what needs it, and nothing else", async () => {
  await using bmc = await startFakeBmc();
  await using device = openFake(bmc);
  const away = { "@odata.id": "https://192.0.2.1/redfish/v1/x" };
  for (const target of ["Actions/ComputerSystem.Reset", "https://192.0.2.1/redfish/v1/x"]) {
    bmc.system["Actions"] = { "#ComputerSystem.Reset": { target } };
    assert.equal((await device.identify(forever())).serialNumber, "SN-0001");
    assert.equal((await device.readPower(forever())).state, "On");
    await assert.rejects(device.forceOff(forever()), hasCode("BadResponse", /target of the Reset action/));
    assert.ok(device.readSupportedOrders !== undefined);
    await assert.rejects(device.readSupportedOrders(forever()), hasCode("BadResponse"));
  }
  bmc.system["Links"] = { Chassis: [away], ManagedBy: [away] };
  assert.equal((await device.readPower(forever())).state, "On");
  bmc.system["PowerState"] = "Off";
  await assert.rejects(device.readPower(forever()), hasCode("BadResponse", /Chassis/), "an Off needs its chassis");
  await using fresh = openFake(bmc);
  await assert.rejects(fresh.readPower(forever()), hasCode("BadResponse", /Manager/), "and a BMC that has settled");
});

test("a service without Systems, such as a switch's, has no host", async () => {
  await using bmc = await startFakeBmc();
  bmc.override = ({ path }) => {
    if (path === "/redfish/v1/") return ok({ Chassis: { "@odata.id": "/redfish/v1/Chassis" } });
    return path === "/redfish/v1/Systems" ? { status: 404 } : undefined;
  };
  await using device = openFake(bmc);
  await assert.rejects(device.identify(forever()), hasCode("SystemNotFound", /no Systems/));
});

const broken: [string, Reply][] = [
  ["an empty body", { status: 200, body: "" }],
  ["an empty 204", { status: 204 }],
  ["HTML", { status: 200, body: "<html>Off</html>" }],
  ["a list", { status: 200, body: `[{"PowerState":"Off"}]` }],
  ["a truncated body", { status: 200, headers: { "content-length": "60" }, body: `{"PowerState":"Off"` }],
  ["truncated JSON", { status: 200, body: `{"PowerState":"Off"` }],
  ["JSON nested too deep", { status: 200, body: `{"PowerState":"Off","a":${"[".repeat(100)}${"]".repeat(100)}}` }],
  ["a body beyond the bound", { status: 200, body: `{"PowerState":"Off","a":"${"x".repeat(1_100_000)}"}` }],
  [
    "headers beyond the bound",
    { status: 200, headers: { "x-long": "x".repeat(20_000) }, body: `{"PowerState":"Off"}` },
  ],
  ["an Off with an error status", { status: 500, body: `{"PowerState":"Off"}` }],
  ["an Off with a status that is not a plain success", { status: 203, body: `{"PowerState":"Off"}` }],
];
for (const [name, reply] of broken) {
  test(`a read that is answered with ${name} fails, and does not count as Off`, async () => {
    await using bmc = await startFakeBmc();
    await using device = openFake(bmc, { path: SYSTEM, callTimeoutMs: 2_000 });
    bmc.override = ({ path }) => {
      if (path !== SYSTEM) return undefined;
      return reply;
    };
    await assert.rejects(device.readPower(forever()), (error) => {
      // A truncated body appears as a broken connection or as our deadline.
      return name === "a truncated body" ? error instanceof Error : hasCode("BadResponse")(error);
    });
  });
}

test("gzip that was not asked for is read within the same bound; any other coding is a failed read", async () => {
  await using bmc = await startFakeBmc();
  await using device = openFake(bmc, { path: SYSTEM });
  const answer = async (coding: string, body: Buffer): Promise<string> => {
    bmc.override = ({ path }) =>
      path === SYSTEM ? { status: 200, headers: { "content-encoding": coding }, body } : undefined;
    return (await device.readPower(forever())).state;
  };
  const off = Buffer.from(JSON.stringify({ ...bmc.system, PowerState: "Off" }));
  assert.equal(await answer("gzip", gzipSync(off)), "Off");
  const bomb = gzipSync(Buffer.from(`{"PowerState":"Off","a":"${"x".repeat(20_000_000)}"}`));
  assert.ok(bomb.length < 100_000);
  await assert.rejects(answer("gzip", bomb), hasCode("BadResponse", /gzip/));
  await assert.rejects(answer("gzip", gzipSync(off).subarray(0, 40)), hasCode("BadResponse", /gzip/));
  await assert.rejects(answer("gzip", off), hasCode("BadResponse", /gzip/));
  await assert.rejects(answer("br", off), hasCode("BadResponse", /content encoding/));
});

test("a service that does not exist is Unreachable, and one that does not speak Redfish is Unsupported", async () => {
  const bmc = await startFakeBmc();
  {
    await using device = openFake(bmc);
    bmc.override = () => ({ status: 404 });
    await assert.rejects(device.readPower(forever()), hasCode("Unsupported", /no Redfish/));
  }
  await bmc.close();
  await using device = openFake(bmc);
  await assert.rejects(device.readPower(forever()), hasCode("Unreachable"));
});

test("each call ends at its deadline, and the next one works again", async () => {
  await using bmc = await startFakeBmc();
  await using device = openFake(bmc, { callTimeoutMs: 1_500 });
  bmc.override = () => "hang";
  await assert.rejects(device.readPower(forever()), hasCode("Timeout"));
  bmc.override = () => undefined;
  assert.equal((await device.readPower(forever())).state, "On");
  bmc.override = ({ path }) => (path === SYSTEM ? "hang" : undefined);
  await assert.rejects(device.readPower(forever()), hasCode("Timeout"));
  bmc.override = () => undefined;
  assert.equal((await device.readPower(forever())).state, "On");
});

test("an aborted call fails as Aborted, before it is sent and while it runs", async () => {
  await using bmc = await startFakeBmc();
  await using device = openFake(bmc);
  await assert.rejects(device.readPower(AbortSignal.abort()), hasCode("Aborted"));
  assert.deepEqual(bmc.requests, []);
  const aborted = new AbortController();
  bmc.override = () => {
    aborted.abort();
    return "hang";
  };
  await assert.rejects(device.readPower(aborted.signal), hasCode("Aborted"));
});
