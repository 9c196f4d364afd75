import {
  GET_BOOT_FLAGS,
  GET_CHASSIS_STATUS,
  KEEP_BOOT_FLAGS,
  parseBootFlags,
  parseChassisStatus,
  POWER_OFF,
  POWER_ON,
  setBootFlags,
} from "./chassis.ts";
import type { BootMode } from "./chassis.ts";
import type { Client } from "./client.ts";
import { COMPLETION, completionFailure } from "./codes.ts";
import { readFruIdentity } from "./fru-identity.ts";
import { GET_SYSTEM_GUID, parseSystemGuid } from "./guid.ts";
import type { Request, Response } from "./message.ts";
import type { IpmiAddress } from "../address.ts";
import type { BootOverride, HostIdentity, PowerDriver, PowerReading } from "../driver.ts";
import { BmcError } from "../errors.ts";
import type { Clock } from "../../runtime/clock.ts";
import { DeadlineError, withDeadline } from "../../runtime/deadline.ts";

/** Drives the host of one BMC over IPMI 2.0. */
export class IpmiDriver implements PowerDriver {
  readonly address: string;
  readonly #client: Client;
  readonly #callTimeoutMs: number;
  readonly #clock: Clock;
  readonly #bootMode: BootMode;

  constructor(
    address: IpmiAddress,
    client: Client,
    options: { callTimeoutMs: number; clock: Clock; bootMode: BootMode },
  ) {
    this.address = address.text;
    this.#client = client;
    this.#callTimeoutMs = options.callTimeoutMs;
    this.#clock = options.clock;
    this.#bootMode = options.bootMode;
  }

  identify(signal: AbortSignal): Promise<HostIdentity> {
    return this.#call("identify", signal, (what, signal) => this.#identify(what, signal));
  }

  readPower(signal: AbortSignal): Promise<PowerReading> {
    return this.#call("read of the power state", signal, (what, signal) => this.#readPower(what, signal));
  }

  forceOff(signal: AbortSignal): Promise<void> {
    return this.#call("order off", signal, (what, signal) => this.#order(what, "Off", signal));
  }

  on(signal: AbortSignal): Promise<void> {
    return this.#call("order on", signal, (what, signal) => this.#order(what, "On", signal));
  }

  setBootOverride(override: BootOverride, signal: AbortSignal): Promise<void> {
    return this.#call("change of the boot override", signal, (what, signal) => this.#setBoot(what, override, signal));
  }

  readBootOverride(signal: AbortSignal): Promise<BootOverride> {
    return this.#call("read of the boot override", signal, async (what, signal) => {
      const answer = await this.#client.read(what, GET_BOOT_FLAGS, signal);
      return understood(what, parseBootFlags(accepted(what, answer).data));
    });
  }

  close(): Promise<void> {
    return this.#client.close();
  }

  async #call<T>(
    name: string,
    signal: AbortSignal,
    work: (what: string, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const what = `${this.address}: ${name}`;
    try {
      return await withDeadline(this.#clock, what, this.#callTimeoutMs, signal, (signal) => work(what, signal));
    } catch (error) {
      if (error instanceof BmcError) throw error;
      if (signal.aborted) throw new BmcError("Aborted", `${what} was aborted`, { cause: error });
      if (error instanceof DeadlineError) throw new BmcError("Timeout", error.message, { cause: error });
      throw error;
    }
  }

  async #identify(what: string, signal: AbortSignal): Promise<HostIdentity> {
    const ask = async (request: Request): Promise<Response> => {
      const answer = await this.#client.read(what, request, signal);
      passOver(what, answer);
      return answer;
    };
    const guid = await ask(GET_SYSTEM_GUID);
    const systemUUID = guid.completionCode === COMPLETION.ok ? parseSystemGuid(guid.data) : undefined;
    const fru = await readFruIdentity(ask);
    return { ...fru, ...(systemUUID !== undefined && { systemUUID }), device: this.address };
  }

  async #readPower(what: string, signal: AbortSignal): Promise<PowerReading> {
    const answer = await this.#client.read(what, GET_CHASSIS_STATUS, signal);
    const reading = understood(what, parseChassisStatus(accepted(what, answer).data));
    if (reading.state === "On") this.#client.noteOn();
    else if (this.#client.mayHaveRestarted) {
      return { state: "Unknown", raw: `${reading.raw}, but the BMC was silent, and may have restarted` };
    }
    return reading;
  }

  async #order(what: string, wanted: "Off" | "On", signal: AbortSignal): Promise<void> {
    const answer = await this.#client.order(what, wanted === "Off" ? POWER_OFF : POWER_ON, signal);
    if (answer.completionCode === COMPLETION.ok) return;
    const failure = completionFailure(what, answer.completionCode);
    // Some BMCs refuse an order for the state that the host is in already: the state tells.
    const heard = failure.code === "Refused" || failure.code === "Unsupported";
    if (heard && (await this.#readPower(what, signal)).state === wanted) return;
    throw failure;
  }

  async #setBoot(what: string, override: BootOverride, signal: AbortSignal): Promise<void> {
    // Not all BMCs have this; then the power order must follow within a minute, as it does.
    if (override === "NetworkOnce") await this.#client.order(what, KEEP_BOOT_FLAGS, signal);
    accepted(what, await this.#client.order(what, setBootFlags(override, this.#bootMode), signal));
  }
}

/** @throws BmcError where the command was not carried out. */
function accepted(what: string, answer: Response): Response {
  if (answer.completionCode !== COMPLETION.ok) throw completionFailure(what, answer.completionCode);
  return answer;
}

/** @throws BmcError for a refusal that may pass: what a BMC does not have, or not for us, counts as absent. */
function passOver(what: string, answer: Response): void {
  if (answer.completionCode === COMPLETION.ok) return;
  const failure = completionFailure(what, answer.completionCode);
  if (failure.code === "Busy" || failure.code === "Timeout") throw failure;
}

function understood<T>(what: string, parsed: T | undefined): T {
  if (parsed === undefined) throw new BmcError("BadResponse", `${what}: an answer that cannot be read`);
  return parsed;
}
