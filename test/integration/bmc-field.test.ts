import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { systemClock } from "../../src/runtime/system.ts";
import type { Clock } from "../../src/runtime/clock.ts";
import { CHASSIS, forever, hasCode, ok, openFake, RESET, SESSIONS, startFakeBmc, SYSTEM } from "./bmc-fixture.ts";
import type { FakeBmc, Json, Reply, Request } from "./bmc-fixture.ts";

// Unusual Redfish services from the field, one per test. The driver fences a host behind each, or a probe finds the
// obstacle before an outage.

const isLogin = ({ method, path }: Request): boolean => method === "POST" && path === SESSIONS;
const resetAction = (bmc: FakeBmc): Json =>
  (bmc.system["Actions"] as Record<string, Json>)["#ComputerSystem.Reset"] ?? {};

/** A clock whose time the test sets. Its timers are real. */
function handClock(): Clock & { advance: (ms: number) => void } {
  let aheadMs = 0;
  return {
    ...systemClock,
    monotonicMs: () => systemClock.monotonicMs() + aheadMs,
    advance: (ms) => {
      aheadMs += ms;
    },
  };
}

/** Runs a whole fence. */
async function fence(bmc: FakeBmc, options: Parameters<typeof openFake>[1] = {}): Promise<void> {
  await using device = openFake(bmc, options);
  await device.identify(forever());
  await device.forceOff(forever());
  assert.equal((await device.readPower(forever())).state, "Off");
  assert.equal((await device.readPower(forever())).state, "Off");
  await device.on(forever());
  assert.equal((await device.readPower(forever())).state, "On");
}

