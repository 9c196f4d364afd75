import {
  COLD_RESET,
  DIAGNOSTIC_INTERRUPT,
  GET_BOOT_FLAGS,
  GET_CHASSIS_STATUS,
  GET_SYSTEM_RESTART_CAUSE,
  KEEP_BOOT_FLAGS,
  parseBootFlags,
  parseChassisStatus,
  parseStartedByMains,
  POWER_OFF,
  POWER_ON,
  setBootFlags,
} from "./commands/chassis.ts";
import type { BootMode } from "../interface/device-config.ts";
import type { Client } from "./session/client.ts";
import { COMPLETION, completionFailure } from "./packets/codes.ts";
import { readFruIdentity } from "./commands/fru-identity.ts";
import { readSel } from "./commands/read-sel.ts";
import { GET_SYSTEM_GUID, parseSystemGuid } from "./commands/guid.ts";
import type { Request, Response } from "./packets/message.ts";
import type { IpmiSession } from "./session/session.ts";
import type { BmcEvidence } from "../evidence/model.ts";
import { EVIDENCE_COMMANDS_MAX, ReadingBudget } from "../gate/limits/reading-budget.ts";
import type { Precedence } from "../gate/limits/precedence.ts";
import type { IpmiAddress } from "../interface/address.ts";
import { compareHosts } from "../identity/host-identity.ts";
import type { BootOverride, PowerDriver, PowerLossSigns, PowerReading } from "../interface/driver.ts";
import type { HostIdentity } from "../identity/host-identity.ts";
import { BmcError } from "../interface/errors.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Secret } from "../../runtime/secret.ts";
import { DeadlineError, withDeadline } from "../../runtime/deadline.ts";

/** How long the login for the log may still take after the driver is closed. */
const SIDE_LOGIN_GRACE_MS = 500;

/** Drives the host of one BMC over IPMI 2.0. */
export class IpmiDriver implements PowerDriver {
  readonly address: string;
  readonly #client: Client;
  readonly #callTimeoutMs: number;
  readonly #clock: Clock;
  readonly #bootMode: BootMode;
  readonly #key: string;
  readonly #precedence: Precedence;
  readonly #openSide: () => Client;
  readonly #password: Secret;
  #side: Client | undefined;
  #closed = false;
  /** The identity that `identify` returned, and the session in which the BMC last confirmed it. */
  #known: { identity: HostIdentity; session: IpmiSession } | undefined;

  /** @param options `openSide` opens another client for the same BMC, whose failures do not affect the first one. */
  constructor(
    address: IpmiAddress,
    client: Client,
    options: {
      callTimeoutMs: number;
      clock: Clock;
      bootMode: BootMode;
      precedence: Precedence;
      openSide: () => Client;
      password: Secret;
    },
  ) {
    this.#key = address.key;
    this.#precedence = options.precedence;
    this.#openSide = options.openSide;
    this.#password = options.password;
    this.address = address.text;
    this.#client = client;
    this.#callTimeoutMs = options.callTimeoutMs;
    this.#clock = options.clock;
    this.#bootMode = options.bootMode;
  }

