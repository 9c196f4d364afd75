import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { systemClock } from "../../src/runtime/system.ts";
import type { HostIdentity } from "../../src/bmc/identity/host-identity.ts";
import type { Clock } from "../../src/runtime/clock.ts";
import { CHASSIS, forever, hasCode, ok, openFake, redfishError, RESET, startFakeBmc, SYSTEM } from "./bmc-fixture.ts";
import type { FakeBmc, Json } from "./bmc-fixture.ts";

// A probe checks before an outage that a power-off can be ordered and proven.

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

const resetAction = (bmc: FakeBmc): Json =>
  (bmc.system["Actions"] as Record<string, Json>)["#ComputerSystem.Reset"] ?? {};

/** Puts the accepted values in the action itself. */
function list(bmc: FakeBmc, ...types: string[]): void {
  resetAction(bmc)["ResetType@Redfish.AllowableValues"] = types;
}

const orders = (bmc: FakeBmc): unknown[] =>
  bmc.requests.filter(({ method, path }) => method === "POST" && path === RESET).map(({ body }) => body["ResetType"]);

/** Reads the power twice after an order. */
async function readTwice(device: ReturnType<typeof openFake>): Promise<string[]> {
  return [(await device.readPower(forever())).state, (await device.readPower(forever())).state];
}

describe("the chassis that must also be off", () => {
  const contents = { Links: { ComputerSystems: [{ "@odata.id": SYSTEM }] } };
  for (const [what, chassis] of [
    ["the BMC's own module, which is always on", { ChassisType: "Module", ...contents }],
    ["a component (GPU baseboard, BMC_0 of HGX)", { ChassisType: "Component", ...contents }],
    ["an enclosure that calls itself a blade, and contains no System", { ChassisType: "Blade" }],
    ["an enclosure without a type or a System (Cisco)", {}],
    [
      "a chassis of two Systems",
      { Links: { ComputerSystems: [{ "@odata.id": SYSTEM }, { "@odata.id": `${SYSTEM}2` }] } },
    ],
  ] as const) {
    it(`the chassis that must also be off is not ${what}`, async () => {
      await using bmc = await startFakeBmc();
      bmc.chassis = { "@odata.id": CHASSIS, PowerState: "On", ...chassis };
      await using device = openFake(bmc);
      assert.equal(await device.findOffObstacle?.(forever()), undefined);
      await device.forceOff(forever());
      assert.deepEqual(await readTwice(device), ["Off", "Off"]);
      assert.equal(await device.findOffObstacle?.(forever()), undefined);
    });
  }

  it("the Chassis that must be off too is the one that contains only this System: a probe of a host that is off finds that it reads On", async () => {
    await using bmc = await startFakeBmc();
    bmc.chassis["PowerState"] = "On";
    await using device = openFake(bmc);
    assert.equal(await device.findOffObstacle?.(forever()), undefined, "a host that is on shows no contradiction");
    bmc.system["PowerState"] = "Off";
    assert.deepEqual(await readTwice(device), ["Unknown", "Unknown"]);
    const obstacle = await device.findOffObstacle?.(forever());
    assert.equal(obstacle?.reason, "ChassisDisagrees");
    assert.match(obstacle.message, /\/redfish\/v1\/Chassis\/1 shows On .*powerChassis/);
  });

  it("the chassis that has to be off as well is the one that the user names, or none if the user says so", async () => {
    await using bmc = await startFakeBmc();
    bmc.chassis["PowerState"] = "On";
    bmc.system["PowerState"] = "Off";
    await using none = openFake(bmc, { powerChassis: [] });
    assert.deepEqual(await readTwice(none), ["Off", "Off"]);
    const other = "/redfish/v1/Chassis/tray";
    const tray: Json = { ChassisType: "Module", PowerState: "Off" };
    bmc.override = ({ path }) => (path === other ? ok(tray) : undefined);
    await using named = openFake(bmc, { powerChassis: [other] });
    assert.deepEqual(await readTwice(named), ["Off", "Off"]);
    tray["PowerState"] = "On";
    await using doubted = openFake(bmc, { powerChassis: [other] });
    assert.deepEqual(await readTwice(doubted), ["Unknown", "Unknown"]);
    await using missing = openFake(bmc, { powerChassis: ["/redfish/v1/Chassis/gone"] });
    assert.deepEqual(await readTwice(missing), ["Unknown", "Unknown"]);
    assert.equal((await missing.findOffObstacle?.(forever()))?.reason, "ChassisDisagrees");
  });
});

