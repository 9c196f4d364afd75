import type { BmcAddress, IpmiAddress, SnmpAddress } from "../interface/address.ts";
import { parseBmcAddress } from "../interface/address.ts";
import type { HostIdentity } from "../identity/host-identity.ts";
import type { PowerDriver, PowerReading } from "../interface/driver.ts";
import type { BmcErrorCode } from "../interface/errors.ts";
import { BmcError } from "../interface/errors.ts";
import type { Endpoint } from "./network-checks.ts";
import { checkName, checkTcp, checkTls } from "./network-checks.ts";
import type { DeviceConfig, OpenDevice } from "../interface/device-config.ts";
import { meaningfulSerial, meaningfulUuid } from "../identity/placeholders.ts";
import { abortReason } from "../../runtime/clock.ts";
import type { Clock } from "../../runtime/clock.ts";
import { withDeadline } from "../../runtime/deadline.ts";
import { createLogger } from "../../telemetry/logger.ts";

/** What a fence needs of a device, in the order in which the fence needs it. */
export type CheckName =
  | "address"
  | "name"
  | "connection"
  | "tls"
  | "service"
  | "login"
  | "system"
  | "identity"
  | "power"
  | "orders"
  | "networkBoot"
  | "session";

/** The result of one check. */
export interface DeviceCheck {
  check: CheckName;
  /** Warning: a fence succeeds, but something is not as it should be. Skipped: an earlier check failed. */
  result: "ok" | "warning" | "failed" | "skipped";
  /** What was found, or why the check failed and what to do. */
  detail: string;
  /** For `tls`: SHA-256 of the certificate of the device. */
  sha256Fingerprint?: string;
}

/** What a probe found. */
export interface DeviceReport {
  checks: readonly DeviceCheck[];
  /** The identity and the power state that were read; missing if the probe failed earlier. */
  identity?: HostIdentity;
  reading?: PowerReading;
}

/**
 * Checks everything that a fence needs of a device and changes nothing there: it resolves, connects, logs in once,
 * reads, and ends its session. A failure is a result; only the abort of `signal` is thrown.
 */
export async function probeDevice(
  config: DeviceConfig,
  deps: { clock: Clock; openDevice: OpenDevice },
  signal: AbortSignal,
): Promise<DeviceReport> {
  const probe = new DeviceChecker(config, deps);
  const address = probe.readAddress();
  if (address !== undefined && (await probe.checkNetwork(address, signal))) await probe.checkDevice(address, signal);
  return probe.report();
}

const REDFISH_CHECKS: readonly CheckName[] = [
  "address",
  "name",
  "connection",
  "tls",
  "service",
  "login",
  "system",
  "identity",
  "power",
  "orders",
  "networkBoot",
  "session",
];
/** A driver server has no sessions. */
const NOT_OF_DRIVER: ReadonlySet<CheckName> = new Set(["session"]);
/** UDP has no connection, IPMI has no TLS, and a BMC has one host. */
const NOT_OF_IPMI: ReadonlySet<CheckName> = new Set(["connection", "tls", "system"]);

/** UDP has no connection, and SNMP has neither TLS nor sessions to end. */
const NOT_OF_SNMP: ReadonlySet<CheckName> = new Set(["connection", "tls", "networkBoot", "session"]);

const PROTOCOLS: Readonly<
  Record<BmcAddress["protocol"], { label: string; lacks: ReadonlySet<CheckName>; answers: string; orders: string }>
> = {
  redfish: { label: "Redfish", lacks: new Set(), answers: "speaks Redfish", orders: "" },
  ipmi: {
    label: "IPMI 2.0",
    lacks: NOT_OF_IPMI,
    answers: "answers, and accepts an RMCP+ session",
    orders: "off and on: every BMC that speaks IPMI must support them",
  },
  driver: {
    label: "driver server",
    lacks: NOT_OF_DRIVER,
    answers: "proves its answers",
    orders: "off and on: every driver server must support them; ironfence driver check tries them",
  },
  snmp: {
    label: "SNMP",
    lacks: NOT_OF_SNMP,
    answers: "answers SNMP",
    orders: "off and on of the outlet",
  },
};

class DeviceChecker {
  readonly #config: DeviceConfig;
  readonly #deps: { clock: Clock; openDevice: OpenDevice };
  readonly #found = new Map<CheckName, DeviceCheck>();
  #names: readonly CheckName[] = REDFISH_CHECKS;
  #identity: HostIdentity | undefined;
  #reading: PowerReading | undefined;

  constructor(config: DeviceConfig, deps: { clock: Clock; openDevice: OpenDevice }) {
    this.#config = config;
    this.#deps = deps;
  }

