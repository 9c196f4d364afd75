import { startSnmpMock } from "../../hack/snmp-mock/server.ts";
import type { SnmpMock, SnmpMockOptions, SnmpUser } from "../../hack/snmp-mock/server.ts";
import { OutletStrip } from "../../hack/snmp-mock/outlets.ts";
import type { Outlet } from "../../hack/snmp-mock/outlets.ts";
import { createRack } from "../../hack/rack/rack.ts";
import type { Rack } from "../../hack/rack/rack.ts";
import type { SnmpConfig } from "../../src/bmc/interface/device-config.ts";
import type { OutletIdentity, PowerDriver } from "../../src/bmc/interface/driver.ts";
import type { Mib } from "../../src/bmc/interface/mibs.ts";
import { OUTLET_TABLES } from "../../src/bmc/snmp/tables/tables.ts";
import type { Clock } from "../../src/runtime/clock.ts";
import { Secret } from "../../src/runtime/secret.ts";
import { systemClock, systemRandom } from "../../src/runtime/system.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { openDeviceOn } from "../lib/open-device.ts";

// One PDU on loopback with outlets for simulated hosts, and drivers for it. Host `one` has one power supply, `two` has
// two.

export const USER = "fence";
export const PASSWORD = "correct-horse-1";
export const PRIV_PASSWORD = "battery-staple-2";
export const COMMUNITY = "only-for-tests";
export const SERIAL = "PDU-4711";

/** A driver of an outlet. */
export type OutletDriver = PowerDriver & { identifyOutlet(signal: AbortSignal): Promise<OutletIdentity> };

export interface SnmpWorld {
  rack: Rack;
  mock: SnmpMock;
  clock: Clock;
  /** Moves the clock of driver and PDU forward. */
  skip(ms: number): void;
  /** The outlet with this number: 1 feeds `one`, 2 and 3 feed `two`, 4 feeds nothing. */
  outlet(number: number): Outlet;
  /** @param number of the outlet. */
  open(number: number, options?: OpenOptions): OutletDriver;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface OpenOptions {
  username?: string;
  password?: string;
  snmp?: SnmpConfig;
  callTimeoutMs?: number;
  isOrderAllowed?: () => boolean;
  /** Replaces the address of the outlet. */
  address?: string;
}

export interface WorldOptions {
  mib?: Mib;
  isMetered?: boolean;
  user?: Partial<SnmpUser>;
  mock?: Partial<SnmpMockOptions>;
}

/** The index of the n-th outlet in the table of the vendor. */
export function indexOf(mib: Mib, number: number): string {
  const { index } = OUTLET_TABLES[mib];
  const units = index.slice(1).map(() => (mib === "Eaton" ? "0" : "1"));
  return [...units, number].join(".");
}

export async function startSnmpWorld(options: WorldOptions = {}): Promise<SnmpWorld> {
  const { mib = "APC-rPDU2", isMetered = true } = options;
  let skippedMs = 0;
  const clock: Clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + skippedMs };
  const timing = { powerOffDelayMs: 20, powerOnDelayMs: 20, bootMs: 20, restorePolicy: "AlwaysOn" } as const;
  const rack = createRack({
    clock,
    random: systemRandom,
    hosts: [
      { name: "one", ...timing },
      { name: "two", ...timing },
    ],
  });
  const feeds = new Map();
  const specs = ["one", "two", "two", undefined].map((host, at) => ({
    index: indexOf(mib, at + 1),
    label: `${host ?? "spare"} ${at + 1}`,
    isMetered,
    ...(host !== undefined && { host }),
  }));
  const strip = new OutletStrip(clock, rack, specs, feeds);
  const mock = await startSnmpMock({
    clock,
    mib,
    strip,
    serial: SERIAL,
    community: new Secret(COMMUNITY),
    ...options.mock,
    user: {
      name: USER,
      authProtocol: "SHA-256",
      password: new Secret(PASSWORD),
      privPassword: new Secret(PRIV_PASSWORD),
      ...options.user,
    },
  });
  const opened: PowerDriver[] = [];
  return {
    rack,
    mock,
    clock,
    skip: (ms) => {
      skippedMs += ms;
    },
    outlet: (number) => strip.find(indexOf(mib, number)) ?? missing(number),
    open: (number, options = {}) => {
      const { username = USER, password = PASSWORD, callTimeoutMs = 6_000, isOrderAllowed, snmp } = options;
      const device = openDeviceOn(clock)(
        {
          address: options.address ?? `${mock.address}/${indexOf(mib, number)}`,
          username,
          password: new Secret(password),
          tls: { insecureSkipVerify: false },
          timeouts: { connectTimeoutMs: 2_000, callTimeoutMs },
          snmp: { privPassword: new Secret(PRIV_PASSWORD), ...snmp },
        },
        { clock, logger: createLogger("silent"), ...(isOrderAllowed !== undefined && { isOrderAllowed }) },
      );
      opened.push(device);
      return asOutlet(device);
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all(opened.map((device) => device.close()));
      await mock.close();
      strip.stop();
      rack.stop();
    },
  };
}

function asOutlet(device: PowerDriver): OutletDriver {
  if (device.identifyOutlet === undefined) throw new Error("not the driver of an outlet");
  return device as OutletDriver;
}

function missing(number: number): never {
  throw new Error(`there is no outlet ${number}`);
}