describe("a chassis that is missing or empty while a BMC starts", () => {
  for (const [what, answer] of [
    ["missing", { status: 404 }],
    ["without its System", ok({ ChassisType: "RackMount", PowerState: "On" })],
  ] as const) {
    it(`a chassis that is ${what} while a BMC starts counts as soon as it is complete`, async () => {
      await using bmc = await startFakeBmc();
      const clock = handClock();
      bmc.chassis["PowerState"] = "On";
      bmc.system["PowerState"] = "Off";
      bmc.override = ({ path }) => (path === CHASSIS ? answer : undefined);
      await using device = openFake(bmc, { clock, path: SYSTEM });
      assert.deepEqual(await readTwice(device), ["Off", "Off"]);
      bmc.override = () => undefined;
      clock.advance(30_000);
      assert.deepEqual(await readTwice(device), ["Unknown", "Unknown"]);
    });
  }

  it("a chassis that is missing or empty while a BMC starts, counts at once after whatever may have been a restart", async () => {
    await using bmc = await startFakeBmc();
    (bmc.system["Links"] as Json)["ManagedBy"] = [{ "@odata.id": "/redfish/v1/Managers/1" }];
    const manager = { DateTime: "2026-03-01T10:00:00Z", LastResetTime: "2026-03-01T00:00:00Z" };
    bmc.system["PowerState"] = "Off";
    bmc.override = ({ path }) => {
      if (path === CHASSIS) return ok({ ChassisType: "RackMount", PowerState: "On" });
      return path === "/redfish/v1/Managers/1" ? ok(manager) : undefined;
    };
    await using device = openFake(bmc, { clock: handClock(), path: SYSTEM });
    assert.deepEqual(await readTwice(device), ["Off", "Off"]);
    bmc.chassis["PowerState"] = "On";
    bmc.override = ({ path }) => (path === "/redfish/v1/Managers/1" ? ok(manager) : undefined);
    bmc.sessions.clear();
    assert.deepEqual(await readTwice(device), ["Unknown", "Unknown"]);
  });

  it("a chassis that is missing or empty while a BMC starts, costs no request at each reading, if it never is", async () => {
    await using bmc = await startFakeBmc();
    const clock = handClock();
    const empty = [1, 2, 3, 4].map((id) => `/redfish/v1/Chassis/HGX_GPU_${id}`);
    (bmc.system["Links"] as Json)["Chassis"] = empty.map((path) => ({ "@odata.id": path }));
    bmc.override = ({ path }) => (empty.includes(path) ? ok({ PowerState: "On" }) : undefined);
    bmc.system["PowerState"] = "Off";
    await using device = openFake(bmc, { clock, path: SYSTEM });
    for (let at = 0; at < 10; at += 1) {
      assert.equal((await device.readPower(forever())).state, "Off");
      clock.advance(2_000);
    }
    assert.equal(bmc.log().filter((line) => line.includes("HGX_GPU_")).length, 4);
  });
});

