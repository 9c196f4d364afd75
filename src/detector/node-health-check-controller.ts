import { isDeepStrictEqual } from "node:util";
import type { Node } from "../api/core.ts";
import type { NodeHealthCheckStatus } from "../api/node-health-check.ts";
import { NODE_HEALTH_CHECKS } from "../api/node-health-check.ts";
import type { JsonPatchOperation } from "../kube/client.ts";
import { Controller } from "../kube/controller.ts";
import { isKubeError } from "../kube/errors.ts";
import { pointer } from "../kube/json-pointer.ts";
import type { KubeObject } from "../kube/resource.ts";
import type { KubeRuntime } from "../kube/runtime.ts";
import type { Change, Watched } from "../kube/watched.ts";
import type { ActionContext, ActionDeps, SingleAction } from "./actions.ts";
import { actionKey, takeAction } from "./actions.ts";
import type { AttemptBook } from "./attempts.ts";
import { judgeThreshold } from "./budget.ts";
import type { CheckState } from "./check-state.ts";
import { isStateOf, newCheckState } from "./check-state.ts";
import type { Action, Announcement, Decision, EventReason, Snapshot } from "./decision.ts";
import { KIND_RETRY_MS, kindKey } from "./dynamic-kinds.ts";
import type { HealthCheckObject } from "./health-check.ts";
import { trimHealthCheck } from "./health-check.ts";
import { HostPower } from "./host-power.ts";
import type { DetectorMetrics } from "./metrics.ts";
import { NodeLeases } from "./node-lease.ts";
import { differs } from "./node-tracker.ts";
import { decide, decideInvalid } from "./plan.ts";
import type { PlatformFacts } from "./platform.ts";
import { Platform } from "./platform.ts";
import type { Policy } from "./policy.ts";
import { remediationKind } from "./policy.ts";
import { recordAttempts } from "./record-attempts.ts";
import { RemediationStore } from "./remediation-store.ts";
import type { RemediationObject } from "./remediation.ts";
import { isOwnedBy, readRemediation } from "./remediation.ts";
import type { Peer } from "./snapshot.ts";
import { takeCensusNow, takeSnapshot } from "./snapshot.ts";
import { SteadyTimes, tellOffset } from "./steady-time.ts";
import { TemplateResolver } from "./template-resolver.ts";
import { WriteThrough } from "./write-through.ts";

/** Health checks worked on at a time. */
const CONCURRENCY = 4;
/** Requests of one pass under way at a time: many nodes may die at once. */
const ACTIONS_PARALLEL_MAX = 32;
/** A pass looks again at what its actions changed, at most so often: give up, then create, then record. */
const ROUNDS_MAX = 4;
/** A timer follows a clock that cannot jump, and expiry one that can: so nothing is waited for longer than this. */
const RECHECK_MAX_MS = 60_000;
/** Nothing starts on a view of the nodes that is older: a bookmark comes every minute even where nothing changes. */
const NODES_STALE_MS = 180_000;
/** Longest wait after a pass in which something failed. */
const BACKOFF_MAX_MS = 15_000;
/** How the notes of all medik8s events begin, by which people filter them. */
const NOTE_PREFIX = "[remediation]";
/** How soon a pass is run again whose status write met a newer version. */
const CONFLICT_RETRY_MS = 50;

export interface NodeHealthCheckDeps {
  runtime: KubeRuntime;
  nodes: Watched<Node>;
  checks: Watched<HealthCheckObject>;
  metrics: DetectorMetrics;
  leaseNamespace: string;
  /** The agent's own. */
  namespace: string;
}

/** Serves all NodeHealthChecks: gathers what bears on one, has `decide` decide, and does what it says. */
export class NodeHealthCheckController {
  readonly #deps: NodeHealthCheckDeps;
  readonly #controller: Controller;
  readonly #checks: WriteThrough<HealthCheckObject>;
  readonly #remediations: RemediationStore;
  readonly #templates: TemplateResolver;
  readonly #platform: Platform;
  readonly #hostPower: HostPower;
  readonly #actions: ActionDeps;
  readonly #states = new Map<string, CheckState>();
  readonly #times: SteadyTimes;
  /** Nodes for which a CR is being created, by the name of the health check: two passes must not both start. */
  readonly #starting = new Map<string, string>();

