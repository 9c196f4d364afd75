import assert from "node:assert/strict";
import { test } from "node:test";
import type { PowerReading, PowerState } from "../../../src/bmc/driver.ts";
import { levelPower } from "../../../src/bmc/topology.ts";

const readings = (states: readonly PowerState[]): PowerReading[] => states.map((state) => ({ state, raw: state }));

test("a level is on where one of its devices says so, changing where one does, and off where each says so", () => {
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
