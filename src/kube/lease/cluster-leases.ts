import { runLeaderElection } from "./leader-election.ts";
import { Elector } from "./elector.ts";
import type { LeaderElectionOptions } from "./leader-election.ts";
import type { Lead, LeaderElectionDeps, LeaseState } from "./elector.ts";
import type { Moment } from "./lease-term.ts";

export interface ClusterLeasesOptions {
  /** The same namespace for every installation in the cluster. */
  namespace: string;
  names: readonly string[];
  /** The installation, as the namespace and name of its own lease. */
  installation: string;
  /** Called when `states` changes, until `lead` begins. */
  onChange: () => void;
}

/** One of the leases, by `namespace/name`. */
export interface ClusterLeaseState {
  lease: string;
  state: LeaseState;
}

/**
 * Leases with the same namespace and names for all installations in a cluster. An installation's own lease ensures that
 * only one of its agents leads. These leases ensure that only one installation in the cluster works.
 *
 * The agent that holds its installation's own lease takes either all of these leases or none. Otherwise an installation
 * that waits for one lease could block another installation with the rest. Each has its own term, by the same rules and
 * clocks as the own lease. If the agent loses one, it stops leading.
 */
export class ClusterLeases {
  readonly #deps: LeaderElectionDeps;
  readonly #onChange: () => void;
  readonly #electors: readonly { lease: string; elector: Elector }[];
  #lastStates = "";
  #isWorking = false;

  constructor(deps: LeaderElectionDeps, { namespace, names, installation, onChange }: ClusterLeasesOptions) {
    this.#deps = deps;
    this.#onChange = onChange;
    this.#electors = names.map((name) => {
      const options = { namespace, name, identity: installation, ofInstallation: true };
      return { lease: `${namespace}/${name}`, elector: new Elector(deps, options) };
    });
  }

  get states(): ClusterLeaseState[] {
    return this.#electors.map(({ lease, elector }) => ({ lease, state: elector.state }));
  }

  /** The leases that keep the installation from working; empty while this agent leads. */
  get blocking(): ClusterLeaseState[] {
    return this.#isWorking ? [] : this.states.filter(({ state }) => state.is === "taken" || state.is === "failing");
  }

  /**
   * As `runLeaderElection`, but `lead` runs only while the agent holds its own lease and its installation holds all of
   * these.
   */
  async run(election: LeaderElectionOptions, signal: AbortSignal): Promise<void> {
    const ownIsHeld = new AbortController();
    const followed = this.#follow(AbortSignal.any([signal, ownIsHeld.signal]));
    const lead: Lead = async (leading, isHeld) => {
      ownIsHeld.abort();
      await followed;
      const heldFrom = await this.#takeAll(leading);
      if (heldFrom === undefined) return;
      const leadUnderBoth: Lead = (inner, areHeld) => election.lead(inner, () => isHeld() && areHeld());
      this.#isWorking = true;
      await this.#leadUnder(heldFrom, 0, leadUnderBoth, leading);
    };
    try {
      await runLeaderElection(this.#deps, { ...election, lead }, signal);
    } finally {
      ownIsHeld.abort();
      await followed;
    }
  }

  /**
   * Reads the leases until the agent holds its own lease or could take all of them. An agent that takes over then
   * already knows for how long a lease was missing, refused or not renewed.
   */
  async #follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#readLeases(signal);
      if (this.#mayTakeAll) return;
      await this.#pause(signal);
    }
  }

  async #takeAll(signal: AbortSignal): Promise<Moment[] | undefined> {
    while (!signal.aborted) {
      await this.#readLeases(signal);
      if (this.#mayTakeAll) {
        const taken = await Promise.all(this.#electors.map(({ elector }) => elector.take(signal)));
        const heldFrom = taken.filter((moment) => moment !== undefined);
        // Leases of an incomplete set expire.
        if (heldFrom.length === this.#electors.length) return heldFrom;
      }
      await this.#pause(signal);
    }
    return undefined;
  }

  async #readLeases(signal: AbortSignal): Promise<void> {
    await Promise.all(this.#electors.map(({ elector }) => elector.readLease(signal)));
    const states = JSON.stringify(this.states);
    if (states === this.#lastStates) return;
    this.#lastStates = states;
    this.#onChange();
  }

  async #pause(signal: AbortSignal): Promise<void> {
    await this.#electors[0]?.elector.pauseBetweenTries(signal);
  }

  get #mayTakeAll(): boolean {
    return this.#electors.every(({ elector }) => elector.mayTake);
  }

  async #leadUnder(heldFrom: readonly Moment[], index: number, lead: Lead, signal: AbortSignal): Promise<void> {
    const [elector, from] = [this.#electors[index]?.elector, heldFrom[index]];
    if (elector === undefined || from === undefined) return lead(signal, () => true);
    const leadUnderThis: Lead = (leading, isHeld) =>
      this.#leadUnder(heldFrom, index + 1, (inner, areHeld) => lead(inner, () => isHeld() && areHeld()), leading);
    await elector.lead(from, leadUnderThis, signal);
  }
}