  report(): DeviceReport {
    const skipped = "an earlier check failed";
    return {
      checks: this.#names.map((check) => this.#found.get(check) ?? { check, result: "skipped", detail: skipped }),
      ...(this.#identity !== undefined && { identity: this.#identity }),
      ...(this.#reading !== undefined && { reading: this.#reading }),
    };
  }

  readAddress(): BmcAddress | undefined {
    try {
      const address = parseBmcAddress(this.#config.address);
      const { label, lacks } = PROTOCOLS[address.protocol];
      this.#names = REDFISH_CHECKS.filter((name) => !lacks.has(name));
      const where = isUdp(address) ? `UDP port ${address.port}` : address.origin;
      this.#add("address", "ok", `${label} at ${where}`);
      return address;
    } catch (error) {
      this.#add("address", "failed", messageOf(error));
      return undefined;
    }
  }

  /** Checks the network up to the first request. @returns whether requests can be sent. */
  async checkNetwork(address: BmcAddress, signal: AbortSignal): Promise<boolean> {
    const endpoint = endpointOf(address);
    const resolved = await this.#step("name", signal, async () => ok(await checkName(endpoint)));
    if (!resolved || isUdp(address)) return resolved;
    if (!(await this.#step("connection", signal, async (signal) => ok(await checkTcp(endpoint, signal))))) return false;
    if (address.origin.startsWith("http:")) {
      const seen = address.protocol === "driver" ? "orders and answers are signed, but cross" : "the password crosses";
      this.#add("tls", "warning", `none: ${seen} the network in clear text`);
      return true;
    }
    return this.#step("tls", signal, async (signal) => {
      const { trust, detail, sha256Fingerprint } = await checkTls(endpoint, this.#config, signal);
      const result = ({ Trusted: "ok", Unchecked: "warning", Untrusted: "failed" } as const)[trust];
      return { result, detail, sha256Fingerprint };
    });
  }

  async checkDevice(address: BmcAddress, signal: AbortSignal): Promise<void> {
    // `close` never throws: only the log shows that a session could not be ended.
    const warnings: string[] = [];
    const logger = createLogger("warn", { write: (line) => void warnings.push(line) });
    let driver: PowerDriver;
    try {
      driver = this.#deps.openDevice(this.#config, { clock: this.#deps.clock, logger });
    } catch (error) {
      this.#add("service", "failed", messageOf(error));
      return;
    }
    try {
      if (await this.#checkLogin(address, driver, signal)) await this.#checkPower(address, driver, signal);
    } finally {
      await driver.close();
      const left = warnings.some((line) => line.includes("session not ended"));
      if (left)
        this.#add("session", "warning", "it could not be ended: a BMC has few sessions, and ends idle ones late");
      else if (this.#found.get("login")?.result === "ok") this.#add("session", "ok", "ended: no session is left open");
    }
  }

  /**
   * Reads the identity. As the first call of the driver it also reaches the service, logs in and finds the System; its
   * error shows which of these failed.
   */
  async #checkLogin(address: BmcAddress, driver: PowerDriver, signal: AbortSignal): Promise<boolean> {
    const isIpmi = address.protocol === "ipmi";
    const steps: [CheckName, string][] = [
      ["service", PROTOCOLS[address.protocol].answers],
      ["login", `as ${this.#config.username}`],
    ];
    if (!isIpmi) steps.push(["system", ""]);
    try {
      this.#identity = await driver.identify(signal);
    } catch (error) {
      const failed = FAILS_AT.get(codeOf(error, signal)) ?? "service";
      for (const [check, detail] of steps) {
        if (check === failed) {
          this.#add(check, "failed", messageOf(error));
          return false;
        }
        this.#add(check, "ok", detail);
      }
      return false;
    }
    const { device, systemUUID, serialNumber, manufacturer, model } = this.#identity;
    for (const [check, detail] of steps) this.#add(check, "ok", check === "system" ? device : detail);
    const names = [
      systemUUID === undefined ? "" : `system UUID ${systemUUID}`,
      serialNumber === undefined ? "" : `serial number ${serialNumber}`,
    ].filter((name) => name !== "");
    const product = [manufacturer, model].filter((part) => part !== undefined).join(" ");
    const who = [...names, ...(product === "" ? [] : [product])].join(", ");
    const isOwn = (meaningfulUuid(systemUUID) ?? meaningfulSerial(serialNumber)) !== undefined;
    if (isOwn) this.#add("identity", "ok", who);
    else if (names.length > 0) {
      this.#add("identity", "warning", `${who}: factory defaults, which many hosts share, so they prove nothing`);
    } else this.#add("identity", "warning", `${who} the BMC reports neither system UUID nor serial number`.trim());
    return true;
  }

  async #checkPower(address: BmcAddress, driver: PowerDriver, signal: AbortSignal): Promise<void> {
    await this.#step("power", signal, async (signal) => {
      this.#reading = await driver.readPower(signal);
      const { state, raw } = this.#reading;
      if (state !== "Unknown") return ok(`${state} (the BMC reports: ${raw})`);
      return { result: "failed", detail: `the BMC reports ${raw}, which is neither On nor Off` };
    });
    const readSupported = driver.readSupportedOrders?.bind(driver);
    let hasNetworkBoot = true;
    await this.#step("orders", signal, async (signal) => {
      if (readSupported === undefined) {
        const obstacle = await driver.findOffObstacle?.(signal);
        return obstacle === undefined
          ? ok(PROTOCOLS[address.protocol].orders)
          : { result: "failed", detail: obstacle.message };
      }
      const { allowedTypes, off, on, networkBoot } = await readSupported(signal);
      hasNetworkBoot = networkBoot;
      const obstacle = await driver.findOffObstacle?.(signal);
      if (obstacle !== undefined) return { result: "failed", detail: obstacle.message };
      const list =
        allowedTypes === undefined
          ? "the BMC lists none; whether it accepts them is not known"
          : `listed: ${allowedTypes.join(", ")}`;
      // Some BMCs list only what they allow in the present state.
      const state = this.#reading?.state;
      const missing =
        off === undefined && state !== "Off" ? "ForceOff" : on === undefined && state !== "On" ? "On" : "";
      if (missing !== "") return { result: "failed", detail: `no ${missing} is offered (${list})` };
      const supported = [off, on].filter((type) => type !== undefined).join(" and ");
      return ok(`${supported === "" ? `all that is needed while the host is ${state ?? "so"}` : supported} (${list})`);
    });
    const forWhat = "only a remediation of type Reprovision needs it";
    await this.#step("networkBoot", signal, async (signal) => {
      if (!hasNetworkBoot) return { result: "warning", detail: `not offered; ${forWhat}` };
      try {
        const override = await driver.readBootOverride(signal);
        if (override === "None") return ok("offered, none set");
        return { result: "warning", detail: "set: the host boots from the network next" };
      } catch (error) {
        if (codeOf(error, signal) !== "Unsupported") throw error;
        return { result: "warning", detail: `not offered; ${forWhat}` };
      }
    });
  }

  /** @returns whether the check did not fail. */
  async #step(
    check: CheckName,
    signal: AbortSignal,
    work: (signal: AbortSignal) => Promise<Omit<DeviceCheck, "check">>,
  ): Promise<boolean> {
    const { connectTimeoutMs, callTimeoutMs } = this.#config.timeouts;
    const timeoutMs = connectTimeoutMs + callTimeoutMs;
    try {
      const found = await withDeadline(this.#deps.clock, check, timeoutMs, signal, work);
      this.#found.set(check, { check, ...found });
    } catch (error) {
      if (signal.aborted) throw abortReason(signal);
      this.#add(check, "failed", messageOf(error));
    }
    return this.#found.get(check)?.result !== "failed";
  }

  #add(check: CheckName, result: DeviceCheck["result"], detail: string): void {
    this.#found.set(check, { check, result, detail });
  }
}

