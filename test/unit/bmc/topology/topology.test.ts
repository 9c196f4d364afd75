import assert from "node:assert/strict";
import { test } from "node:test";
import type { PowerDriver, PowerReading, PowerState } from "../../../../src/bmc/interface/driver.ts";
import type { BmcErrorCode } from "../../../../src/bmc/interface/errors.ts";
import { BmcError } from "../../../../src/bmc/interface/errors.ts";
import { levelPower } from "../../../../src/bmc/topology/level-readings.ts";
import { Topology } from "../../../../src/bmc/topology/topology.ts";

const readings = (states: readonly PowerState[]): PowerReading[] => states.map((state) => ({ state, raw: state }));

test("a level is on if one of its devices shows On, changing if one is changing, and off if each shows Off", () => {
  for (const [states, devices, expected] of [
    [["Off", "On"], 2, "On"],
    [["Changing", "On"], 2, "On"],
    [["Unknown", "On"], 3, "On"],
    [["Off", "Changing"], 2, "Changing"],
    [["Unknown", "Changing"], 2, "Changing"],
    [["Off", "Off"], 2, "Off"],
    [["Off", "Unknown"], 2, "Unknown"],
    [["Off"], 2, "Unknown"],
    [[], 1, "Unknown"],
    [[], 0, "Unknown"],
  ] as const) {
    assert.equal(levelPower(readings(states), devices).state, expected, `${states.join(", ")} of ${devices}`);
  }
});

test("the Off of a level counts as read by the BMC that has been up for the shortest time, of those that report it", () => {
  const off = { state: "Off", raw: "Off" } as const;
  const upMs = (...times: (number | undefined)[]): number | undefined =>
    levelPower(
      times.map((bmcUpMs) => ({ ...off, ...(bmcUpMs !== undefined && { bmcUpMs }) })),
      times.length,
    ).bmcUpMs;
  assert.equal(upMs(5), 5);
  assert.equal(upMs(undefined), undefined);
  assert.equal(upMs(9, undefined, 7), 7);
});

for (const levels of [
  [1, 1],
  [1, 2],
]) {
  test(`an order that failed on several devices (levels ${levels.join(" and ")}) is reported as what may have taken effect`, async () => {
    const refusing = (code: BmcErrorCode): PowerDriver => {
      const driver: Partial<PowerDriver> = {
        identify: () => Promise.resolve({ device: code }),
        forceOff: () => Promise.reject(new BmcError(code, code)),
      };
      return driver as PowerDriver;
    };
    for (const [codes, expected] of [
      [["Refused", "Timeout"], "Timeout"],
      [["Unreachable", "BadResponse"], "BadResponse"],
      [["Busy", "Unreachable"], "Unreachable"],
      [["Refused", "Busy"], "Busy"],
      [["PrivilegeTooLow", "Refused"], "Refused"],
      [["PrivilegeTooLow", "AuthFailed"], "PrivilegeTooLow"],
    ] as const) {
      const devices = codes.map((code, index) => ({ level: levels[index] ?? 1, driver: refusing(code) }));
      const topology = new Topology(devices, () => ({ verified: true, message: "" }));
      const order = topology.forceOff(new AbortController().signal);
      await assert.rejects(order, (error) => error instanceof BmcError && error.code === expected, codes.join(", "));
    }
  });
}

test("a boot override is cleared on a BMC though another device has none, and there is none to clear if no device has one", async () => {
  const calls: string[] = [];
  const unsupported = (): Promise<never> => Promise.reject(new BmcError("Unsupported", "no boot override"));
  const identify = (): ReturnType<PowerDriver["identify"]> => Promise.resolve({ device: "d" });
  const server = {
    identify,
    hasNoBootOverride: true,
    setBootOverride: unsupported,
    readBootOverride: unsupported,
  } satisfies Partial<PowerDriver>;
  const bmc = {
    identify,
    setBootOverride: (override: string) => Promise.resolve(void calls.push(override)),
    readBootOverride: () => Promise.resolve("NetworkOnce" as const),
  } satisfies Partial<PowerDriver>;
  const of = (...drivers: readonly Partial<PowerDriver>[]): Topology =>
    new Topology(
      drivers.map((driver, index) => ({ level: index + 1, driver: driver as PowerDriver })),
      () => ({ verified: true, message: "" }),
    );
  const signal = new AbortController().signal;
  await of(server, bmc).setBootOverride("None", signal);
  assert.deepEqual(calls, ["None"]);
  assert.equal(await of(server, bmc).readBootOverride(signal), "NetworkOnce");
  await of(server).setBootOverride("None", signal);
  assert.equal(await of(server).readBootOverride(signal), "None");
  await assert.rejects(of(server).setBootOverride("NetworkOnce", signal), { code: "Unsupported" });
});

