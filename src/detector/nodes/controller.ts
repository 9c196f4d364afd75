import type { Node } from "../../api/core.ts";
import { Controller } from "../../kube/controller.ts";
import { isKubeError } from "../../kube/errors.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import type { Change, Watched } from "../../kube/watched.ts";
import { ActionRunner } from "./effects/action-runner.ts";
import type { SingleAction } from "./effects/actions.ts";
import { actionKey } from "./effects/actions.ts";
import { Announcer } from "./effects/announcer.ts";
import type { CheckState, Compiled } from "./snapshot/check-state.ts";
import { CheckStates } from "./snapshot/check-states.ts";
import { HealthCheckStore } from "./effects/check-store.ts";
import type { Action, Decision, Snapshot, PlatformFacts } from "./decide/decision.ts";
import { KIND_RETRY_MS, kindKey } from "../shared/views/dynamic-kinds.ts";
import type { HealthCheckObject } from "./snapshot/health-check.ts";
import { HostPower } from "../shared/views/fencing-target-watch.ts";
import type { DetectorMetrics } from "./effects/metrics.ts";
import { NodeLeases } from "./effects/node-lease.ts";
import { differs } from "../shared/views/node-changes.ts";
import { decide, decideInvalid } from "./decide/decide.ts";
import { Platform } from "./snapshot/platform.ts";
import { remediationKind } from "../shared/model/template-reference.ts";
import { PresentNodes } from "../shared/views/current-nodes.ts";
import { RemediationStore } from "../shared/views/remediation-store.ts";
import type { RemediationObject } from "../shared/model/remediation.ts";
import { isOwnedBy } from "../shared/model/remediation.ts";
import { takeSnapshot } from "./snapshot/snapshot.ts";
import { tellOffset } from "../shared/model/clock-skew.ts";
import { SteadyTimes } from "../shared/views/condition-times.ts";
import { TemplateResolver } from "../shared/views/template-resolver.ts";
import { ViewFreshness } from "../shared/views/view-freshness.ts";