  /** @param signal ends everything that this controller starts. */
  constructor(deps: NodeHealthCheckDeps, signal: AbortSignal) {
    const { runtime, nodes, checks, metrics, leaseNamespace, namespace } = deps;
    this.#deps = deps;
    this.#controller = new Controller(runtime, {
      name: "node-health-check",
      concurrency: CONCURRENCY,
      maxBackoffMs: BACKOFF_MAX_MS,
      reconcile: (name, passSignal) => this.#reconcile(name, passSignal),
    });
    this.#checks = new WriteThrough(checks);
    this.#remediations = new RemediationStore(runtime, (change) => this.#onRemediation(change), signal);
    this.#templates = new TemplateResolver(runtime, this.#remediations, () => this.#enqueueAll(), signal);
    this.#platform = new Platform(runtime, () => this.#enqueueAll(), signal);
    this.#hostPower = new HostPower(runtime, namespace, (nodeName) => this.#onHostPower(nodeName), signal);
    this.#actions = {
      client: runtime.client,
      clock: runtime.clock,
      logger: runtime.logger,
      remediations: this.#remediations,
      leases: new NodeLeases(runtime, leaseNamespace),
      metrics,
      hostPower: this.#hostPower,
    };
    this.#times = new SteadyTimes(runtime.clock, runtime.clockOffset?.());
    checks.subscribe((change) => this.#onCheck(change));
    // The nodes that are there already: nobody saw when their conditions changed.
    let isNews = false;
    nodes.subscribe((change) => {
      if (isNews) this.#times.observe(change);
      this.#onNode(change);
    });
    isNews = true;
  }

  /** Resolves once `signal` has aborted and nothing runs any more. */
  async run(signal: AbortSignal): Promise<void> {
    try {
      await this.#controller.run(signal);
    } finally {
      this.#checks.close();
      const watchers = [this.#remediations, this.#templates, this.#platform, this.#hostPower];
      await Promise.all(watchers.map((watcher) => watcher.settled()));
    }
  }

  #onNode(change: Change<Node>): void {
    if (change.type === "updated" && !differs(change.previous, change.object)) return;
    const { name } = change.object.metadata;
    const nowMs = this.#deps.runtime.clock.nowMs();
    for (const [checkName, state] of this.#states) {
      if ("problem" in state.compiled) continue;
      if (state.holds.get(name)?.announce === false) state.holds.delete(name);
      const matters = state.compiled.tracker.observe(change, nowMs);
      if (matters || state.attention.has(name)) this.#controller.enqueue(checkName);
    }
  }

  #onCheck(change: Change<HealthCheckObject>): void {
    const { name, generation } = change.object.metadata;
    const isOwnStatus = change.type === "updated" && change.previous.metadata.generation === generation;
    if (isOwnStatus) this.#controller.enqueue(name);
    // Health checks watch each other: for overlap, and for one control plane node at a time.
    else this.#enqueueAll();
    if (change.type === "deleted") {
      this.#deps.metrics.forget(this.#checks.newest(change.object).status);
      this.#controller.enqueue(name);
    }
  }

  #onRemediation(change: Change<RemediationObject> | undefined): void {
    for (const state of this.#states.values()) forgetCensus(state, change);
    if (change === undefined) return this.#enqueueAll();
    // The end of one may be what another health check waits for.
    if (change.type === "deleted") return this.#enqueueAll();
    for (const [name, state] of this.#states) if (isOwnedBy(change.object, state.uid)) this.#controller.enqueue(name);
  }

  #onHostPower(nodeName: string | undefined): void {
    for (const [name, { compiled }] of this.#states) {
      if ("problem" in compiled || !compiled.policy.skipsDurationIfOff) continue;
      if (nodeName === undefined || compiled.tracker.isAiling(nodeName)) this.#controller.enqueue(name);
    }
  }

  #enqueueAll(): void {
    for (const check of this.#deps.checks.values()) this.#controller.enqueue(check.metadata.name);
  }

  async #reconcile(name: string, signal: AbortSignal): Promise<{ requeueAfterMs?: number } | void> {
    const { checks, runtime } = this.#deps;
    const shown = checks.get({ name });
    if (shown === undefined) return this.#forget(name);
    const check = this.#checks.newest(shown);
    const state = this.#stateOf(check);
    const { compiled } = state;
    if ("problem" in compiled) {
      const decision = decideInvalid(check.status, compiled.problem, runtime.clock.nowMs());
      return this.#conclude(check, state, decision, [], signal);
    }
    this.#retainKinds();
    const templates = await this.#templates.resolve(compiled.policy.steps, signal);
    const records = (check.status.unhealthyNodes ?? []).flatMap(({ remediations = [] }) => remediations);
    const pending = records.some(
      ({ resource }) => this.#remediations.state(resource.apiVersion ?? "", resource.kind ?? "").state === "pending",
    );
    // Not known is not the same as not there: until every kind in use can be seen, nothing is decided.
    const platform = this.#platform.read();
    if (templates === "pending" || platform === "pending" || pending) return { requeueAfterMs: KIND_RETRY_MS };
    await this.#remediations.checkUnseen(signal);

    const errors: unknown[] = [];
    const taken = new Set<string>();
    let current = check;
    const look = (): Decision =>
      decide(this.#snapshot(current, state, compiled, { templates, platform }), runtime.clock.nowMs());
    let decision = look();
    // What was found comes before what is done about it, for those who read the events in their order.
    state.told = new Set([...state.told, ...this.#announce(check, state, decision.standing)]);
    for (let round = 1; round <= ROUNDS_MAX; round += 1) {
      const fresh = decision.actions.filter((action) => !taken.has(actionKey(action)));
      if (fresh.length === 0) break;
      for (const action of fresh) taken.add(actionKey(action));
      errors.push(...(await this.#takeAll(current, state, compiled, fresh.filter(isSingle), signal)));
      signal.throwIfAborted();
      const attempts = new Map(
        fresh.flatMap((action) => (isSingle(action) ? [] : [[action.nodeName, action.attempts]])),
      );
      if (attempts.size > 0) {
        try {
          current = await this.#record(current, attempts, signal);
        } catch (error) {
          errors.push(error);
        }
        signal.throwIfAborted();
      }
      decision = look();
    }
    return this.#conclude(current, state, decision, errors, signal);
  }

  async #record(check: HealthCheckObject, attempts: AttemptBook, signal: AbortSignal): Promise<HealthCheckObject> {
    const { client, clock } = this.#deps.runtime;
    const written = await recordAttempts(client, check, attempts, clock.nowMs(), signal);
    if (written === undefined) return check;
    this.#checks.wrote(written, check.metadata.resourceVersion, clock.monotonicMs());
    return written;
  }

  #snapshot(
    check: HealthCheckObject,
    state: CheckState,
    compiled: Extract<CheckState["compiled"], { policy: Policy }>,
    found: { templates: Snapshot["templates"]; platform: PlatformFacts },
  ): Snapshot {
    const { nodes, runtime } = this.#deps;
    const silentMs = runtime.clock.monotonicMs() - nodes.lastContactMs;
    return takeSnapshot(
      {
        check,
        ...compiled,
        state,
        peers: this.#peersOf(check),
        nodes,
        remediations: [...this.#remediations.values()],
        starting: this.#starting,
        skewOf: (name) => this.#times.skewOf(name),
        clockSkew: tellOffset(runtime.clockOffset?.()),
        ...found,
        canSee: (record) => this.#remediations.canSee(record),
        standstill: silentMs > NODES_STALE_MS ? "the API server has not told of nodes for minutes" : undefined,
        hostPower: this.#hostPower,
      },
      runtime.clock.nowMs(),
    );
  }

  /** Takes the actions side by side. @returns what failed; one failure never keeps the others from being taken. */
  async #takeAll(
    check: HealthCheckObject,
    state: CheckState,
    compiled: Extract<CheckState["compiled"], { policy: Policy }>,
    actions: readonly SingleAction[],
    signal: AbortSignal,
  ): Promise<unknown[]> {
    const { logger } = this.#deps.runtime;
    const errors: unknown[] = [];
    const creations = actions.flatMap((action) => (action.type === "create" ? [action.node] : []));
    for (const node of creations) this.#starting.set(node.metadata.name, check.metadata.name);
    const platform = this.#platform.read();
    const context: ActionContext = {
      check,
      ...compiled,
      state,
      isOkd: platform !== "pending" && platform.isOkd,
      mayStart: () => this.#mayStart(check, state, compiled),
      sightOf: (nodeName) => this.#hostPower.sightOf(nodeName),
      tell: (type, reason, note, related) => this.#tell(check, { type, reason, note }, related),
    };
    state.census = undefined;
    const waiting = [...actions];
    const work = async (): Promise<void> => {
      for (let action = waiting.shift(); action !== undefined; action = waiting.shift()) {
        try {
          await takeAction(this.#actions, context, action, signal);
          // It counts from now on, which makes no difference as long as its node counted as unhealthy anyway.
          if (action.type === "create" && !compiled.tracker.isAiling(action.node.metadata.name))
            state.census = undefined;
        } catch (error) {
          errors.push(error);
          if (!signal.aborted) {
            logger.warn(
              { err: error, nodeHealthCheck: check.metadata.name, action: actionKey(action) },
              "an action failed",
            );
          }
        } finally {
          if (action.type === "create") this.#starting.delete(action.node.metadata.name);
        }
      }
    };
    await Promise.all(Array.from({ length: Math.min(ACTIONS_PARALLEL_MAX, actions.length) }, work));
    return errors;
  }

  /**
   * Whether a remediation that was decided on may still start: same spec, no upgrade or conflict, and the threshold holds as
   * things are now.
   */
  #mayStart(
    check: HealthCheckObject,
    state: CheckState,
    { policy, tracker }: Extract<CheckState["compiled"], { policy: Policy }>,
  ): boolean {
    const { checks, runtime, nodes } = this.#deps;
    const current = checks.get({ name: check.metadata.name });
    if (current === undefined || !isStateOf(state, current) || current.metadata.deletionTimestamp !== undefined)
      return false;
    const nowMs = runtime.clock.nowMs();
    // Asked for every creation, while nearly always nothing has changed but that there is one remediation more.
    if (state.census?.countsVersion !== tracker.countsVersion) {
      const platform = this.#platform.read();
      if (platform === "pending" || (platform.upgrading ?? platform.conflict ?? platform.unknown) !== undefined)
        return false;
      const census = takeCensusNow(check, tracker, nodes, [...this.#remediations.values()], nowMs);
      state.census = { census, countsVersion: tracker.countsVersion };
    }
    return judgeThreshold(policy.threshold, state.census.census).holds;
  }

  /** Stores the status, tells what there is to tell, and says when to look again. */
  async #conclude(
    check: HealthCheckObject,
    state: CheckState,
    decision: Decision,
    errors: readonly unknown[],
    signal: AbortSignal,
  ): Promise<{ requeueAfterMs?: number }> {
    const { runtime, metrics } = this.#deps;
    const nowMs = runtime.clock.nowMs();
    state.told = this.#announce(check, state, decision.standing);
    state.attention = new Set([
      ...decision.nodes.map(({ name }) => name),
      ...(decision.status.unhealthyNodes ?? []).map(({ name }) => name),
    ]);
    for (const [name, { untilMs }] of state.holds) if (untilMs <= nowMs) state.holds.delete(name);
    try {
      await this.#store(check, decision.status, signal);
    } catch (error) {
      if (!isKubeError(error, "Conflict")) throw error;
      return { requeueAfterMs: CONFLICT_RETRY_MS };
    }
    for (const announcement of decision.transitions) this.#tell(check, announcement, undefined);
    metrics.follow(check.status, decision.status, nowMs);
    if (errors.length > 0)
      throw new AggregateError(errors, `${errors.length} actions of ${check.metadata.name} failed`);
    const { nextCheckMs } = decision;
    if (nextCheckMs === undefined) return {};
    return { requeueAfterMs: Math.min(Math.max(1, Math.ceil(nextCheckMs - nowMs)), RECHECK_MAX_MS) };
  }

  async #store(check: HealthCheckObject, status: NodeHealthCheckStatus, signal: AbortSignal): Promise<void> {
    const operations = statusPatch(check.status, status);
    if (operations.length === 0) return;
    const { client, clock } = this.#deps.runtime;
    const { name, uid, resourceVersion } = check.metadata;
    const isNew = Object.keys(check.status).length === 0;
    const stored = await client.patch<KubeObject>(
      NODE_HEALTH_CHECKS,
      { name },
      { uid, resourceVersion },
      isNew ? [{ op: "add", path: "/status", value: status }] : operations,
      { subresource: "status" },
      signal,
    );
    this.#checks.wrote(trimHealthCheck(stored), resourceVersion, clock.monotonicMs());
  }

  /** Tells what stands and was not told yet. @returns the keys of all that stands. */
  #announce(check: HealthCheckObject, state: CheckState, standing: readonly Announcement[]): ReadonlySet<string> {
    for (const announcement of standing) {
      if (!state.told.has(announcement.key)) this.#tell(check, announcement, undefined);
    }
    return new Set(standing.map(({ key }) => key));
  }

  #tell(
    check: HealthCheckObject,
    told: { type: "Normal" | "Warning"; reason: EventReason; note: string },
    related: KubeObject | undefined,
  ): void {
    const { events } = this.#deps.runtime;
    const note = `${NOTE_PREFIX} ${told.note}`;
    events.record({
      regarding: check,
      action: "HealthCheck",
      ...told,
      note,
      ...(related !== undefined && { related }),
    });
  }

  #stateOf(check: HealthCheckObject): CheckState {
    const { name } = check.metadata;
    const known = this.#states.get(name);
    if (known !== undefined && isStateOf(known, check)) return known;
    const { nodes, runtime, metrics } = this.#deps;
    const state = newCheckState(check, nodes.values(), runtime.clock.nowMs(), this.#times);
    if (known?.uid === state.uid) {
      state.told = known.told;
      state.leaseRenewals = known.leaseRenewals;
    } else {
      metrics.follow({}, check.status, runtime.clock.nowMs());
    }
    this.#states.set(name, state);
    return state;
  }

  #forget(name: string): void {
    this.#states.delete(name);
    this.#retainKinds();
  }

  #peersOf(check: HealthCheckObject): Peer[] {
    const peers: Peer[] = [];
    for (const shown of this.#deps.checks.values()) {
      if (shown.metadata.uid === check.metadata.uid) continue;
      const peer = this.#checks.newest(shown);
      peers.push({ check: peer, state: this.#stateOf(peer) });
    }
    return peers;
  }

  /** Watches what templates and records name, and nothing else. */
  #retainKinds(): void {
    const templates = new Set<string>();
    const remediations = new Set<string>();
    for (const shown of this.#deps.checks.values()) {
      const { status, metadata } = this.#checks.newest(shown);
      for (const { remediations: records = [] } of status.unhealthyNodes ?? []) {
        for (const { resource } of records) remediations.add(kindKey(resource.apiVersion ?? "", resource.kind ?? ""));
      }
      const state = this.#states.get(metadata.name);
      if (state === undefined || "problem" in state.compiled) continue;
      for (const { template } of state.compiled.policy.steps) {
        templates.add(kindKey(template.apiVersion, template.kind));
        remediations.add(kindKey(template.apiVersion, remediationKind(template)));
      }
    }
    this.#templates.retain(templates);
    this.#remediations.retain(remediations);
  }
}

