import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { PowerDriver } from "../../../../src/bmc/interface/driver.ts";
import { BmcError } from "../../../../src/bmc/interface/errors.ts";
import type { MeasuredCall } from "../../../../src/bmc/devices/measured-device.ts";
import { measureDevices } from "../../../../src/bmc/devices/measured-device.ts";
import type { DeviceConfig, OpenDevice } from "../../../../src/bmc/interface/device-config.ts";
import { sleep } from "../../../../src/runtime/clock.ts";
import { Secret } from "../../../../src/runtime/secret.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { VirtualClock } from "../../../lib/virtual-clock.ts";

const SIGNAL = new AbortController().signal;

function open(
  driver: Partial<PowerDriver>,
  address = "redfish://a.example",
): { device: PowerDriver; calls: MeasuredCall[]; clock: VirtualClock } {
  const clock = new VirtualClock();
  const calls: MeasuredCall[] = [];
  const inner = ((config) => Object.assign(driver, { address: config.address })) as OpenDevice;
  const timeouts = { connectTimeoutMs: 1, callTimeoutMs: 1 };
  const config: DeviceConfig = {
    address,
    username: "u",
    password: new Secret("p"),
    tls: { insecureSkipVerify: false },
    timeouts,
  };
  const measured = measureDevices(inner, clock, (call) => void calls.push(call));
  return { device: measured(config, { clock, logger: createLogger("silent") }), calls, clock };
}

describe("a measured device", () => {
  it("a measured device reports how long a call took, and its answer goes on to the caller", async () => {
    const driver: Partial<PowerDriver> = {};
    const { device, calls, clock } = open(driver, "ipmi://a.example");
    driver.readPower = async () => {
      await sleep(clock, 1_500, SIGNAL);
      return { state: "Off", raw: "Off" };
    };
    const reading = device.readPower(SIGNAL);
    await clock.advance(1_500);
    assert.equal((await reading).state, "Off");
    assert.deepEqual(calls, [{ protocol: "ipmi", operation: "readPower", result: "ok", seconds: 1.5 }]);
  });

  it("a measured device reports a failure by its class and passes it on, and reports no call that its caller gave up", async () => {
    const failure = { code: new BmcError("AuthFailed", "401") };
    const { device, calls } = open({ forceOff: () => Promise.reject(failure.code) });
    for (const [code, result] of [
      ["AuthFailed", "denied"],
      ["Timeout", "timeout"],
      ["Busy", "error"],
      ["Unreachable", "unreachable"],
    ] as const) {
      failure.code = new BmcError(code, code);
      await assert.rejects(device.forceOff(SIGNAL), failure.code);
      assert.equal(calls.at(-1)?.result, result);
    }
    failure.code = new BmcError("Aborted", "given up");
    await assert.rejects(device.forceOff(SIGNAL), failure.code);
    assert.equal(calls.length, 4);
  });

  it("a measured device has the optional calls that its driver has, and no other, and shows what its driver shows now", () => {
    const bare = open({}).device;
    for (const name of ["readSupportedOrders", "findOffObstacle", "resetBmc"]) assert.ok(!(name in bare), name);
    const driver: { lastReset?: string; findOffObstacle: () => Promise<undefined> } = {
      findOffObstacle: () => Promise.resolve(undefined),
    };
    const { device } = open(driver);
    assert.ok("findOffObstacle" in device);
    driver.lastReset = "now";
    assert.equal(device.lastReset, "now");
  });
});