describe("a host is fenced although its BMC", () => {
  it("a host is fenced although its BMC gives an empty token", async () => {
    await using bmc = await startFakeBmc();
    bmc.override = (request): Reply | undefined =>
      isLogin(request) ? { status: 201, headers: { "X-Auth-Token": "" } } : undefined;
    await fence(bmc);
  });

  it("a host is fenced although its BMC writes the UUID in another way at each reading", async () => {
    await using bmc = await startFakeBmc();
    const ways = [
      (uuid: string) => uuid.toLowerCase(),
      (uuid: string) => `urn:uuid:${uuid}`,
      (uuid: string) => uuid.replaceAll("-", ""),
      (uuid: string) => `{${uuid}}`,
    ];
    let reads = 0;
    const { UUID } = bmc.system;
    bmc.override = ({ method, path }) =>
      method === "GET" && path === SYSTEM
        ? ok({ ...bmc.system, UUID: ways[(reads += 1) % ways.length]?.(String(UUID)) })
        : undefined;
    await fence(bmc);
  });

  it("a host is fenced although its BMC sends one link instead of a list of links", async () => {
    await using bmc = await startFakeBmc();
    bmc.system["Links"] = { Chassis: { "@odata.id": CHASSIS } };
    bmc.chassis["Links"] = { ComputerSystems: { "@odata.id": SYSTEM } };
    await fence(bmc);
    bmc.system["PowerState"] = "Off";
    bmc.chassis["PowerState"] = "On";
    await using device = openFake(bmc);
    assert.equal((await device.readPower(forever())).state, "Unknown", "the chassis state is used");
  });

  for (const [what, written, own] of [
    [
      "a host is fenced although its BMC spells paths in another case than the address",
      SYSTEM.toLowerCase(),
      SYSTEM.toLowerCase(),
    ],
    ["a host is fenced although its BMC knows the System by another path than the address", `${SYSTEM}-alias`, SYSTEM],
  ] as const) {
    it(what, async () => {
      await using bmc = await startFakeBmc();
      bmc.override = ({ method, path }) =>
        method === "GET" && path === written ? ok({ ...bmc.system, "@odata.id": own }) : undefined;
      await fence(bmc, { path: written });
      bmc.system["PowerState"] = "Off";
      bmc.chassis["PowerState"] = "On";
      await using device = openFake(bmc, { path: written });
      assert.equal((await device.readPower(forever())).state, "Unknown", "the chassis state is used");
    });
  }

  it("a host is fenced although its BMC does not know the System for a while, as after a restart", async () => {
    await using bmc = await startFakeBmc();
    await using device = openFake(bmc, { path: SYSTEM });
    await device.identify(forever());
    bmc.override = ({ path }) => (path === SYSTEM ? { status: 404 } : undefined);
    await assert.rejects(device.readPower(forever()), hasCode("Busy", /existed/));
    await using second = openFake(bmc, { path: SYSTEM });
    await assert.rejects(second.readPower(forever()), hasCode("Busy", /existed/));
    bmc.override = () => undefined;
    assert.equal((await device.readPower(forever())).state, "On");
  });

  it("a host is fenced although its BMC lists no System for a while, as after a restart", async () => {
    await using bmc = await startFakeBmc();
    await using device = openFake(bmc);
    await device.identify(forever());
    bmc.override = ({ path }) => (path === "/redfish/v1/Systems" ? ok({ Members: [] }) : undefined);
    await using second = openFake(bmc);
    await assert.rejects(second.readPower(forever()), hasCode("Busy", /existed/));
  });

  it("a host is fenced although its BMC wants a precondition with an action", async () => {
    await using bmc = await startFakeBmc();
    bmc.override = ({ path, headers }) =>
      path === RESET && headers["if-match"] === undefined ? { status: 428 } : undefined;
    await fence(bmc);
  });

  it("a host is fenced although its BMC puts a byte order mark before its JSON, and zeros behind it", async () => {
    await using bmc = await startFakeBmc();
    bmc.override = ({ method, path }) =>
      method === "GET" && path === SYSTEM
        ? { status: 200, body: `\uFEFF${JSON.stringify(bmc.system)}\u0000\u0000` }
        : undefined;
    await fence(bmc);
  });

  it("a host is fenced although its BMC gives the serial number as a number", async () => {
    await using bmc = await startFakeBmc();
    bmc.system["SerialNumber"] = 4_711_000_815;
    bmc.system["UUID"] = null;
    await using device = openFake(bmc);
    assert.equal((await device.identify(forever())).serialNumber, "4711000815");
  });

  it("a host is fenced although its BMC lists a System that is not there, next to the host", async () => {
    await using bmc = await startFakeBmc();
    const members = [`${SYSTEM}gone`, SYSTEM].map((path) => ({ "@odata.id": path }));
    bmc.override = ({ path }) => (path === "/redfish/v1/Systems" ? ok({ Members: members }) : undefined);
    const uuid = String(bmc.system["UUID"]).toLowerCase();
    await fence(bmc, { isHost: ({ systemUUID }) => systemUUID === uuid });
    // The second system of an enclosure may have the same serial number.
    await using device = openFake(bmc, { isHost: ({ serialNumber }) => serialNumber === "SN-0001" });
    await assert.rejects(device.forceOff(forever()), hasCode("SystemAmbiguous"));
  });

  it("a host is fenced although its BMC links to nothing except its managers", async () => {
    await using bmc = await startFakeBmc();
    bmc.system["Links"] = { ...(bmc.system["Links"] as Json), ManagedBy: [{ "@odata.id": "" }] };
    await fence(bmc);
  });

  for (const status of [500, 403]) {
    it(`a host is fenced although its BMC answers ${status} for the info of an action that lists no values itself`, async () => {
      await using bmc = await startFakeBmc();
      resetAction(bmc)["@Redfish.ActionInfo"] = `${SYSTEM}/ResetActionInfo`;
      delete resetAction(bmc)["ResetType@Redfish.AllowableValues"];
      bmc.override = ({ path }) => (path.endsWith("ResetActionInfo") ? { status } : undefined);
      await fence(bmc);
    });
  }

  it("a host is fenced although its BMC has a LastResetTime that wavers by a second", async () => {
    await using bmc = await startFakeBmc();
    let reads = 0;
    bmc.override = ({ method, path }) => {
      if (method !== "GET" || path !== SYSTEM) return undefined;
      reads += 1;
      return ok({ ...bmc.system, LastResetTime: `2026-03-01T00:00:0${reads % 2}Z` });
    };
    await fence(bmc);
  });

  it("a host is fenced although its BMC redirects the root to the path without a slash", async () => {
    await using bmc = await startFakeBmc();
    const elsewhere = "/redfish/v1/Sessions";
    bmc.override = ({ method, path }): Reply | undefined => {
      if (path === "/redfish/v1/") return { status: 308, headers: { location: "/redfish/v1" } };
      if (path === "/redfish/v1") return ok({ Links: { Sessions: { "@odata.id": elsewhere } } });
      if (path === SESSIONS) return { status: 404 };
      if (method !== "POST" || path !== elsewhere) return undefined;
      bmc.sessions.add(`${elsewhere}/1`);
      return { status: 201, headers: { "X-Auth-Token": "token-1", Location: `${elsewhere}/1` } };
    };
    await fence(bmc);
    assert.equal(bmc.sessions.size, 0);
  });

  it("a host is fenced although its BMC hides the Reset action of a host that is off", async () => {
    await using bmc = await startFakeBmc();
    bmc.override = ({ method, path }) =>
      method === "GET" && path === SYSTEM && bmc.system["PowerState"] === "Off"
        ? ok({ ...bmc.system, Actions: {} })
        : undefined;
    await fence(bmc);
  });

  it("a host is fenced although its BMC counts its Systems in a text", async () => {
    await using bmc = await startFakeBmc();
    bmc.override = ({ path }) =>
      path === "/redfish/v1/Systems"
        ? ok({ Members: [{ "@odata.id": SYSTEM }], "Members@odata.count": "1" })
        : undefined;
    await fence(bmc);
  });

  it("a host is fenced although its BMC links to the info of an action by an object, and lists values in a text", async () => {
    await using bmc = await startFakeBmc();
    resetAction(bmc)["@Redfish.ActionInfo"] = { "@odata.id": `${SYSTEM}/ResetActionInfo` };
    resetAction(bmc)["ResetType@Redfish.AllowableValues"] = "On, ForceOff";
    await fence(bmc);
  });

  it("a host is fenced although its BMC answers orders with a task that it does not know a moment later", async () => {
    await using bmc = await startFakeBmc();
    bmc.override = ({ path, body }) => {
      if (path !== RESET) return undefined;
      bmc.system["PowerState"] = body["ResetType"] === "ForceOff" ? "Off" : "On";
      return { status: 202, headers: { location: "/redfish/v1/TaskService/TaskMonitors/9" } };
    };
    await fence(bmc);
  });

  it("a host is fenced although its BMC closes each connection", async () => {
    await using bmc = await startFakeBmc();
    bmc.override = ({ method, path }) =>
      method === "GET" && path === SYSTEM
        ? { status: 200, headers: { connection: "close" }, body: JSON.stringify(bmc.system) }
        : undefined;
    await fence(bmc);
  });

  it("a host is fenced although its BMC wraps a success in an error body", async () => {
    await using bmc = await startFakeBmc();
    bmc.override = ({ path, body }) => {
      if (path !== RESET) return undefined;
      bmc.system["PowerState"] = body["ResetType"] === "ForceOff" ? "Off" : "On";
      return { status: 200, body: { error: { code: "Base.1.4.Success", "@Message.ExtendedInfo": {} } } };
    };
    await fence(bmc);
  });
});

describe("what no fence can go through is found beforehand", () => {
  for (const [what, PowerState] of [
    ["no power state", undefined],
    ["the power state null", null],
    ["a power state of its own", "Standby"],
    ["a power state of the standard in another case", "off"],
  ] as const) {
    it(`a probe reports an obstacle for a System that shows ${what}`, async () => {
      await using bmc = await startFakeBmc();
      bmc.system["PowerState"] = PowerState;
      await using device = openFake(bmc);
      const obstacle = await device.findOffObstacle?.(forever());
      assert.equal(obstacle?.reason, "PowerUnreadable");
    });
  }

  it("a probe reports no obstacle for a host whose power is changing, or that is halted", async () => {
    for (const PowerState of ["PoweringOn", "PoweringOff", "Paused"]) {
      await using bmc = await startFakeBmc();
      bmc.system["PowerState"] = PowerState;
      await using device = openFake(bmc, { clock: handClock() });
      assert.equal(await device.findOffObstacle?.(forever()), undefined, PowerState);
    }
  });
});
