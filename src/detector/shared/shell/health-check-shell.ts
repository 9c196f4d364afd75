import type { ControllerDeps } from "../../../kube/reconcile/controller.ts";
import { Controller } from "../../../kube/reconcile/controller.ts";
import { isKubeError } from "../../../kube/errors.ts";
import type { KubeError, KubeErrorCode } from "../../../kube/errors.ts";
import type { KubeObject } from "../../../kube/resource.ts";
import { nameOf, parseKey } from "../../../kube/watched.ts";
import type { Logger } from "../../../telemetry/logger.ts";
import type { Announcement } from "../model/announcement.ts";
import type { HealthCheckDecision, RecordAttempts } from "../model/health-check-decision.ts";
import type { CheckState } from "../views/check-states.ts";
import type { HealthCheckStore } from "./health-check-store.ts";
import { runInParallel } from "./run-in-parallel.ts";

/** How many health checks are reconciled at the same time. */
const CONCURRENCY = 4;
/** How often one reconcile decides again after its actions, for example to record, then delete, then create. */
const ROUNDS_MAX = 4;
/**
 * The longest wait until the next reconcile. Timers run on the monotonic clock, but a wait may end by the wall clock,
 * which may be set. A watch may also lose an event.
 */
const RECHECK_MAX_MS = 60_000;
/** The longest wait after a reconcile in which something failed. */
const BACKOFF_MAX_MS = 15_000;
/** Another writer was faster, or the API server did not answer: the next try may succeed. */
const WORTH_ANOTHER_TRY: ReadonlySet<KubeErrorCode> = new Set([
  "Conflict",
  "NotFound",
  "Network",
  "Timeout",
  "Aborted",
  "TooManyRequests",
]);
/** How soon a reconcile is repeated if another writer changed the health check before its status was written. */
const CONFLICT_RETRY_MS = 50;
/**
 * How soon a reconcile is repeated if another writer changed the object of an action. Usually the watch shows the new
 * version earlier, which starts the reconcile.
 */
const ACTION_RETRY_MS = 500;
/**
 * After so many reconciles in a row that ended in conflicts, the next one counts as a failure, which has a backoff: an
 * admission webhook may refuse with the same status, and another client may write constantly.
 */
const CONFLICTS_MAX = 10;

/** When the controller reconciles a health check again; undefined if only a change causes that. */
export interface Requeue {
  requeueAfterMs?: number;
}

/**
 * A health check that was read, with the functions that the shell calls for it. `A` are its actions, `E` their events.
 */
export interface Reconcile<C extends KubeObject, A, E, D extends HealthCheckDecision<A>> {
  state: CheckState;
  /** Takes a snapshot of what is known now, and decides by it. */
  decide: (check: C) => D;
  /**
   * Ensures that a decision that starts a remediation does not depend on a late view. Called once, for the first
   * decision.
   *
   * @returns undefined if the view is up to date; otherwise the errors, and the shell decides again.
   */
  confirm?: (decision: D, signal: AbortSignal) => Promise<readonly unknown[] | undefined>;
  /** Is called before any of the actions run. */
  begin?: (check: C, actions: readonly A[]) => void;
  /** Runs one action, and yields an event for each of its results. */
  run: (check: C, action: A, signal: AbortSignal) => AsyncIterable<E>;
  /** Adds the result of an action to the state. @returns the Kubernetes Events to record for it. */
  observe: (event: E) => readonly Announcement[];
  /** Is called when an action has ended, whether it succeeded or not. */
  end: (action: A) => void;
  /** @throws KubeError, Conflict if the health check was replaced or changed. */
  storeStatus: (check: C, decision: D, nowMs: number, signal: AbortSignal) => Promise<void>;
}

/** For a health check whose spec is invalid, because its decision has no actions. */
export const NO_ACTIONS = {
  run: async function* (): AsyncGenerator<never, void> {},
  observe: (): [] => [],
  end: (): void => undefined,
};

