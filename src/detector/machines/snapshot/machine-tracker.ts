import type { Machine } from "../../../api/cluster-api/cluster-api.ts";
import { isLaterVersion } from "../../../kube/watch/resource-version.ts";
import type { Change } from "../../../kube/watched.ts";
import type { MachineHealth } from "../decide/observed-machine.ts";

/** A Machine, and its health when it was last judged. */
export interface TrackedMachine {
  machine: Machine;
  health: MachineHealth;
}

export interface MachineTrackerDeps {
  covers: (machine: Machine) => boolean;
  judge: (machine: Machine) => MachineHealth;
  /** Whether a healthy Machine already has all its conditions, so that nothing must be written. */
  isSettled: (machine: Machine, health: MachineHealth) => boolean;
}

/**
 * The Machines that one health check covers, and the health of each. Each change updates one Machine, so that it costs
 * the same with ten Machines and with thousands.
 */
export class MachineTracker {
  readonly #deps: MachineTrackerDeps;
  readonly #machines = new Map<string, TrackedMachine>();
  readonly #byNode = new Map<string, Set<string>>();
  /** Machines that are not healthy, or whose conditions must be written. */
  readonly #notable = new Set<string>();
  #healthy = 0;
  #names: readonly string[] | undefined;

  constructor(deps: MachineTrackerDeps, machines: Iterable<Machine>) {
    this.#deps = deps;
    for (const machine of machines) this.#take(machine);
  }

  /** How many Machines are healthy. */
  get healthy(): number {
    return this.#healthy;
  }

  get size(): number {
    return this.#machines.size;
  }

  /** The names of all Machines, sorted. */
  get names(): readonly string[] {
    this.#names ??= [...this.#machines.keys()].sort();
    return this.#names;
  }

  /** The names of the Machines that need a decision. */
  get notable(): ReadonlySet<string> {
    return this.#notable;
  }

  get(name: string): TrackedMachine | undefined {
    return this.#machines.get(name);
  }

  /** @returns whether the decision of the health check may change. */
  observe({ type, object }: Change<Machine>): boolean {
    const { name } = object.metadata;
    const before = this.#drop(name);
    const after = type === "deleted" ? undefined : this.#take(object);
    if ((before === undefined) !== (after === undefined)) this.#names = undefined;
    return before !== undefined || after !== undefined;
  }

  /**
   * Takes over a Machine as a write has answered it, unless the watch has already shown this version or a later one.
   * The Machine of the watch is then kept, so that each Machine is in memory once.
   */
  observeWritten(machine: Machine): void {
    const { name, uid, resourceVersion } = machine.metadata;
    const known = this.#machines.get(name)?.machine.metadata;
    if (known?.uid !== uid || !isLaterVersion(resourceVersion, known.resourceVersion)) return;
    this.observe({ type: "updated", object: machine, previous: machine });
  }

  /** Judges the Machines of a node again. @returns whether there are any. */
  observeNode(nodeName: string): boolean {
    const names = [...(this.#byNode.get(nodeName) ?? [])];
    for (const name of names) this.#judgeAgain(name);
    return names.length > 0;
  }

  /** Judges all Machines again, because their Cluster has changed. */
  judgeAll(): void {
    // A copy of the names, because the loop removes each Machine from the map and adds it again.
    for (const name of Array.from(this.#machines.keys())) this.#judgeAgain(name);
  }

  /** Judges again the Machines whose duration is over. */
  advance(nowMs: number): void {
    for (const name of Array.from(this.#notable)) {
      const { health } = this.#machines.get(name) ?? {};
      if (health?.state === "waiting" && health.untilMs <= nowMs) this.#judgeAgain(name);
    }
  }

  #judgeAgain(name: string): void {
    const tracked = this.#drop(name);
    if (tracked !== undefined) this.#take(tracked.machine);
  }

  #take(machine: Machine): TrackedMachine | undefined {
    const { covers, judge, isSettled } = this.#deps;
    if (!covers(machine)) return undefined;
    const { name } = machine.metadata;
    const tracked: TrackedMachine = { machine, health: judge(machine) };
    this.#machines.set(name, tracked);
    if (machine.nodeName !== undefined) {
      const names = this.#byNode.get(machine.nodeName) ?? new Set();
      this.#byNode.set(machine.nodeName, names.add(name));
    }
    if (tracked.health.state === "healthy") this.#healthy += 1;
    if (tracked.health.state !== "healthy" || !isSettled(machine, tracked.health)) this.#notable.add(name);
    return tracked;
  }

  #drop(name: string): TrackedMachine | undefined {
    const tracked = this.#machines.get(name);
    if (tracked === undefined) return undefined;
    this.#machines.delete(name);
    this.#notable.delete(name);
    if (tracked.health.state === "healthy") this.#healthy -= 1;
    const { nodeName } = tracked.machine;
    const names = nodeName === undefined ? undefined : this.#byNode.get(nodeName);
    names?.delete(name);
    if (names?.size === 0 && nodeName !== undefined) this.#byNode.delete(nodeName);
    return tracked;
  }
}