describe("a way to Off that is blocked is found while the host is on", () => {
  for (const status of [403, 500]) {
    it(`a chassis whose read fails with ${status} is an obstacle, unless powerChassis overrides it`, async () => {
      await using bmc = await startFakeBmc();
      bmc.override = ({ path }) => (path === CHASSIS ? redfishError(status, "Base.1.8.GeneralError") : undefined);
      await using device = openFake(bmc);
      const obstacle = await device.findOffObstacle?.(forever());
      assert.equal(obstacle?.reason, "ChassisUnreadable");
      assert.match(obstacle.message, new RegExp(`Chassis/1.*HTTP ${status}.*powerChassis`));
      await using ignoring = openFake(bmc, { powerChassis: [] });
      assert.equal(await ignoring.findOffObstacle?.(forever()), undefined);
      await ignoring.forceOff(forever());
      assert.deepEqual(await readTwice(ignoring), ["Off", "Off"]);
    });
  }

  it("a manager that answers 500 is an obstacle; one that the account may not read is not", async () => {
    await using bmc = await startFakeBmc();
    const manager = "/redfish/v1/Managers/1";
    (bmc.system["Links"] as Json)["ManagedBy"] = [{ "@odata.id": manager }];
    let status = 500;
    bmc.override = ({ path }) => (path === manager ? redfishError(status, "Base.1.8.GeneralError") : undefined);
    await using device = openFake(bmc);
    assert.equal((await device.findOffObstacle?.(forever()))?.reason, "ManagerUnreadable");
    status = 403;
    assert.equal(await device.findOffObstacle?.(forever()), undefined);
  });

  it("a System without a Reset action is an obstacle", async () => {
    await using bmc = await startFakeBmc();
    bmc.system["Actions"] = {};
    await using device = openFake(bmc);
    const obstacle = await device.findOffObstacle?.(forever());
    assert.equal(obstacle?.reason, "OffNotOffered");
    assert.match(obstacle.message, /no Reset action/);
    await assert.rejects(device.forceOff(forever()), hasCode("Unsupported", /no Reset action/));
  });

  it("the check of a power-off finds an obstacle if a running host offers no ForceOff, but not if the host is off", async () => {
    await using bmc = await startFakeBmc();
    list(bmc, "On", "GracefulShutdown");
    await using device = openFake(bmc);
    assert.equal((await device.findOffObstacle?.(forever()))?.reason, "OffNotOffered");
    bmc.system["PowerState"] = "Off";
    list(bmc, "On");
    assert.equal(await device.findOffObstacle?.(forever()), undefined);
  });

  it("the check of a power-off finds no obstacle on an ordinary host, and sends no order", async () => {
    await using bmc = await startFakeBmc();
    await using device = openFake(bmc);
    assert.equal(await device.findOffObstacle?.(forever()), undefined);
    assert.deepEqual(orders(bmc), []);
  });
});

