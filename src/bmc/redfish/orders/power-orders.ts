import { findAcCycle } from "./ac-cycle.ts";
import { chooseResetType, readAllowedTypes, resetTarget } from "./allowed-types.ts";
import type { RefusalWatch } from "./refusal-watch.ts";
import { NMI_RESET_TYPE, POWER_BUTTON, RESET_TYPES } from "./reset-types.ts";
import type { Service } from "../session/service.ts";
import type { RedfishAnswer } from "../http/answer.ts";
import type { ChangeConditions, FencedSystem } from "../system/fenced-system.ts";
import type { BmcMemory } from "../../gate/memory/bmc-memory.ts";
import type { ResetAction } from "../../gate/memory/reset-actions.ts";
import type { RedfishAddress } from "../../interface/address.ts";
import { BmcError } from "../../interface/errors.ts";

/** A power order that is about to be sent. */
interface ResetOrder {
  target: string;
  type: string;
  /** If the order must not reach a host that is on: the login in which the host was read Off. */
  offAtLogin?: number;
}

/** Sends power orders to one System. */
export class PowerOrders {
  readonly #address: RedfishAddress;
  readonly #service: Service;
  readonly #system: FencedSystem;
  readonly #refusals: RefusalWatch;
  readonly #memory: BmcMemory;

  constructor(options: {
    address: RedfishAddress;
    service: Service;
    system: FencedSystem;
    refusals: RefusalWatch;
    memory: BmcMemory;
  }) {
    this.#address = options.address;
    this.#service = options.service;
    this.#system = options.system;
    this.#refusals = options.refusals;
    this.#memory = options.memory;
  }