/** What differs between families of health checks: those over Nodes, and those over Machines of a vendor. */
export interface HealthCheckFamily<C extends KubeObject, A, E, D extends HealthCheckDecision<A>> {
  /** Names the controller in logs. */
  name: string;
  /** The field of log lines that names the health check. */
  logField: string;
  /** How many actions of one reconcile run at the same time. Many nodes may fail at once. */
  actionsParallelMax: number;
  store: Pick<HealthCheckStore<C>, "get" | "values" | "recordAttempts" | "close">;
  /** Now, on the clock that decisions use. */
  nowMs: () => number;
  /** Reads what a decision needs. Returns a Requeue if that is not known yet or if nothing is to be decided. */
  read: (check: C, signal: AbortSignal) => Promise<Reconcile<C, A, E, D> | Requeue>;
  /** Is called when a health check was deleted. */
  forget: (name: string) => void;
  /** Identifies an action, so that a failed one does not run twice in one reconcile. */
  keyOf: (action: A | RecordAttempts) => string;
  /** Records a Kubernetes Event. */
  record: (check: C, announcement: Announcement) => void;
}

/**
 * Reconciles the health checks of one family: read, decide, run the actions, observe their events, decide again, store
 * the status. Two pure functions of the family determine what a result means: one decides, and one adds an event to the
 * observations.
 */
export class HealthCheckShell<C extends KubeObject, A extends { type: string }, E, D extends HealthCheckDecision<A>> {
  readonly #family: HealthCheckFamily<C, A, E, D>;
  readonly #logger: Logger;
  readonly #controller: Controller;
  /** Reconciles in a row that ended in conflicts, by the name of the health check. */
  readonly #conflicts = new Map<string, number>();

