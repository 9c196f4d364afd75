import { parseStatus, requireTaken } from "./answers.ts";
import type { DriverStatus } from "./answers.ts";
import { DriverConnection } from "./driver-connection.ts";
import { readLogin } from "./login.ts";
import { SignedClient } from "./signed-client.ts";
import type { BmcGate } from "../gate/bmc-gate.ts";
import { limitedCall } from "../gate/limits/limited-call.ts";
import { compareHosts } from "../identity/host-identity.ts";
import type { HostIdentity } from "../identity/host-identity.ts";
import type { DriverAddress } from "../interface/address.ts";
import type { DeviceConfig } from "../interface/device-config.ts";
import type { BootOverride, DeviceDeps, PowerDriver, PowerReading } from "../interface/driver.ts";
import { BmcError, orderNotAllowed } from "../interface/errors.ts";
import type { BmcErrorCode } from "../interface/errors.ts";

/** How many calls to the hosts of one server run concurrently. */
const CALLS_AT_ONCE_MAX = 8;
/** Failures after which the server may have restarted. */
const MAY_BE_RESTART: ReadonlySet<BmcErrorCode> = new Set(["Unreachable", "Timeout"]);

/** Drives one host of a driver server (docs/reference/driver.md). */
export class HttpDriver implements PowerDriver {
  readonly address: string;
  readonly hasNoBootOverride = true;
  readonly #address: DriverAddress;
  readonly #connection: DriverConnection;
  readonly #client: SignedClient;
  readonly #clientUntilMs: number | undefined;
  readonly #callTimeoutMs: number;
  readonly #gate: BmcGate;
  readonly #deps: DeviceDeps;
  /** The identity that `identify` returned last. */
  #known: HostIdentity | undefined;

  /** @throws BmcError for settings that cannot be used. */
  constructor(address: DriverAddress, config: DeviceConfig, gate: BmcGate, deps: DeviceDeps) {
    const { connectTimeoutMs, callTimeoutMs } = config.timeouts;
    const { secureContexts } = gate;
    this.address = address.text;
    this.#address = address;
    const { origin } = address;
    const login = readLogin(origin, config);
    const { certificate, certificateUntilMs } = login;
    this.#clientUntilMs = certificateUntilMs;
    this.#connection = new DriverConnection({ origin, tls: config.tls, certificate, connectTimeoutMs, secureContexts });
    this.#client = new SignedClient(this.#connection, login, deps.clock);
    this.#callTimeoutMs = callTimeoutMs;
    this.#gate = gate;
    this.#deps = deps;
  }

  /** The earlier end of the server's certificate and the client certificate: a call needs both. */
  get certificateUntilMs(): number | undefined {
    const ends = [this.#connection.certificateUntilMs, this.#clientUntilMs].filter((end) => end !== undefined);
    return ends.length === 0 ? undefined : Math.min(...ends);
  }

  identify(signal: AbortSignal): Promise<HostIdentity> {
    return this.#call("identify", signal, async (what, signal) => {
      const { identity } = await this.#readStatus(what, signal);
      this.#known = identity;
      return identity;
    });
  }

  readPower(signal: AbortSignal): Promise<PowerReading> {
    return this.#call("read of the power state", signal, async (what, signal) => {
      const { reading, identity } = await this.#readStatus(what, signal);
      if (!this.#isKnown(identity, reading.state === "Off")) return { state: "Unknown", raw: OTHER_HOST };
      const { possibleRestarts } = this.#gate.memory;
      if (reading.state === "On") possibleRestarts.delete(this.#address.key);
      else if (reading.state === "Off" && possibleRestarts.has(this.#address.key)) {
        return { state: "Unknown", raw: "Off, but the server gave no answer before, and may have restarted" };
      }
      return reading;
    });
  }

  forceOff(signal: AbortSignal): Promise<void> {
    return this.#call("order off", signal, (what, signal) => this.#order(what, "off", signal));
  }

  on(signal: AbortSignal): Promise<void> {
    return this.#call("order on", signal, (what, signal) => this.#order(what, "on", signal));
  }

  setBootOverride(): Promise<void> {
    return Promise.reject(this.#noBootOverride());
  }

  readBootOverride(): Promise<BootOverride> {
    return Promise.reject(this.#noBootOverride());
  }

  async close(): Promise<void> {
    await this.#connection.destroy();
  }

  #noBootOverride(): BmcError {
    return new BmcError("Unsupported", `${this.address}: a driver server sets no boot override`);
  }

  async #readStatus(what: string, signal: AbortSignal): Promise<DriverStatus> {
    const request = this.#client.prepare("GET", `${this.#address.path}/status`);
    return parseStatus(what, this.address, await this.#client.send(request, signal));
  }

  /** Whether this is the host that `identify` found. True if `identify` was not called. */
  #isKnown(identity: HostIdentity, isOff: boolean): boolean {
    return this.#known === undefined || compareHosts(this.#known, identity, { isOff }) === "Same";
  }

  /**
   * Sends an order with the identity of its host. The server compares the identity again, so that no other host gets
   * the order even if the host was replaced since this read.
   */
  async #order(what: string, order: "off" | "on", signal: AbortSignal): Promise<void> {
    const { identity, reading } = await this.#readStatus(what, signal);
    if (!this.#isKnown(identity, reading.state === "Off")) {
      throw new BmcError("Refused", `${what}: not sent: ${OTHER_HOST}`);
    }
    const { systemUUID, serialNumber } = identity;
    const body = JSON.stringify({ systemUUID, serialNumber });
    const request = this.#client.prepare("POST", `${this.#address.path}/${order}`, body);
    if (this.#deps.isOrderAllowed?.() === false) throw orderNotAllowed(what);
    requireTaken(what, await this.#client.send(request, signal));
  }

  async #call<T>(
    name: string,
    signal: AbortSignal,
    work: (what: string, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const what = `${this.address}: ${name}`;
    const { callLimits } = this.#gate;
    const { key, origin } = this.#address;
    const bounds = { clock: this.#deps.clock, callLimits, what, timeoutMs: this.#callTimeoutMs, key };
    try {
      return await limitedCall(
        { ...bounds, device: `driver ${origin}`, deviceCallsMax: CALLS_AT_ONCE_MAX },
        signal,
        (signal) => work(what, signal),
      );
    } catch (error) {
      if (error instanceof BmcError && MAY_BE_RESTART.has(error.code)) this.#gate.memory.possibleRestarts.add(key);
      throw error;
    }
  }
}

const OTHER_HOST = "the host that answers is not the one that was identified";