  /** Orders the host off or on. An order for the present state is not an error. */
  async send(wanted: "Off" | "On", signal: AbortSignal): Promise<void> {
    const { key, text } = this.#address;
    const order = await this.#choose(wanted, signal);
    if (order === undefined) return;
    this.#system.forgetOff();
    // No If-Match: an action is not a write to the resource, and iDRAC 10 answers 412 to it.
    const call = { method: "POST", path: order.target, body: { ResetType: order.type } } as const;
    if (wanted === "On") this.#memory.orderedOn.add(key);
    // A host that reports no identity while it is off reports it again when it is on.
    const conditions = { mayBeUnknown: wanted === "On", offAtLogin: order.offAtLogin };
    const answer = await this.#post(call, conditions, signal);
    const refusal = await this.#refusals.refusalOf(`${text}: order ${order.type}`, answer, signal);
    if (refusal === undefined) return;
    // iLO answers 400 and iDRAC 409 to an order for the present state. The power state shows whether this is such a
    // refusal.
    const isRefused = refusal.code === "Refused" || refusal.code === "Unsupported";
    // Any other failure may come from a gateway, although the BMC has carried out the order.
    if (isRefused && wanted === "On") this.#memory.orderedOn.delete(key);
    if (isRefused && (await this.#system.readPower(signal)).state === wanted) return;
    throw refusal;
  }

  /** Sends an NMI, if the service lists it for this System now. @throws BmcError */
  async sendNmi(signal: AbortSignal): Promise<void> {
    const { text } = this.#address;
    const { reset } = await this.#system.read(signal);
    const allowed = reset && (await readAllowedTypes(this.#service, reset, signal));
    if (reset === undefined || allowed?.includes(NMI_RESET_TYPE) !== true) {
      throw new BmcError("Unsupported", `${text}: the BMC does not list the reset type ${NMI_RESET_TYPE}`);
    }
    const call = { method: "POST", path: this.#targetOf(reset), body: { ResetType: NMI_RESET_TYPE } } as const;
    const answer = await this.#post(call, { mayBeUnknown: false }, signal);
    const refusal = await this.#refusals.refusalOf(`${text}: order ${NMI_RESET_TYPE}`, answer, signal);
    if (refusal !== undefined) throw refusal;
  }

  /** Interrupts the mains power of a host that is off, if the service offers that. @throws BmcError */
  async acCycle(signal: AbortSignal): Promise<void> {
    const { text } = this.#address;
    const { state, raw } = await this.#system.readPower(signal);
    if (state !== "Off") throw new BmcError("Refused", `${text}: no AC cycle: the host is not off (${raw})`);
    const resource = await this.#system.readResource(signal);
    const action = await findAcCycle(this.#service, resource, signal);
    if (action === undefined) throw new BmcError("Unsupported", `${text}: the BMC offers no AC cycle of its host`);
    const call = { method: "POST", path: action.path, body: action.body } as const;
    const answer = await this.#post(call, { mayBeUnknown: false, offAtLogin: this.#service.logins }, signal);
    const refusal = await this.#refusals.refusalOf(`${text}: AC cycle`, answer, signal);
    if (refusal !== undefined) throw refusal;
  }

  async #post(
    call: { method: "POST"; path: string; body: Readonly<Record<string, string>> },
    conditions: ChangeConditions,
    signal: AbortSignal,
  ): Promise<RedfishAnswer> {
    const answer = await this.#system.change(call, conditions, signal);
    // Some BMCs require If-Match for an action as well. The action was not carried out (RFC 6585, section 3).
    if (answer.status !== 428) return answer;
    return this.#system.change({ ...call, headers: { "if-match": "*" } }, conditions, signal);
  }

  /**
   * The order to send; undefined if the host is already in the wanted state and the BMC does not allow the order in
   * that state.
   */
  async #choose(wanted: "Off" | "On", signal: AbortSignal): Promise<ResetOrder | undefined> {
    const { text } = this.#address;
    const known = this.#system.lastResetAction;
    const knownType = known && (await chooseResetType(this.#service, wanted, known, signal));
    if (known !== undefined && knownType !== undefined) return { target: this.#targetOf(known), type: knownType };
    // Some BMCs list only what they allow in the present state, so a list from before the last order is not used.
    const system = await this.#system.read(signal);
    const { power } = system;
    const reset = this.#system.resetActionOf(system);
    if (reset === undefined) throw new BmcError("Unsupported", `${text}: the System has no Reset action`);
    const type = await chooseResetType(this.#service, wanted, reset, signal);
    if (type !== undefined) return { target: this.#targetOf(reset), type };
    if (power.state === wanted) return undefined;
    const allowed = await readAllowedTypes(this.#service, reset, signal);
    if (wanted === "On" && allowed?.includes(POWER_BUTTON) === true) return this.#pushButton(reset, signal);
    // If the BMC shows no action in this state, the list is from another state and does not count either.
    if (system.reset === undefined) return { target: this.#targetOf(reset), type: RESET_TYPES[wanted][0] };
    const offered = allowed?.join(", ").slice(0, 200) ?? "";
    throw new BmcError("Unsupported", `${text}: the BMC offers no ${RESET_TYPES[wanted][0]}, only: ${offered}`);
  }

  /**
   * Orders a push of the power button, if the BMC allows no other way to power a host on. A push would power a running
   * host off. It is therefore sent only right after a fresh Off, and not while an earlier order to power on may still
   * take effect.
   *
   * @throws BmcError Busy while an earlier order may take effect, Refused if the host is not known to be off.
   */
  async #pushButton(reset: ResetAction, signal: AbortSignal): Promise<ResetOrder> {
    const { key, text } = this.#address;
    if (this.#memory.orderedOn.has(key)) {
      const why = "the host was ordered on a short time ago, and may be powering on";
      throw new BmcError("Busy", `${text}: the power button is not pushed yet: ${why}`);
    }
    const { state, raw } = await this.#system.readPower(signal);
    if (state !== "Off") {
      throw new BmcError("Refused", `${text}: the power button is not pushed: the host is not off (${raw})`);
    }
    return { target: this.#targetOf(reset), type: POWER_BUTTON, offAtLogin: this.#service.logins };
  }

  #targetOf(reset: ResetAction): string {
    return resetTarget(this.#service.origin, reset);
  }
}
