import { startIpmiMock } from "../../hack/ipmi-mock/server.ts";
import type { IpmiMock, IpmiMockOptions } from "../../hack/ipmi-mock/server.ts";
import { createRack } from "../../hack/rack/rack.ts";
import type { Bmc } from "../../hack/rack/bmc.ts";
import type { Host, HostSpec } from "../../hack/rack/host.ts";
import type { PowerDriver } from "../../src/bmc/interface/driver.ts";
import { openDeviceOn } from "../lib/open-device.ts";
import type { DeviceConfig } from "../../src/bmc/interface/device-config.ts";
import { systemClock, systemRandom } from "../../src/runtime/system.ts";
import type { Clock } from "../../src/runtime/clock.ts";
import { Secret } from "../../src/runtime/secret.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { PASSWORD } from "./bmc-fixture.ts";

// One simulated host with an IPMI BMC on loopback, and drivers for it.

export const USERNAME = "fence";

export interface IpmiWorld {
  host: Host;
  bmc: Bmc;
  mock: IpmiMock;
  /**
   * The clock of the machine. `skip` moves it forward. Drivers of a world share the same state as drivers of one
   * process.
   */
  clock: Clock;
  skip(ms: number): void;
  open(options?: OpenOptions): PowerDriver;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface OpenOptions {
  /** The query of the BMC's address. */
  query?: string;
  username?: string;
  password?: string;
  ipmi?: DeviceConfig["ipmi"];
  callTimeoutMs?: number;
  connectTimeoutMs?: number;
  isOrderAllowed?: () => boolean;
}

export async function startIpmiWorld(
  options: { host?: Partial<HostSpec>; mock?: Partial<IpmiMockOptions> } = {},
): Promise<IpmiWorld> {
  let skippedMs = 0;
  const clock: Clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + skippedMs };
  const spec = { name: "one", powerOffDelayMs: 50, powerOnDelayMs: 50, bootMs: 50, ...options.host };
  const rack = createRack({ clock, random: systemRandom, hosts: [spec] });
  const mock = await startIpmiMock({
    rack,
    clock,
    random: systemRandom,
    host: "one",
    username: USERNAME,
    password: new Secret(PASSWORD),
    ...options.mock,
  });
  const opened: PowerDriver[] = [];
  return {
    host: rack.host("one"),
    bmc: rack.bmc("one"),
    mock,
    clock,
    skip: (ms) => {
      skippedMs += ms;
    },
    open: ({
      query = "",
      username = USERNAME,
      password = PASSWORD,
      ipmi,
      callTimeoutMs = 6_000,
      connectTimeoutMs = 2_000,
      isOrderAllowed,
    } = {}) => {
      const device = openDeviceOn(clock)(
        {
          address: `${mock.address}${query}`,
          username,
          password: new Secret(password),
          tls: { insecureSkipVerify: false },
          timeouts: { connectTimeoutMs, callTimeoutMs },
          ...(ipmi !== undefined && { ipmi }),
        },
        { clock, logger: createLogger("silent"), ...(isOrderAllowed !== undefined && { isOrderAllowed }) },
      );
      opened.push(device);
      return device;
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all(opened.map((device) => device.close()));
      await mock.close();
      rack.stop();
    },
  };
}
