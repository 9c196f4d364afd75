import type { Machine } from "../../../api/cluster-api.ts";
import type { Change } from "../../../kube/watched.ts";
import type { MachineHealth } from "../decide/target.ts";

/** One target, and how it was when it was last judged. */
export interface Tracked {
  machine: Machine;
  health: MachineHealth;
}

export interface TrackerDeps {
  covers: (machine: Machine) => boolean;
  judge: (machine: Machine) => MachineHealth;
  /** Whether a healthy machine has all its conditions, so that there is nothing to write. */
  isSettled: (machine: Machine, health: MachineHealth) => boolean;
}

/**
 * The machines that one health check covers, and how each is: kept up to date machine by machine, so that a change costs the
 * same whether there are ten of them or thousands.
 */
export class MachineTracker {
  readonly #deps: TrackerDeps;
  readonly #targets = new Map<string, Tracked>();
  readonly #byNode = new Map<string, Set<string>>();
  /** Targets that are not healthy, or of which something is to be written. */
  readonly #notable = new Set<string>();
  #healthy = 0;
  #names: readonly string[] | undefined;

  constructor(deps: TrackerDeps, machines: Iterable<Machine>) {
    this.#deps = deps;
    for (const machine of machines) this.#take(machine);
  }

  /** How many targets are healthy. */
  get healthy(): number {
    return this.#healthy;
  }

  get size(): number {
    return this.#targets.size;
  }

  /** Names of all targets, sorted. */
  get names(): readonly string[] {
    this.#names ??= [...this.#targets.keys()].sort();
    return this.#names;
  }

  /** Names of targets that need a decision. */
  get notable(): ReadonlySet<string> {
    return this.#notable;
  }

  get(name: string): Tracked | undefined {
    return this.#targets.get(name);
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

  /** Judges all again: what they have in common has changed. */
  judgeAll(): void {
    // A copy: each is taken out and put back.
    for (const name of Array.from(this.#targets.keys())) this.#judgeAgain(name);
  }

  /** Judges those machines again whose time is over. */
  advance(nowMs: number): void {
    for (const name of Array.from(this.#notable)) {
      const { health } = this.#targets.get(name) ?? {};
      if (health?.state === "waiting" && health.untilMs <= nowMs) this.#judgeAgain(name);
    }
  }

  #judgeAgain(name: string): void {
    const tracked = this.#drop(name);
    if (tracked !== undefined) this.#take(tracked.machine);
  }

  #take(machine: Machine): Tracked | undefined {
    const { covers, judge, isSettled } = this.#deps;
    if (!covers(machine)) return undefined;
    const { name } = machine.metadata;
    const tracked: Tracked = { machine, health: judge(machine) };
    this.#targets.set(name, tracked);
    if (machine.nodeName !== undefined) {
      const names = this.#byNode.get(machine.nodeName) ?? new Set();
      this.#byNode.set(machine.nodeName, names.add(name));
    }
    if (tracked.health.state === "healthy") this.#healthy += 1;
    if (tracked.health.state !== "healthy" || !isSettled(machine, tracked.health)) this.#notable.add(name);
    return tracked;
  }

  #drop(name: string): Tracked | undefined {
    const tracked = this.#targets.get(name);
    if (tracked === undefined) return undefined;
    this.#targets.delete(name);
    this.#notable.delete(name);
    if (tracked.health.state === "healthy") this.#healthy -= 1;
    const { nodeName } = tracked.machine;
    const names = nodeName === undefined ? undefined : this.#byNode.get(nodeName);
    names?.delete(name);
    if (names?.size === 0 && nodeName !== undefined) this.#byNode.delete(nodeName);
    return tracked;
  }
}
