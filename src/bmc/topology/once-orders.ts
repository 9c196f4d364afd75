import type { PowerDriver, PowerReading } from "../interface/driver.ts";
import { BmcError } from "../interface/errors.ts";
import { sleep } from "../../runtime/clock.ts";
import type { Clock } from "../../runtime/clock.ts";
import { callAll } from "./level-calls.ts";
import type { LevelIdentities } from "./level-identities.ts";
import { readAll } from "./level-readings.ts";
import { isOutletLevel, supplyPower } from "./outlets.ts";
import { AC_CYCLE, NMI, sendOnce } from "./send-once.ts";
import type { Obstacle, OnceAnswer, OnceOrder, OnceSender } from "./send-once.ts";

/** The time between readings of outlets that were ordered off for an AC cycle. */
const OUTLET_POLL_MS = 1_000;

export interface OnceOrdersDeps {
  levels: readonly (readonly PowerDriver[])[];
  identities: LevelIdentities;
  /** Reads the power of the host. */
  readPower: (signal: AbortSignal) => Promise<PowerReading>;
  /** If it is absent, no outlet is used. */
  clock: Clock | undefined;
}

/** Orders to one host that must not be repeated: an NMI and an AC cycle. */
export class OnceOrders {
  readonly #levels: readonly (readonly PowerDriver[])[];
  readonly #identities: LevelIdentities;
  readonly #readPower: (signal: AbortSignal) => Promise<PowerReading>;
  readonly #clock: Clock | undefined;

  constructor({ levels, identities, readPower, clock }: OnceOrdersDeps) {
    this.#levels = levels;
    this.#identities = identities;
    this.#readPower = readPower;
    this.#clock = clock;
  }

  /**
   * Sends an NMI by one device of an accepted host, once, and only if the host reads On.
   *
   * @throws BmcError Aborted
   */
  sendNmi(signal: AbortSignal, obstacle: Obstacle): Promise<OnceAnswer> {
    return sendOnce(NMI, this.#sendersOf(NMI, this.#levels.flat()), obstacle, signal);
  }

  /**
   * Cuts the mains power of an accepted host by one device, once, and only if the host reads Off. A device that shares
   * its level with others is only one of several power supplies, so it is not used. If no device can, the outlets are
   * switched off.
   *
   * @throws BmcError Aborted
   */
  async acCycle(signal: AbortSignal, obstacle: Obstacle): Promise<OnceAnswer> {
    const devices = this.#levels.filter(({ length }) => length === 1).flat();
    const answer = await sendOnce(AC_CYCLE, this.#sendersOf(AC_CYCLE, devices), obstacle, signal);
    const supply = this.#supply();
    if (answer.outcome !== "NotSent" || supply === undefined) return answer;
    const { outcome, message } = await sendOnce(AC_CYCLE, [supply], obstacle, signal);
    return { outcome, message, ...(outcome === "Sent" && { bySupply: true }) };
  }

  #sendersOf(order: OnceOrder, devices: readonly PowerDriver[]): OnceSender[] {
    return devices.flatMap((device) => {
      const send = order.by(device);
      const level = this.#levels.find((known) => known.includes(device)) ?? [];
      if (send === undefined) return [];
      const { address } = device;
      const readPower: OnceSender["readPower"] = (signal) => device.readPower(signal);
      return [{ address, send, readPower, requireVerified: (signal) => this.#verifyAgain(level, signal) }];
    });
  }

  /** The sender that uses all outlets of the host together. */
  #supply(): OnceSender | undefined {
    const level = this.#levels.find(isOutletLevel);
    const clock = this.#clock;
    if (level === undefined || clock === undefined) return undefined;
    return {
      address: level.map(({ address }) => address).join(", "),
      readPower: async (signal) => {
        const reading = await this.#readPower(signal);
        if (reading.bySupply === true) throw new BmcError("Refused", "its outlets are off already");
        return reading;
      },
      requireVerified: (signal) => this.#verifyAgain(level, signal),
      send: (signal) => cutSupply(level, clock, signal),
    };
  }

  async #verifyAgain(level: readonly PowerDriver[], signal: AbortSignal): Promise<void> {
    this.#identities.forget(level);
    await this.#identities.requireVerified(level, signal);
  }
}

/** Switches off all outlets of a host, and reads them until all are off. */
async function cutSupply(level: readonly PowerDriver[], clock: Clock, signal: AbortSignal): Promise<void> {
  const { failure } = await callAll(level, (driver) => driver.forceOff(signal), signal);
  if (failure !== undefined) throw failure;
  for (;;) {
    const { values } = await readAll(level, signal);
    if (supplyPower(values, level.length).state === "Off") return;
    await sleep(clock, OUTLET_POLL_MS, signal);
  }
}