/** The check that a failure of the first call of a driver belongs to. All other failures belong to `service`. */
const FAILS_AT: ReadonlyMap<BmcErrorCode, CheckName> = new Map([
  ["AuthFailed", "login"],
  ["PrivilegeTooLow", "login"],
  ["SystemNotFound", "system"],
  ["SystemAmbiguous", "system"],
]);

/** @throws anything that is not a failure of the device: the abort of `signal`, and defects. */
function codeOf(error: unknown, signal: AbortSignal): BmcErrorCode {
  if (signal.aborted) throw abortReason(signal);
  if (error instanceof BmcError) return error.code;
  throw error;
}

function ok(detail: string): Omit<DeviceCheck, "check"> {
  return { result: "ok", detail };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : "failed";
}

function isUdp(address: BmcAddress): address is IpmiAddress | SnmpAddress {
  return address.protocol === "ipmi" || address.protocol === "snmp";
}

/** Where the device at an address listens. */
export function endpointOf(address: BmcAddress): Endpoint {
  if (isUdp(address)) return address;
  const url = new URL(address.origin);
  const defaultPort = url.protocol === "http:" ? 80 : 443;
  return {
    hostname: url.hostname.replace(/^\[(.*)\]$/, "$1"),
    port: url.port === "" ? defaultPort : Number(url.port),
  };
}
