/** The Reset action of a System, with the reset types that the service allows. Either list may be missing. */
export interface ResetAction {
  target: string;
  allowedTypes: readonly string[] | undefined;
  actionInfo: string | undefined;
}

/** How many Systems are remembered. The one that was set the longest ago is dropped first. */
const SYSTEMS_MAX = 10_000;
/** Longer actions are not kept. A usual one has a few hundred characters. */
const LENGTH_MAX = 4_096;

/**
 * The last Reset action that each System showed. Some Systems show none while their host is off, and the driver that
 * powers the host on may have been opened after the power-off.
 */
export class ResetActions {
  /** The key is the address of the System: the action of one host must not power another host of the same BMC. */
  readonly #bySystem = new Map<string, ResetAction>();

  get(system: string): ResetAction | undefined {
    return this.#bySystem.get(system);
  }

  set(system: string, action: ResetAction): void {
    if (JSON.stringify(action).length > LENGTH_MAX) return;
    this.#bySystem.delete(system);
    this.#bySystem.set(system, action);
    const [oldest] = this.#bySystem.keys();
    if (this.#bySystem.size > SYSTEMS_MAX && oldest !== undefined) this.#bySystem.delete(oldest);
  }
}
