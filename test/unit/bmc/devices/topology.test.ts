import assert from "node:assert/strict";
import { test } from "node:test";
import type { PowerDriver, PowerReading, PowerState } from "../../../../src/bmc/interface/driver.ts";
import type { BmcErrorCode } from "../../../../src/bmc/interface/errors.ts";
import { BmcError } from "../../../../src/bmc/interface/errors.ts";
import { levelPower, Topology } from "../../../../src/bmc/devices/topology.ts";

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

for (const levels of [
  [1, 1],
  [1, 2],
]) {
  test(`of an order that several devices failed (levels ${levels.join(" and ")}) counts what may have taken effect`, async () => {
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
