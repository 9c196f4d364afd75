import { parseBmcAddress } from "../interface/address.ts";
import type { PowerDriver } from "../interface/driver.ts";
import type { BmcErrorCode } from "../interface/errors.ts";
import { BmcError } from "../interface/errors.ts";
import type { OpenDevice } from "../interface/device-config.ts";
import type { Clock } from "../../runtime/clock.ts";

/** The calls of a driver that are measured: those that the agent makes. */
export const DEVICE_OPERATIONS = [
  "identify",
  "identifyOutlet",
  "readPower",
  "findOffObstacle",
  "forceOff",
  "on",
  "setBootOverride",
  "readBootOverride",
  "readEvidence",
  "sendNmi",
  "acCycle",
] as const;
export type DeviceOperation = (typeof DEVICE_OPERATIONS)[number];

export const DEVICE_PROTOCOLS = ["redfish", "ipmi", "driver", "snmp"] as const;

/** `denied`: the user, password, permissions or certificate were refused. `error`: all other failures. */
export const DEVICE_RESULTS = ["ok", "timeout", "unreachable", "denied", "error"] as const;
export type DeviceResult = (typeof DEVICE_RESULTS)[number];

/** One call of a driver that has ended. */
export interface MeasuredCall {
  protocol: (typeof DEVICE_PROTOCOLS)[number];
  operation: DeviceOperation;
  result: DeviceResult;
  seconds: number;
}

/**
 * Wraps `open` so that `onCall` gets each measured call of its devices when the call has ended. Calls that their caller
 * aborted are left out.
 */
export function measureDevices(open: OpenDevice, clock: Clock, onCall: (call: MeasuredCall) => void): OpenDevice {
  return (config, deps) => {
    const driver = open(config, deps);
    const { protocol } = parseBmcAddress(config.address);
    return measured(driver, async (operation, call) => {
      const startMs = clock.monotonicMs();
      const report = (result: DeviceResult): void =>
        onCall({ protocol, operation, result, seconds: (clock.monotonicMs() - startMs) / 1_000 });
      try {
        const answer = await call();
        report("ok");
        return answer;
      } catch (error) {
        const result = error instanceof BmcError ? RESULTS[error.code] : "error";
        if (result !== undefined) report(result);
        throw error;
      }
    });
  };
}

type Measure = <T>(operation: DeviceOperation, call: () => Promise<T>) => Promise<T>;

function measured(driver: PowerDriver, measure: Measure): PowerDriver {
  const identifyOutlet = driver.identifyOutlet?.bind(driver);
  const readSupportedOrders = driver.readSupportedOrders?.bind(driver);
  const findOffObstacle = driver.findOffObstacle?.bind(driver);
  const readEvidence = driver.readEvidence?.bind(driver);
  const sendNmi = driver.sendNmi?.bind(driver);
  const acCycle = driver.acCycle?.bind(driver);
  const resetBmc = driver.resetBmc?.bind(driver);
  const readPowerLossSigns = driver.readPowerLossSigns?.bind(driver);
  return {
    address: driver.address,
    ...(driver.hasNoBootOverride === true && { hasNoBootOverride: true as const }),
    get lastReset() {
      return driver.lastReset;
    },
    get certificateUntilMs() {
      return driver.certificateUntilMs;
    },
    identify: (signal) => measure("identify", () => driver.identify(signal)),
    readPower: (signal) => measure("readPower", () => driver.readPower(signal)),
    forceOff: (signal) => measure("forceOff", () => driver.forceOff(signal)),
    on: (signal) => measure("on", () => driver.on(signal)),
    setBootOverride: (override, signal) => measure("setBootOverride", () => driver.setBootOverride(override, signal)),
    readBootOverride: (signal) => measure("readBootOverride", () => driver.readBootOverride(signal)),
    ...(identifyOutlet !== undefined && {
      identifyOutlet: (signal) => measure("identifyOutlet", () => identifyOutlet(signal)),
    }),
    ...(findOffObstacle !== undefined && {
      findOffObstacle: (signal) => measure("findOffObstacle", () => findOffObstacle(signal)),
    }),
    ...(readEvidence !== undefined && {
      readEvidence: (signal) => measure("readEvidence", () => readEvidence(signal)),
    }),
    ...(sendNmi !== undefined && { sendNmi: (signal) => measure("sendNmi", () => sendNmi(signal)) }),
    ...(acCycle !== undefined && { acCycle: (signal) => measure("acCycle", () => acCycle(signal)) }),
    ...(readSupportedOrders !== undefined && { readSupportedOrders }),
    ...(resetBmc !== undefined && { resetBmc }),
    ...(readPowerLossSigns !== undefined && { readPowerLossSigns }),
    close: () => driver.close(),
  };
}

const RESULTS: Readonly<Record<BmcErrorCode, DeviceResult | undefined>> = {
  Unreachable: "unreachable",
  Timeout: "timeout",
  TlsUntrusted: "denied",
  AuthFailed: "denied",
  PrivilegeTooLow: "denied",
  SystemNotFound: "error",
  SystemAmbiguous: "error",
  Unsupported: "error",
  Busy: "error",
  Refused: "error",
  BadResponse: "error",
  Aborted: undefined,
};