function isSingle(action: Action): action is SingleAction {
  return action.type !== "recordAttempts";
}

/** Drops the count of nodes unless the change leaves it as it is. */
function forgetCensus(state: CheckState, change: Change<RemediationObject> | undefined): void {
  if (state.census === undefined || "problem" in state.compiled) return;
  const { tracker } = state.compiled;
  const counts = (object: RemediationObject) => isOwnedBy(object, state.uid) && readRemediation(object).nodeName;
  const isSame =
    change !== undefined &&
    (change.type === "updated"
      ? counts(change.object) === counts(change.previous)
      : tracker.isAiling(readRemediation(change.object).nodeName));
  if (!isSame) state.census = undefined;
}

/** What turns one status into the other, field by field: fields that this version does not know stay. */
function statusPatch(before: NodeHealthCheckStatus, after: NodeHealthCheckStatus): JsonPatchOperation[] {
  if (before === after) return [];
  const fields = new Set([...Object.keys(before), ...Object.keys(after)]);
  const was = new Map<string, unknown>(Object.entries(before));
  const is = new Map<string, unknown>(Object.entries(after));
  return [...fields].flatMap((name): JsonPatchOperation[] => {
    const path = pointer("status", name);
    if (!is.has(name)) return [{ op: "remove", path }];
    return isDeepStrictEqual(was.get(name), is.get(name)) ? [] : [{ op: "add", path, value: is.get(name) }];
  });
}