/** Health checks worked on at a time. */
const CONCURRENCY = 4;
/** A pass looks again at what its actions changed, at most so often: give up, then create, then record. */
const ROUNDS_MAX = 4;
/** A timer follows a clock that cannot jump, and expiry one that can: so nothing is waited for longer than this. */
const RECHECK_MAX_MS = 60_000;
/** Nothing starts on a view of the nodes that is older: a bookmark comes every minute even where nothing changes. */
const NODES_STALE_MS = 180_000;
/** Longest wait after a pass in which something failed. */
const BACKOFF_MAX_MS = 15_000;
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
  readonly #checks: HealthCheckStore;
  readonly #states: CheckStates;
  readonly #remediations: RemediationStore;
  readonly #templates: TemplateResolver;
  readonly #platform: Platform;
  readonly #hostPower: HostPower;
  readonly #announcer: Announcer;
  readonly #actions: ActionRunner;
  readonly #times: SteadyTimes;
  readonly #freshness = new ViewFreshness();
  readonly #present: PresentNodes;

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
    this.#times = new SteadyTimes(runtime.clock, runtime.clockOffset?.());
    this.#present = new PresentNodes(runtime, this.#freshness);
    this.#checks = new HealthCheckStore(runtime, checks);
    this.#states = new CheckStates({
      checks: this.#checks,
      nodes,
      clock: runtime.clock,
      times: this.#times,
      onNew: (check) => metrics.follow({}, check.status, runtime.clock.nowMs()),
    });
    this.#remediations = new RemediationStore(runtime, (change) => this.#onRemediation(change), signal);
    this.#templates = new TemplateResolver(runtime, this.#remediations, () => this.#enqueueAll(), signal);
    this.#platform = new Platform(runtime, () => this.#enqueueAll(), signal);
    this.#hostPower = new HostPower(runtime, namespace, (nodeName) => this.#onHostPower(nodeName), signal);
    this.#announcer = new Announcer(runtime.events);
    this.#actions = new ActionRunner({
      client: runtime.client,
      clock: runtime.clock,
      logger: runtime.logger,
      checks: this.#checks,
      nodes,
      remediations: this.#remediations,
      leases: new NodeLeases(runtime, leaseNamespace),
      metrics,
      present: this.#present,
      platform: this.#platform,
      hostPower: this.#hostPower,
      announcer: this.#announcer,
    });
    checks.subscribe((change) => this.#onCheck(change));
    // The nodes that are there already: nobody saw when their conditions changed.
    let isNews = false;
    nodes.subscribe((change) => {
      if (isNews) this.#freshness.heard(runtime.clock.monotonicMs(), this.#times.observe(change));
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
    for (const [checkName, state] of this.#states.entries()) {
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
    this.#states.forgetCensus(change);
    if (change === undefined) return this.#enqueueAll();
    // The end of one may be what another health check waits for.
    if (change.type === "deleted") return this.#enqueueAll();
    for (const [name, state] of this.#states.entries())
      if (isOwnedBy(change.object, state.uid)) this.#controller.enqueue(name);
  }

  #onHostPower(nodeName: string | undefined): void {
    for (const [name, { compiled, attention }] of this.#states.entries()) {
      if ("problem" in compiled) continue;
      // What the last remediation of a node failed for may have been mended.
      const isAwaited = nodeName !== undefined && attention.has(nodeName);
      const isAsked =
        compiled.policy.skipsDurationIfOff && (nodeName === undefined || compiled.tracker.isAiling(nodeName));
      if (isAwaited || isAsked) this.#controller.enqueue(name);
    }
  }

  #enqueueAll(): void {
    for (const check of this.#deps.checks.values()) this.#controller.enqueue(check.metadata.name);
  }

  async #reconcile(name: string, signal: AbortSignal): Promise<{ requeueAfterMs?: number } | void> {
    const { clock } = this.#deps.runtime;
    const check = this.#checks.get(name);
    if (check === undefined) return this.#forget(name);
    const state = this.#states.of(check);
    const { compiled } = state;
    if ("problem" in compiled) {
      const decision = decideInvalid(check.status, compiled.problem, clock.nowMs(), check.metadata.generation);
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
    let unlisted: string | undefined;
    const look = (): Decision =>
      decide(this.#snapshot(current, state, compiled, { templates, platform, unlisted }), clock.nowMs());
    let decision = look();
    if (decision.actions.some(({ type }) => type === "create") && !this.#present.isKnown) {
      // The budget is judged by the nodes as they are, not as a watch that was held back shows them.
      try {
        await this.#present.confirm(signal);
      } catch (error) {
        signal.throwIfAborted();
        errors.push(error);
        unlisted = `the view of the nodes may be behind, and they cannot be listed: ${error instanceof Error ? error.message : String(error)}`;
      }
      decision = look();
    }
    // What was found comes before what is done about it, for those who read the events in their order.
    state.told = new Set([...state.told, ...this.#announcer.announce(check, state, decision.standing)]);
    for (let round = 1; round <= ROUNDS_MAX; round += 1) {
      const fresh = decision.actions.filter((action) => !taken.has(actionKey(action)));
      if (fresh.length === 0) break;
      for (const action of fresh) taken.add(actionKey(action));
      errors.push(...(await this.#actions.takeAll(current, state, compiled, fresh.filter(isSingle), signal)));
      signal.throwIfAborted();
      const attempts = new Map(
        fresh.flatMap((action) => (isSingle(action) ? [] : [[action.nodeName, action.attempts]])),
      );
      if (attempts.size > 0) {
        try {
          current = await this.#checks.recordAttempts(current, attempts, signal);
        } catch (error) {
          errors.push(error);
        }
        signal.throwIfAborted();
      }
      decision = look();
    }
    return this.#conclude(current, state, decision, errors, signal);
  }

  #snapshot(
    check: HealthCheckObject,
    state: CheckState,
    compiled: Compiled,
    found: { templates: Snapshot["templates"]; platform: PlatformFacts; unlisted: string | undefined },
  ): Snapshot {
    const { nodes, runtime } = this.#deps;
    const { unlisted, templates, platform } = found;
    const silentMs = runtime.clock.monotonicMs() - nodes.lastContactMs;
    return takeSnapshot(
      {
        check,
        ...compiled,
        state,
        peers: this.#states.peersOf(check),
        nodes,
        listed: this.#present.listed,
        remediations: [...this.#remediations.values()],
        starting: this.#actions.starting,
        skewOf: (name, matters) => this.#times.skewOf(name, matters),
        clockSkew: tellOffset(runtime.clockOffset?.()),
        templates,
        platform,
        canSee: (record) => this.#remediations.canSee(record),
        standstill: silentMs > NODES_STALE_MS ? "the API server has not told of nodes for minutes" : unlisted,
        hostPower: this.#hostPower,
      },
      runtime.clock.nowMs(),
    );
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
    state.told = this.#announcer.announce(check, state, decision.standing);
    state.attention = new Set([
      ...decision.nodes.map(({ name }) => name),
      ...(decision.status.unhealthyNodes ?? []).map(({ name }) => name),
    ]);
    for (const [name, { untilMs }] of state.holds) if (untilMs <= nowMs) state.holds.delete(name);
    try {
      await this.#checks.storeStatus(check, decision.status, signal);
    } catch (error) {
      if (!isKubeError(error, "Conflict")) throw error;
      return { requeueAfterMs: CONFLICT_RETRY_MS };
    }
    for (const announcement of decision.transitions) this.#announcer.tell(check, announcement);
    metrics.follow(check.status, decision.status, nowMs);
    if (errors.length > 0)
      throw new AggregateError(errors, `${errors.length} actions of ${check.metadata.name} failed`);
    const { nextCheckMs } = decision;
    if (nextCheckMs === undefined) return {};
    return { requeueAfterMs: Math.min(Math.max(1, Math.ceil(nextCheckMs - nowMs)), RECHECK_MAX_MS) };
  }

  #forget(name: string): void {
    this.#states.forget(name);
    this.#retainKinds();
  }

  /** Watches what templates and records name, and nothing else. */
  #retainKinds(): void {
    const templates = new Set<string>();
    const remediations = new Set<string>();
    for (const { status, metadata } of this.#checks.values()) {
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