describe("the permissions of the account, if it may read them", () => {
  const ACCOUNTS = "/redfish/v1/AccountService/Accounts";
  const ROLE = "/redfish/v1/AccountService/Roles/Own";
  const link = (path: string): Json => ({ "@odata.id": path });

  /** Adds an AccountService with an empty slot, another client, and our account. */
  function addAccounts(bmc: FakeBmc, account: Json, role: Json): void {
    const tree: Record<string, Json> = {
      "/redfish/v1/": { Systems: link("/redfish/v1/Systems"), AccountService: link("/redfish/v1/AccountService") },
      "/redfish/v1/AccountService": { Accounts: link(ACCOUNTS) },
      [ACCOUNTS]: { Members: [1, 2, 3].map((id) => link(`${ACCOUNTS}/${id}`)) },
      [`${ACCOUNTS}/1`]: { UserName: "", RoleId: "None" },
      [`${ACCOUNTS}/2`]: { UserName: "root", RoleId: "Administrator" },
      [`${ACCOUNTS}/3`]: { UserName: "fence", RoleId: "ReadOnly", Links: { Role: link(ROLE) }, ...account },
      [ROLE]: role,
    };
    bmc.override = ({ path, method }) => {
      const resource = method === "GET" ? tree[path] : undefined;
      return resource === undefined ? undefined : ok(resource);
    };
  }

  for (const [what, account, role] of [
    ["a role that only reads", {}, { Id: "ReadOnly", AssignedPrivileges: ["Login", "ConfigureSelf"] }],
    [
      "an iLO's account without the privilege of virtual power",
      { Oem: { Hpe: { Privileges: { VirtualPowerAndResetPriv: false } } } },
      {},
    ],
  ] as const) {
    it(`the permissions of an account are found too low before an outage if the BMC shows ${what}`, async () => {
      await using bmc = await startFakeBmc();
      addAccounts(bmc, account, role);
      await using device = openFake(bmc, { path: SYSTEM });
      const obstacle = await device.findOffObstacle?.(forever());
      assert.equal(obstacle?.reason, "OffNotPermitted");
      assert.match(obstacle.message, /user fence has .*: give the account a role on the BMC that may control power/);
      addAccounts(bmc, account, { AssignedPrivileges: ["Login", "ConfigureComponents"] });
      if (!("Oem" in account)) assert.equal(await device.findOffObstacle?.(forever()), undefined, "mended");
    });
  }

  for (const [what, account, role] of [
    ["a role that may order power", {}, { AssignedPrivileges: ["Login", "ConfigureComponents"] }],
    ["privileges that the vendor defines", {}, { AssignedPrivileges: ["Login"], OemPrivileges: ["ServerControl"] }],
    [
      "an Oem part that the vendor defines",
      {},
      { AssignedPrivileges: ["Login"], Oem: { Maker: { Rights: ["Power"] } } },
    ],
    ["a disabled account of that name", { Enabled: false }, { AssignedPrivileges: ["Login"] }],
    ["a role of an account that may not even log in", {}, { AssignedPrivileges: [] }],
    ["a role without a list of privileges", {}, {}],
    [
      "an iLO's account with the privilege of virtual power",
      { Oem: { Hpe: { Privileges: { VirtualPowerAndResetPriv: true } } } },
      { AssignedPrivileges: ["Login"] },
    ],
    ["no role", { Links: {} }, {}],
    ["only the account of another user", { UserName: "Fence" }, { AssignedPrivileges: ["Login"] }],
  ] as const) {
    it(`the permissions of an account are no obstacle, and are not read again for an hour, if the BMC shows ${what}`, async () => {
      await using bmc = await startFakeBmc();
      const clock = handClock();
      addAccounts(bmc, account, role);
      await using device = openFake(bmc, { path: SYSTEM, clock });
      const looks = (): number => bmc.log().filter((line) => line.includes("AccountService")).length;
      assert.equal(await device.findOffObstacle?.(forever()), undefined);
      const before = looks();
      await using later = openFake(bmc, { path: SYSTEM, clock });
      assert.equal(await later.findOffObstacle?.(forever()), undefined);
      assert.equal(looks(), before);
      clock.advance(3_600_000);
      assert.equal(await later.findOffObstacle?.(forever()), undefined);
      assert.equal(looks(), 2 * before);
    });
  }

  for (const [what, reply] of [
    ["a 401", { status: 401 }],
    ["a 403", { status: 403 }],
    ["a 500", { status: 500 }],
    ["a closed connection", "reset"],
    ["a page of HTML", { status: 200, body: "<html>" }],
  ] as const) {
    it(`a read of the account's permissions that fails with ${what} shows no obstacle and keeps the session`, async () => {
      await using bmc = await startFakeBmc();
      addAccounts(bmc, {}, {});
      const { override } = bmc;
      bmc.override = (request) => (request.path === ACCOUNTS ? reply : override(request));
      await using device = openFake(bmc, { path: SYSTEM });
      assert.equal(await device.findOffObstacle?.(forever()), undefined);
      assert.equal((await device.readPower(forever())).state, "On");
      assert.equal(bmc.sessions.size, 1, "the session is kept");
    });
  }

  it("the permissions of the account, if it may read them, are read for a probe alone, never on the way to Off", async () => {
    await using bmc = await startFakeBmc();
    addAccounts(bmc, {}, { AssignedPrivileges: ["Login"] });
    await using device = openFake(bmc, { path: SYSTEM });
    await device.identify(forever());
    await device.forceOff(forever());
    assert.deepEqual(await readTwice(device), ["Off", "Off"]);
    assert.ok(!bmc.log().some((line) => line.includes("AccountService")));
  });
});

describe("the reset types as they are offered now", () => {
  it("the reset types as they are offered now come from ActionInfo as well if the list next to the action lacks one", async () => {
    await using bmc = await startFakeBmc();
    list(bmc, "GracefulShutdown");
    const info = `${SYSTEM}/ResetActionInfo`;
    resetAction(bmc)["@Redfish.ActionInfo"] = info;
    const parameter = { Name: "ResetType", AllowableValues: ["On", "ForceOff"] };
    bmc.override = ({ path }) => (path === info ? ok({ Parameters: [parameter] }) : undefined);
    await using device = openFake(bmc);
    assert.equal(await device.findOffObstacle?.(forever()), undefined);
    await device.forceOff(forever());
    assert.deepEqual(orders(bmc), ["ForceOff"]);
  });

  it("the reset types as they are offered now ask for ActionInfo only if the list in the action is not enough", async () => {
    await using bmc = await startFakeBmc();
    resetAction(bmc)["@Redfish.ActionInfo"] = `${SYSTEM}/ResetActionInfo`;
    await using device = openFake(bmc);
    await device.identify(forever());
    await device.forceOff(forever());
    assert.ok(!bmc.log().some((line) => line.includes("ResetActionInfo")), bmc.log().join("\n"));
  });
});

