import type { CipherSuiteId } from "./cipher-suite.ts";

/** Of so many BMCs the best suite is remembered; those asked the longest ago are forgotten first. */
const BMCS_MAX = 10_000;

/**
 * The cipher suite that each BMC has last logged in with. Refusals of a suite are not authenticated, so anybody on the network could
 * talk the agent down to a weaker one. A suite that has worked once ends the list from then on.
 */
export class ProvenSuites {
  readonly #byBmc = new Map<string, CipherSuiteId>();

  /** What may be tried of a list in its order, the best first; all of it where none of it has worked yet. */
  allowed(bmc: string, suites: readonly CipherSuiteId[]): readonly CipherSuiteId[] {
    const proven = this.#byBmc.get(bmc);
    const index = proven === undefined ? -1 : suites.indexOf(proven);
    return index === -1 ? suites : suites.slice(0, index + 1);
  }

  note(bmc: string, suite: CipherSuiteId): void {
    this.#byBmc.delete(bmc);
    this.#byBmc.set(bmc, suite);
    for (const oldest of this.#byBmc.keys()) {
      if (this.#byBmc.size <= BMCS_MAX) break;
      this.#byBmc.delete(oldest);
    }
  }
}