  identify(signal: AbortSignal): Promise<HostIdentity> {
    return this.#call("identify", signal, async (what, signal) => {
      this.#known = await this.#identify(what, signal);
      return this.#known.identity;
    });
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

  sendNmi(signal: AbortSignal): Promise<void> {
    return this.#call("NMI", signal, async (what, signal) => {
      accepted(what, await this.#change(what, DIAGNOSTIC_INTERRUPT, signal, { isSentOnce: true }));
    });
  }

  setBootOverride(override: BootOverride, signal: AbortSignal): Promise<void> {
    return this.#call("change of the boot override", signal, (what, signal) => this.#setBoot(what, override, signal));
  }

  readBootOverride(signal: AbortSignal): Promise<BootOverride> {
    return this.#call("read of the boot override", signal, async (what, signal) => {
      const answer = await this.#client.read(what, GET_BOOT_FLAGS, signal);
      return requireParsed(what, parseBootFlags(accepted(what, answer).data));
    });
  }

  /** Reads in a session of its own, because a session carries one command at a time. */
  async readEvidence(signal: AbortSignal): Promise<BmcEvidence> {
    if (this.#closed) throw new BmcError("Aborted", `${this.address}: closed`);
    const budget = new ReadingBudget(this.#clock, this.#precedence, this.#key, EVIDENCE_COMMANDS_MAX);
    const side = this.#openSide();
    this.#side = side;
    const what = `${this.address}: read of the log`;
    try {
      const ask = (request: Request, signal: AbortSignal): Promise<Response> => side.read(what, request, signal);
      return await readSel(ask, this.#password, budget, this.#clock, signal);
    } finally {
      await side.close(SIDE_LOGIN_GRACE_MS);
    }
  }

  resetBmc(signal: AbortSignal): Promise<void> {
    return this.#call("restart of the BMC", signal, async (what, signal) => {
      accepted(what, await this.#change(what, COLD_RESET, signal));
    });
  }

  readPowerLossSigns(signal: AbortSignal): Promise<PowerLossSigns> {
    return this.#call("read of the cause of the last start", signal, async (what, signal) => {
      const answer = await this.#client.read(what, GET_SYSTEM_RESTART_CAUSE, signal);
      ignorePermanentRefusal(what, answer);
      const isKnown = answer.completionCode === COMPLETION.ok && (await this.#sessionOfHost(what, false, signal));
      const isStartedByMains =
        isKnown === false || isKnown === undefined ? undefined : parseStartedByMains(answer.data);
      return isStartedByMains === undefined ? {} : { isStartedByMains };
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([this.#client.close(), this.#side?.close(SIDE_LOGIN_GRACE_MS)]);
  }

  async #call<T>(
    name: string,
    signal: AbortSignal,
    work: (what: string, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const what = `${this.address}: ${name}`;
    try {
      return await this.#precedence.first(this.#key, () =>
        withDeadline(this.#clock, what, this.#callTimeoutMs, signal, (signal) => work(what, signal)),
      );
    } catch (error) {
      if (error instanceof BmcError) throw error;
      if (signal.aborted) throw new BmcError("Aborted", `${what} was aborted`, { cause: error });
      if (error instanceof DeadlineError) throw new BmcError("Timeout", error.message, { cause: error });
      throw error;
    }
  }

  async #identify(what: string, signal: AbortSignal): Promise<{ identity: HostIdentity; session: IpmiSession }> {
    // If another session replaces this one in the meantime, the next order identifies the host again.
    const session = await this.#client.session(signal);
    const ask = async (request: Request): Promise<Response> => {
      const answer = await this.#client.read(what, request, signal);
      ignorePermanentRefusal(what, answer);
      return answer;
    };
    const guid = await ask(GET_SYSTEM_GUID);
    const systemUUID = guid.completionCode === COMPLETION.ok ? parseSystemGuid(guid.data) : undefined;
    const fru = await readFruIdentity(ask);
    return { identity: { ...fru, ...(systemUUID !== undefined && { systemUUID }), device: this.address }, session };
  }

  /**
   * The session for an order, or for a reading that may be a proof. At a new login, which the caller does not see, the
   * name may lead to another BMC, so the host is identified again in each session.
   *
   * @param isOff Whether the host is known to be off. A part of its identity may then be missing.
   * @returns undefined if another host answers than the one that `identify` reported.
   */
  async #sessionOfHost(what: string, isOff: boolean, signal: AbortSignal): Promise<IpmiSession | undefined> {
    const session = await this.#client.session(signal);
    if (this.#known === undefined || this.#known.session === session) return session;
    const found = await this.#identify(what, signal);
    if (compareHosts(this.#known.identity, found.identity, { isOff }) !== "Same") return undefined;
    // Keep values that the host does not report while it is off.
    this.#known = { identity: { ...found.identity, ...this.#known.identity }, session: found.session };
    return found.session;
  }

  async #readPower(what: string, signal: AbortSignal): Promise<PowerReading> {
    const answer = await this.#client.read(what, GET_CHASSIS_STATUS, signal);
    const reading = requireParsed(what, parseChassisStatus(accepted(what, answer).data));
    if ((await this.#sessionOfHost(what, reading.state === "Off", signal)) === undefined)
      return { state: "Unknown", raw: OTHER_HOST };
    if (reading.state === "On") this.#client.noteHostOn();
    else if (this.#client.mayHaveRestarted) {
      return { state: "Unknown", raw: `${reading.raw}, but the BMC gave no answer before, and may have restarted` };
    }
    return reading;
  }

  async #order(what: string, wanted: "Off" | "On", signal: AbortSignal): Promise<void> {
    const answer = await this.#change(what, wanted === "Off" ? POWER_OFF : POWER_ON, signal);
    if (answer.completionCode === COMPLETION.ok) return;
    const failure = completionFailure(what, answer.completionCode);
    // Some BMCs refuse an order for the present state of the host. The power state shows whether that is the reason.
    const isRefused = failure.code === "Refused" || failure.code === "Unsupported";
    if (isRefused && (await this.#readPower(what, signal)).state === wanted) return;
    throw failure;
  }

  async #setBoot(what: string, override: BootOverride, signal: AbortSignal): Promise<void> {
    // Not all BMCs support this. On the others the power order must follow within a minute, and it does.
    if (override === "NetworkOnce") await this.#change(what, KEEP_BOOT_FLAGS, signal);
    accepted(what, await this.#change(what, setBootFlags(override, this.#bootMode), signal));
  }

  /** Sends a command that changes something. @throws BmcError Refused, and nothing is sent, if another host answers. */
  async #change(
    what: string,
    request: Request,
    signal: AbortSignal,
    options?: { isSentOnce: boolean },
  ): Promise<Response> {
    const session = await this.#sessionOfHost(what, request === POWER_ON, signal);
    if (session === undefined) throw new BmcError("Refused", `${what}: not sent: ${OTHER_HOST}`);
    return this.#client.order(what, request, session, signal, options);
  }
}

const OTHER_HOST = "since the last login the host that answers is not the one that was identified";

/** @throws BmcError if the command was not carried out. */
function accepted(what: string, answer: Response): Response {
  if (answer.completionCode !== COMPLETION.ok) throw completionFailure(what, answer.completionCode);
  return answer;
}

/**
 * @throws BmcError for a temporary refusal. Data that a BMC does not have, or that the account may not read, counts as
 * missing.
 */
function ignorePermanentRefusal(what: string, answer: Response): void {
  if (answer.completionCode === COMPLETION.ok) return;
  const failure = completionFailure(what, answer.completionCode);
  if (failure.code === "Busy" || failure.code === "Timeout") throw failure;
}

function requireParsed<T>(what: string, parsed: T | undefined): T {
  if (parsed === undefined) throw new BmcError("BadResponse", `${what}: the answer cannot be parsed`);
  return parsed;
}