test("a BMC without a boot override has none to clear, but one that leaves it out for a while may have it set", async () => {
  let supports = false;
  const calls: string[] = [];
  const bmc: Partial<PowerDriver> = {
    identify: () => Promise.resolve({ device: "d" }),
    setBootOverride: async (override) => {
      if (!supports) throw new BmcError("Unsupported", "the System has no boot override");
      calls.push(override);
    },
    readBootOverride: async () => {
      if (!supports) throw new BmcError("Unsupported", "the System has no boot override");
      return "None";
    },
  };
  const devices = [{ level: 1, driver: bmc as PowerDriver }];
  const topology = new Topology(devices, () => ({ verified: true, message: "" }));
  const signal = new AbortController().signal;
  await assert.rejects(topology.setBootOverride("None", signal), { code: "Unsupported" }, "it may be set");
  await assert.rejects(topology.setBootOverride("NetworkOnce", signal), { code: "Unsupported" });
  await topology.setBootOverride("None", signal);
  assert.equal(await topology.readBootOverride(signal), "None");
  supports = true;
  await topology.setBootOverride("NetworkOnce", signal);
  supports = false;
  await assert.rejects(topology.setBootOverride("None", signal), { code: "Unsupported" });
  await assert.rejects(topology.readBootOverride(signal), { code: "Unsupported" });
  assert.deepEqual(calls, ["NetworkOnce"]);
});

/** A device that is off. Its first reads of the identity or the power fail the given number of times. */
function offDevice(address: string, fails: { identify?: number; readPower?: number } = {}): PowerDriver {
  const { identify = 0, readPower = 0 } = fails;
  const left = { identify, readPower };
  const answer = async <T>(call: keyof typeof left, value: T): Promise<T> => {
    left[call] -= 1;
    if (left[call] >= 0) throw new BmcError("Unreachable", `${address}: no answer`);
    return value;
  };
  const driver: Partial<PowerDriver> = {
    address,
    identify: () => answer("identify", { systemUUID: "u", device: address }),
    readPower: () => answer("readPower", { state: "Off", raw: "Off" }),
  };
  return driver as PowerDriver;
}
const verified = () => ({ verified: true, message: "the same" }) as const;
const { signal: unbounded } = new AbortController();

test("Redfish and IPMI of one BMC do not agree with each other, and two BMCs do", async () => {
  for (const [second, agrees] of [
    ["ipmi://bmc-3.example", undefined],
    ["ipmi://BMC-3.example:6230", undefined],
    ["bmc-3.example", undefined],
    ["ipmi://bmc-4.example", true],
  ] as const) {
    const devices = ["redfish://bmc-3.example", second].map((address) => ({ level: 1, driver: offDevice(address) }));
    const reading = await new Topology(devices, verified).readPower(unbounded);
    assert.deepEqual([reading.state, reading.agrees], ["Off", agrees], second);
  }
});

test("an Off says whether a device has failed since the host was opened: the one that shows it, or another one", async () => {
  const open = (fails: { identify?: number; readPower?: number }): Topology =>
    new Topology(
      [
        { level: 1, driver: offDevice("redfish://bmc-3.example", fails) },
        { level: 2, driver: offDevice("ipmi://bmc-3.example") },
      ],
      verified,
    );
  const whole = open({});
  await whole.verify(verified, unbounded);
  assert.equal((await whole.readPower(unbounded)).failed, undefined);
  const unread = open({ readPower: 1 });
  assert.equal((await unread.readPower(unbounded)).failed, "Other");
  assert.equal((await unread.readPower(unbounded)).failed, "Same", "once it has failed, it may have restarted");
  const unidentified = open({ identify: 1 });
  await unidentified.verify(verified, unbounded);
  assert.equal((await unidentified.readPower(unbounded)).failed, "Same");
});