  constructor(runtime: ControllerDeps, family: HealthCheckFamily<C, A, E, D>) {
    this.#family = family;
    this.#logger = runtime.logger;
    this.#controller = new Controller(runtime, {
      name: family.name,
      concurrency: CONCURRENCY,
      maxBackoffMs: BACKOFF_MAX_MS,
      reconcile: (name, signal) => this.#reconcile(name, signal),
    });
  }

  /** @param name `namespace/name`, or the name of a health check without a namespace. */
  enqueue(name: string): void {
    this.#controller.enqueue(name);
  }

  enqueueAll(): void {
    for (const check of this.#family.store.values()) this.enqueue(nameOf(check));
  }

  /** Resolves once `signal` has aborted and no reconcile runs any more. */
  async run(signal: AbortSignal): Promise<void> {
    try {
      await this.#controller.run(signal);
    } finally {
      this.#family.store.close();
    }
  }

  async #reconcile(name: string, signal: AbortSignal): Promise<Requeue> {
    const { store, nowMs, keyOf } = this.#family;
    const check = store.get(parseKey(name));
    if (check === undefined) {
      this.#conflicts.delete(name);
      this.#family.forget(name);
      return {};
    }
    const work = await this.#family.read(check, signal);
    if (!("state" in work)) return work;
    const errors: unknown[] = [];
    const refusals: Announcement[] = [];
    const taken = new Set<string>();
    let current = check;
    let decision = work.decide(current);
    const failures = await work.confirm?.(decision, signal);
    if (failures !== undefined) {
      errors.push(...failures);
      decision = work.decide(current);
    }
    // Announcements are recorded before the actions run, so that Events are in the order of cause and effect.
    const { announced } = work.state;
    work.state.announced = new Set([...announced, ...this.#announce(check, work.state, decision)]);
    for (let round = 1; round <= ROUNDS_MAX; round += 1) {
      const actions = decision.actions.filter((action) => !taken.has(keyOf(action)));
      if (actions.length === 0) break;
      for (const action of actions) taken.add(keyOf(action));
      errors.push(...(await this.#runAll(work, current, actions.filter(isSingle), signal)));
      signal.throwIfAborted();
      const attempts = new Map(
        actions.flatMap((action) => (isSingle(action) ? [] : [[action.key, action.attempts] as const])),
      );
      if (attempts.size > 0) {
        try {
          current = await store.recordAttempts(current, attempts, nowMs(), signal);
        } catch (error) {
          errors.push(error);
          refusals.push(...refusalOf(error));
        }
        signal.throwIfAborted();
      }
      decision = work.decide(current);
    }
    return this.#conclude(work, current, { decision, errors, refusals }, signal);
  }

  /** Runs actions in parallel. @returns the errors. A failed action never prevents another one. */
  #runAll(
    work: Reconcile<C, A, E, D>,
    check: C,
    actions: readonly A[],
    signal: AbortSignal,
  ): Promise<readonly unknown[]> {
    const { actionsParallelMax, keyOf, logField, record } = this.#family;
    work.begin?.(check, actions);
    return runInParallel(actions, actionsParallelMax, async (action) => {
      try {
        for await (const event of work.run(check, action, signal)) {
          for (const announcement of work.observe(event)) record(check, announcement);
        }
      } catch (error) {
        const fields = { [logField]: nameOf(check), action: keyOf(action) };
        // Expected: another controller has changed the object, such as the remediation whose end is to be marked.
        if (isConflict(error)) this.#logger.debug({ ...fields, why: error.message }, "an action is to be repeated");
        else if (!signal.aborted) this.#logger.warn({ err: error, ...fields }, "an action failed");
        throw error;
      } finally {
        work.end(action);
      }
    });
  }

  /** Stores the status, and announces its transitions. @returns when to reconcile again. */
  async #conclude(
    work: Reconcile<C, A, E, D>,
    check: C,
    { decision, errors, refusals }: { decision: D; errors: readonly unknown[]; refusals: readonly Announcement[] },
    signal: AbortSignal,
  ): Promise<Requeue> {
    const nowMs = this.#family.nowMs();
    const standing = [...decision.standing, ...refusals];
    work.state.announced = this.#announce(check, work.state, { standing });
    work.state.observations.addToAll({ type: "timePassed", nowMs });
    const name = nameOf(check);
    try {
      await work.storeStatus(check, decision, nowMs, signal);
    } catch (error) {
      if (isConflict(error) && this.#countConflict(name) <= CONFLICTS_MAX) return { requeueAfterMs: CONFLICT_RETRY_MS };
      throw error;
    }
    for (const announcement of decision.transitions) this.#family.record(check, announcement);
    if (errors.length === 0 || !errors.every(isConflict)) this.#conflicts.delete(name);
    else if (this.#countConflict(name) <= CONFLICTS_MAX) return { requeueAfterMs: ACTION_RETRY_MS };
    if (errors.length > 0) throw new AggregateError(errors, `actions of ${name} that failed: ${errors.length}`);
    const { nextCheckMs } = decision;
    if (nextCheckMs === undefined) return {};
    return { requeueAfterMs: Math.min(Math.max(1, Math.ceil(nextCheckMs - nowMs)), RECHECK_MAX_MS) };
  }

  /** @returns how many reconciles in a row have ended in conflicts, including this one. */
  #countConflict(name: string): number {
    const conflicts = (this.#conflicts.get(name) ?? 0) + 1;
    this.#conflicts.set(name, conflicts);
    return conflicts;
  }

  /**
   * Records the standing announcements that were not recorded yet. The log has them as well, because the API server
   * keeps Events for an hour only. @returns the keys of all standing announcements.
   */
  #announce(
    check: C,
    { announced }: CheckState,
    { standing }: Pick<HealthCheckDecision<A>, "standing">,
  ): ReadonlySet<string> {
    for (const announcement of standing) {
      if (announced.has(announcement.key)) continue;
      this.#family.record(check, announcement);
      const { reason, note } = announcement;
      this.#logger.info({ [this.#family.logField]: nameOf(check), reason, note }, "announced by a health check");
    }
    return new Set(standing.map(({ key }) => key));
  }
}

/**
 * The Event for a health check that the API server refuses to change. A conflict with another writer gets no Event,
 * because the next reconcile reads the new version. The key has no error text, because the text may differ at each try.
 */
function refusalOf(error: unknown): Announcement[] {
  if (!isKubeError(error) || WORTH_ANOTHER_TRY.has(error.code)) return [];
  return [
    {
      key: "notWritten",
      type: "Warning",
      reason: "HealthCheckNotWritten",
      note: `The API server refuses changes of this health check, so remediations that have ended are not deleted, and their nodes still count as unhealthy: ${error.message}. If the error names the webhook of an operator that no longer runs, delete its webhook configuration`,
    },
  ];
}

function isConflict(error: unknown): error is KubeError {
  return isKubeError(error, "Conflict");
}

function isSingle<A extends { type: string }>(action: A | RecordAttempts): action is A {
  return action.type !== "recordAttempts";
}