describe("a Reset action that is hidden while the host is off", () => {
  const hide = (bmc: FakeBmc): void => {
    bmc.override = ({ method, path }) =>
      method === "GET" && path === SYSTEM && bmc.system["PowerState"] === "Off"
        ? ok({ ...bmc.system, Actions: {} })
        : undefined;
  };

  for (const [types, sent] of [
    [["On", "ForceOff"], "On"],
    [["ForceOn", "ForceOff"], "ForceOn"],
    [["ForceOff", "GracefulShutdown"], "On"],
    [["ForceOff", "PushPowerButton"], "PushPowerButton"],
  ] as const) {
    it(`a Reset action that is hidden while the host is off is known to the next device, which sends ${sent}: the BMC has listed ${types.join(", ")}`, async () => {
      await using bmc = await startFakeBmc();
      list(bmc, ...types);
      hide(bmc);
      const earlier = openFake(bmc);
      await earlier.forceOff(forever());
      await earlier.close();
      await using device = openFake(bmc);
      await device.on(forever());
      assert.equal(bmc.system["PowerState"], "On");
      assert.equal(bmc.requests.findLast(({ path }) => path === RESET)?.body["ResetType"], sent);
    });
  }

  it("a Reset action that is hidden while the host is off does not keep a power-off from being sent, even if it was first read then", async () => {
    await using bmc = await startFakeBmc();
    bmc.system["PowerState"] = "Off";
    hide(bmc);
    await using device = openFake(bmc);
    assert.equal(await device.findOffObstacle?.(forever()), undefined);
  });

  it("a Reset action that is hidden while the host is off is never taken from another host of the BMC", async () => {
    await using bmc = await startFakeBmc();
    const second = "/redfish/v1/Systems/2";
    const twin = {
      ...bmc.system,
      "@odata.id": second,
      SerialNumber: "SN-0002",
      UUID: "4c4c4544-0042-3510-8052-b4c04f4e3732",
      Actions: {},
    };
    bmc.override = ({ method, path }) => {
      if (path === "/redfish/v1/Systems") return ok({ Members: [{ "@odata.id": SYSTEM }, { "@odata.id": second }] });
      return method === "GET" && path === second ? ok({ ...twin, PowerState: "Off" }) : undefined;
    };
    const isHost =
      (serial: string) =>
      ({ serialNumber }: HostIdentity) =>
        serialNumber === serial;
    await using first = openFake(bmc, { isHost: isHost("SN-0001") });
    await first.identify(forever());
    await using other = openFake(bmc, { isHost: isHost("SN-0002") });
    await assert.rejects(other.on(forever()), hasCode("Unsupported", /no Reset action/));
    assert.deepEqual(orders(bmc), []);
  });
});

