/** The Reset action, with what the service says it allows; both lists may be missing. */
export interface ResetAction {
  target: string;
  allowedTypes: readonly string[] | undefined;
  actionInfo: string | undefined;
}

/** Of so many Systems the action is remembered; those read the longest ago are forgotten first. */
const SYSTEMS_MAX = 10_000;
/** What a BMC lists next to its action takes a few hundred characters. */
const LENGTH_MAX = 4_096;

/**
 * The Reset action that each System has shown last. Some show none while the host is off, and whoever powers that host on may have
 * opened its driver after it was powered off.
 */
export class ResetMemory {
  /** By the System's address: what powers one host of a BMC powers no other. */
  readonly #bySystem = new Map<string, ResetAction>();

  of(system: string): ResetAction | undefined {
    return this.#bySystem.get(system);
  }

  note(system: string, action: ResetAction): void {
    if (JSON.stringify(action).length > LENGTH_MAX) return;
    this.#bySystem.delete(system);
    this.#bySystem.set(system, action);
    const [oldest] = this.#bySystem.keys();
    if (this.#bySystem.size > SYSTEMS_MAX && oldest !== undefined) this.#bySystem.delete(oldest);
  }
}
