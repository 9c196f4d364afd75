import type { BootOverride, PowerDriver } from "../interface/driver.ts";
import { BmcError } from "../interface/errors.ts";
import { combineFailures } from "./level-calls.ts";
import type { LevelIdentities } from "./level-identities.ts";

/** The boot override of one host: that of its first device that supports one. */
export class HostBootOverride {
  readonly #levels: readonly (readonly PowerDriver[])[];
  readonly #identities: LevelIdentities;
  /** Whether no device supported the boot override when it was to be set, so that there is none to clear. */
  #isOverrideUnset = false;

  constructor(levels: readonly (readonly PowerDriver[])[], identities: LevelIdentities) {
    this.#levels = levels;
    this.#identities = identities;
  }

  /**
   * Sets or clears the boot override. It is set only on an accepted host. If no device has a boot override, there is
   * nothing to clear: an undo that waited for it would leave the host off.
   */
  async set(override: BootOverride, signal: AbortSignal): Promise<void> {
    if (override === "None" && this.#hasNoBootOverride) return;
    const set = this.#onFirstSupporting(async (level, driver) => {
      if (override === "None") await this.#identities.refuseWrongHost(level, signal);
      else await this.#identities.requireVerified(level, signal);
      await driver.setBootOverride(override, signal);
    });
    try {
      await set;
      this.#isOverrideUnset = false;
    } catch (error) {
      if (override === "None") return this.#requireUnset(error);
      this.#isOverrideUnset = isUnsupported(error);
      throw error;
    }
  }

  async read(signal: AbortSignal): Promise<BootOverride> {
    if (this.#hasNoBootOverride) return "None";
    try {
      return await this.#onFirstSupporting((_level, driver) => driver.readBootOverride(signal));
    } catch (error) {
      this.#requireUnset(error);
      return "None";
    }
  }

  /**
   * Ignores that no device supports a boot override if none supported it when it was to be set. Otherwise it may be
   * set, and the host would boot from the network: a BMC may leave the property out while it starts.
   */
  #requireUnset(error: unknown): void {
    if (!this.#isOverrideUnset || !isUnsupported(error)) throw error;
  }

  get #hasNoBootOverride(): boolean {
    return this.#levels.flat().every((driver) => driver.hasNoBootOverride === true);
  }

  async #onFirstSupporting<T>(work: (level: readonly PowerDriver[], driver: PowerDriver) => Promise<T>): Promise<T> {
    let unsupported: unknown;
    for (const level of this.#levels) {
      for (const driver of level) {
        try {
          return await work(level, driver);
        } catch (error) {
          if (!isUnsupported(error)) throw error;
          unsupported ??= error;
        }
      }
    }
    throw unsupported ?? combineFailures([]);
  }
}

function isUnsupported(error: unknown): boolean {
  return error instanceof BmcError && error.code === "Unsupported";
}