describe("a power button that is all there is to power a host on", () => {
  async function withButton(test: (bmc: FakeBmc, clock: ReturnType<typeof handClock>) => Promise<void>): Promise<void> {
    await using bmc = await startFakeBmc();
    list(bmc, "ForceOff", "PushPowerButton");
    bmc.system["PowerState"] = "Off";
    await test(bmc, handClock());
  }

  it("a power button that is all there is to power a host on is pushed right after a fresh Off", () =>
    withButton(async (bmc, clock) => {
      await using device = openFake(bmc, { clock });
      await device.on(forever());
      assert.deepEqual(orders(bmc), ["PushPowerButton"]);
      assert.equal(bmc.system["PowerState"], "On");
    }));

  it("a power button that is the only way to power a host on is never pushed on a host that is on, or that is not known to be off", () =>
    withButton(async (bmc, clock) => {
      bmc.system["PowerState"] = "On";
      await using device = openFake(bmc, { clock });
      await device.on(forever());
      for (const state of ["PoweringOn", "PoweringOff", "Paused", undefined]) {
        bmc.system["PowerState"] = state;
        await assert.rejects(device.on(forever()), hasCode("Refused", /power button is not pushed/));
      }
      bmc.system["PowerState"] = "Off";
      bmc.chassis["PowerState"] = "On";
      await assert.rejects(device.on(forever()), hasCode("Refused", /power button is not pushed/));
      assert.deepEqual(orders(bmc), []);
    }));

  it("a power button that is the only way to power a host on is not pushed again after a lost answer while the push may still take effect", () =>
    withButton(async (bmc, clock) => {
      bmc.override = ({ method, path }) => (method === "POST" && path === RESET ? "reset" : undefined);
      await using device = openFake(bmc, { clock });
      await assert.rejects(device.on(forever()), hasCode("Unreachable"));
      await assert.rejects(device.on(forever()), hasCode("Busy", /ordered on a short time ago/));
      await using second = openFake(bmc, { clock });
      await assert.rejects(second.on(forever()), hasCode("Busy"));
      assert.deepEqual(orders(bmc), ["PushPowerButton"]);
      bmc.override = () => undefined;
      // Longer than the time for which an unreachable BMC is distrusted.
      clock.advance(60_000);
      await second.on(forever());
      assert.deepEqual(orders(bmc), ["PushPowerButton", "PushPowerButton"]);
      assert.equal(bmc.system["PowerState"], "On");
    }));

  it("a power button that is all there is to power a host on is not pushed while another order to power on may be on its way", () =>
    withButton(async (bmc, clock) => {
      list(bmc, "On", "PushPowerButton");
      bmc.override = ({ method, path }) => (method === "POST" && path === RESET ? { status: 204 } : undefined);
      await using device = openFake(bmc, { clock });
      await device.on(forever());
      // The BMC lists values by power state, and its state is late.
      list(bmc, "ForceOff", "PushPowerButton");
      await device.identify(forever());
      clock.advance(20_000);
      await assert.rejects(device.on(forever()), hasCode("Busy"));
      assert.deepEqual(orders(bmc), ["On"]);
    }));

  it("a power button that is all there is to power a host on is not pushed again after an answer of a gateway: the BMC may have carried the push out", () =>
    withButton(async (bmc, clock) => {
      bmc.override = ({ method, path }) =>
        method === "POST" && path === RESET ? redfishError(503, "Base.1.8.ServiceTemporarilyUnavailable") : undefined;
      await using device = openFake(bmc, { clock });
      await assert.rejects(device.on(forever()));
      await assert.rejects(device.on(forever()), hasCode("Busy", /ordered on a short time ago/));
      assert.deepEqual(orders(bmc), ["PushPowerButton"]);
    }));

  it("a power button that is all there is to power a host on is not pushed after a new login on a host that has come on meanwhile", () =>
    withButton(async (bmc, clock) => {
      let denied = 0;
      bmc.override = ({ method, path }) => {
        if (method !== "POST" || path !== RESET || denied > 0) return undefined;
        denied += 1;
        bmc.system["PowerState"] = "On";
        bmc.chassis["PowerState"] = "On";
        return redfishError(401, "Base.1.8.NoValidSession");
      };
      await using device = openFake(bmc, { clock });
      await assert.rejects(device.on(forever()), hasCode("Refused", /no longer off/));
      assert.equal(bmc.system["PowerState"], "On");
    }));

  it("a power button that is all there is to power a host on is pushed again at once if it was refused", () =>
    withButton(async (bmc, clock) => {
      bmc.override = ({ method, path }) =>
        method === "POST" && path === RESET ? redfishError(409, "Base.1.8.ResourceInUse") : undefined;
      await using device = openFake(bmc, { clock });
      await assert.rejects(device.on(forever()), hasCode("Refused"));
      bmc.override = () => undefined;
      await device.on(forever());
      assert.equal(bmc.system["PowerState"], "On");
    }));

  it("a power button that is all there is to power a host on is left alone if On or ForceOn is offered, and never serves for Off", () =>
    withButton(async (bmc, clock) => {
      list(bmc, "PushPowerButton", "ForceOn");
      await using device = openFake(bmc, { clock });
      await device.on(forever());
      list(bmc, "PushPowerButton");
      await device.identify(forever());
      await assert.rejects(device.forceOff(forever()), hasCode("Unsupported"));
      assert.deepEqual(orders(bmc), ["ForceOn"]);
    }));
});
