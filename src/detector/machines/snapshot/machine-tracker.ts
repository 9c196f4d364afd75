import type { Machine } from "../../../api/cluster-api/cluster-api.ts";
import type { Change } from "../../../kube/watched.ts";
import type { MachineHealth } from "../decide/observed-machine.ts";

/** One Machine, and its health at the last evaluation of it. */
export interface TrackedMachine {
  machine: Machine;
  health: MachineHealth;
}

export interface MachineTrackerDeps {
  covers: (machine: Machine) => boolean;
  judge: (machine: Machine) => MachineHealth;
  /** Whether a healthy machine has all its conditions, so that there is nothing to write. */
  isSettled: (machine: Machine, health: MachineHealth) => boolean;
}

/**
 * The Machines that one health check covers, and the health of each. It is updated Machine by Machine, so that a change
 * costs the same for ten Machines and for thousands.
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

  /** How many targets are healthy. */
  get healthy(): number {
    return this.#healthy;
  }

  get size(): number {
    return this.#machines.size;
  }

  /** Names of all targets, sorted. */
  get names(): readonly string[] {
    this.#names ??= [...this.#machines.keys()].sort();
    return this.#names;
  }

  /** Names of targets that need a decision. */
  get notable(): ReadonlySet<string> {
    return this.#notable;
  }

  get(name: string): TrackedMachine | undefined {
    return this.#machines.get(name);
  }

  /** @returns whether the health check's decision may differ for it. */
  observe({ type, object }: Change<Machine>): boolean {
    const { name } = object.metadata;
    const before = this.#drop(name);
    const after = type === "deleted" ? undefined : this.#take(object);
    if ((before === undefined) !== (after === undefined)) this.#names = undefined;
    return before !== undefined || after !== undefined;
  }

  /** Judges again the machines of a node. @returns whether there are any. */
  observeNode(nodeName: string): boolean {
    const names = [...(this.#byNode.get(nodeName) ?? [])];
    for (const name of names) this.#judgeAgain(name);
    return names.length > 0;
  }

  /** Judges all Machines again, because their Cluster has changed. */
  judgeAll(): void {
    // A copy: each is taken out and put back.
    for (const name of Array.from(this.#machines.keys())) this.#judgeAgain(name);
  }

  /** Judges the Machines again whose duration is over. */
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
