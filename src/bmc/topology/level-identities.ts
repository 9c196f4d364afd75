import { callAll } from "./level-calls.ts";
import type { OutletAnswer } from "./outlets.ts";
import { isOutletLevel, outletAnswer } from "./outlets.ts";
import type { IdentityCheck, IdentityJudge } from "../identity/identity-check.ts";
import type { PowerDriver } from "../interface/driver.ts";
import { BmcError } from "../interface/errors.ts";

/** Decides whether the outlets of one level are those that were enrolled for the host. */
export type OutletJudge = (answers: readonly OutletAnswer[]) => IdentityCheck;

const NO_OUTLETS = "outlets of PDUs are used only through a FencingTarget for which they are enrolled";

/**
 * The identity checks of the levels of one host. A level is read on its first use, and its check is kept until
 * `forget`.
 */
export class LevelIdentities {
  #judge: IdentityJudge;
  readonly #judgeOutlets: OutletJudge | undefined;
  readonly #checks = new Map<readonly PowerDriver[], IdentityCheck>();

  constructor(judge: IdentityJudge, judgeOutlets: OutletJudge | undefined) {
    this.#judge = judge;
    this.#judgeOutlets = judgeOutlets;
  }

  /** Uses `judge` from now on. Each level is read again on its next use. */
  judgeBy(judge: IdentityJudge): void {
    this.#judge = judge;
    this.#checks.clear();
  }

  forgetAll(): void {
    this.#checks.clear();
  }

  forget(level: readonly PowerDriver[]): void {
    this.#checks.delete(level);
  }

  /** The check of a level; undefined if the level was not read yet. */
  known(level: readonly PowerDriver[]): IdentityCheck | undefined {
    return this.#checks.get(level);
  }

  async check(level: readonly PowerDriver[], signal: AbortSignal): Promise<IdentityCheck> {
    const known = this.#checks.get(level);
    if (known !== undefined) return known;
    if (isOutletLevel(level)) return this.#checkOutlets(level, signal);
    const { values, failure } = await callAll(level, (driver) => driver.identify(signal), signal);
    const check = this.#judge(values);
    const mismatch = !check.verified && check.reason === "Mismatch";
    // If another host is among those that answered, the level is refused, whatever the other devices would report.
    if (failure !== undefined && !mismatch) throw failure;
    this.#checks.set(level, check);
    return check;
  }

  /** An outlet has no identity of a host: only an enrolment shows which host it feeds. */
  async #checkOutlets(level: readonly PowerDriver[], signal: AbortSignal): Promise<IdentityCheck> {
    const { values, failure } = await callAll(level, (driver) => outletAnswer(driver, signal), signal);
    if (failure !== undefined) throw failure;
    const check = this.#judgeOutlets?.(values) ?? { verified: false, reason: "Unknown", message: NO_OUTLETS };
    this.#checks.set(level, check);
    return check;
  }

  /** @throws BmcError Unsupported if the level is not accepted. */
  async requireVerified(level: readonly PowerDriver[], signal: AbortSignal): Promise<void> {
    await this.refuseWrongHost(level, signal);
    const check = await this.check(level, signal);
    if (!check.verified) throw new BmcError("Unsupported", `no order is sent: ${check.message}`);
  }

  /** @throws WrongHostError if another host answers. */
  async refuseWrongHost(level: readonly PowerDriver[], signal: AbortSignal): Promise<void> {
    const check = await this.check(level, signal);
    if (!check.verified && check.reason === "Mismatch") throw new WrongHostError(check.message);
  }
}

/** The host that answers is not the expected one: nothing else is tried. */
export class WrongHostError extends BmcError {
  constructor(message: string) {
    super("SystemNotFound", `no order is sent: ${message}`);
  }
}
