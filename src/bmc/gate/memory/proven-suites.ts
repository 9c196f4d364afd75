import type { CipherSuiteId } from "../../interface/cipher-suites.ts";

/** How many BMCs are remembered. The one that was set the longest ago is dropped first. */
const BMCS_MAX = 10_000;

/**
 * The cipher suite of the last login at each BMC. Refusals of a suite are not authenticated, so an attacker on the
 * network could make the agent use a weaker one. After a suite has worked once, no weaker one is tried.
 */
export class ProvenSuites {
  readonly #byBmc = new Map<string, CipherSuiteId>();

  /** Returns the suites of a list, best first, that may be tried: all of them if none has worked yet. */
  allowed(bmc: string, suites: readonly CipherSuiteId[]): readonly CipherSuiteId[] {
    const proven = this.#byBmc.get(bmc);
    const index = proven === undefined ? -1 : suites.indexOf(proven);
    return index === -1 ? suites : suites.slice(0, index + 1);
  }

  set(bmc: string, suite: CipherSuiteId): void {
    this.#byBmc.delete(bmc);
    this.#byBmc.set(bmc, suite);
    for (const oldest of this.#byBmc.keys()) {
      if (this.#byBmc.size <= BMCS_MAX) break;
      this.#byBmc.delete(oldest);
    }
  }
}
