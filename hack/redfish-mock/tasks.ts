import type { Clock } from "../../src/runtime/clock.ts";

/** One power order that was answered with 202. */
export interface Task {
  id: string;
  startedAtMs: number;
  /** Undefined while it runs. */
  endedAtMs: number | undefined;
  retryAfterSeconds: number;
}

/** The service keeps at most this many tasks, and drops the oldest. */
const TASKS_MAX = 64;

/** The tasks of one service. A task ends when a reader finds that its goal is reached. */
export class TaskTable {
  readonly #clock: Clock;
  readonly #tasks = new Map<string, Task & { isDone: () => boolean }>();
  #lastId = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  start(retryAfterSeconds: number, isDone: () => boolean): Task {
    this.#lastId += 1;
    const id = String(this.#lastId);
    const task = { id, startedAtMs: this.#clock.nowMs(), endedAtMs: undefined, retryAfterSeconds, isDone };
    this.#tasks.set(id, task);
    const [oldest] = this.#tasks.keys();
    if (this.#tasks.size > TASKS_MAX && oldest !== undefined) this.#tasks.delete(oldest);
    return task;
  }

  get(id: string): Task | undefined {
    const task = this.#tasks.get(id);
    if (task !== undefined && task.endedAtMs === undefined && task.isDone()) task.endedAtMs = this.#clock.nowMs();
    return task;
  }

  ids(): string[] {
    return [...this.#tasks.keys()];
  }
}
