import type { Cluster, Machine } from "../../api/cluster-api.ts";
import type { MachineHealthCheck } from "../../api/machine-health-check.ts";
import type { WorkloadClusters } from "../../clusters/workload-clusters.ts";
import { Controller } from "../../kube/controller.ts";
import { isKubeError } from "../../kube/errors.ts";
import type { EventNote } from "../../kube/events.ts";
import type { KubeObject, ResourceType } from "../../kube/resource.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import type { Change, Watched } from "../../kube/watched.ts";
import { nameOf, parseKey } from "../../kube/watched.ts";
import { KIND_RETRY_MS, kindKey } from "../shared/views/dynamic-kinds.ts";
import { HostPower } from "../shared/views/fencing-target-watch.ts";
import { remediationKind } from "../shared/model/template-reference.ts";
import { RemediationStore } from "../shared/views/remediation-store.ts";
import type { RemediationObject } from "../shared/model/remediation.ts";
import { SteadyTimes } from "../shared/views/condition-times.ts";
import { TemplateResolver } from "../shared/views/template-resolver.ts";
import { MachineActionRunner } from "./effects/action-runner.ts";
import type { SingleMachineAction } from "./effects/actions.ts";
import { machineActionKey } from "./effects/actions.ts";
import type { Compiled, MachineCheckState } from "./snapshot/check-state.ts";
import { MachineCheckStates } from "./snapshot/check-states.ts";
import { MachineCheckStore } from "./effects/check-store.ts";
import { decide, decideUnusable, pausedCondition, showsPaused } from "./decide/decide.ts";
import type { MachineAction, MachineDecision, MachineSnapshot } from "./decide/decision.ts";
import type { MachineHealthCheckKind } from "./decide/kind.ts";
import type { MachineMetrics } from "./effects/metrics.ts";

/** Health checks worked on at a time. */
const CONCURRENCY = 4;
/** A pass looks again at what its actions changed, at most so often: remember, then act, then tell. */
const ROUNDS_MAX = 4;
/** What a watch may have lost is found again by then. */
const RECHECK_MAX_MS = 60_000;
/** Longest wait after a pass in which something failed. */
const BACKOFF_MAX_MS = 15_000;
/** How soon a pass is run again whose status write met a newer version. */
const CONFLICT_RETRY_MS = 50;

export interface MachineHealthCheckDeps {
  runtime: KubeRuntime;
  clusters: WorkloadClusters;
  kind: MachineHealthCheckKind;
  namespace: string;
  types: { checks: ResourceType; machines: ResourceType; clusters: ResourceType | undefined };
  checks: Watched<MachineHealthCheck>;
  machines: Watched<Machine>;
  /** Undefined where the kind knows none. */
  clusterObjects: Watched<Cluster> | undefined;
  metrics: MachineMetrics | undefined;
}

/** Serves all MachineHealthChecks of one kind: gathers what bears on one, has `decide` decide, and does what it says. */
export class MachineHealthCheckController {
  readonly #deps: MachineHealthCheckDeps;
  readonly #controller: Controller;
  readonly #store: MachineCheckStore;
  readonly #states: MachineCheckStates;
  readonly #remediations: RemediationStore;
  readonly #templates: TemplateResolver;
  readonly #actions: MachineActionRunner;
  readonly #hostPower: HostPower;
  /** Nodes, as HostPower knows them, whose hosts failed remediations wait for. */
  readonly #awaited = new Set<string>();

  /** @param signal ends everything that this controller starts. */
  constructor(deps: MachineHealthCheckDeps, signal: AbortSignal) {
    const { runtime, kind, types, checks, metrics, namespace } = deps;
    const { client, clock, logger } = runtime;
    this.#deps = deps;
    this.#controller = new Controller(runtime, {
      name: kind.name,
      concurrency: CONCURRENCY,
      maxBackoffMs: BACKOFF_MAX_MS,
      reconcile: (key, passSignal) => this.#reconcile(key, passSignal),
    });
    this.#store = new MachineCheckStore({ client, clock, kind, type: types.checks, checks });
    this.#remediations = new RemediationStore(runtime, (change) => this.#onRemediation(change), signal);
    this.#templates = new TemplateResolver(runtime, this.#remediations, () => this.#enqueueAll(), signal);
    this.#hostPower = new HostPower(runtime, namespace, (nodeName) => this.#onHostPower(nodeName), signal);
    this.#states = new MachineCheckStates({
      ...deps,
      fenceableSinceMs: (machine) => this.#fenceableSinceMs(machine),
      clock,
      times: new SteadyTimes(clock, runtime.clockOffset?.()),
      remediations: this.#remediations,
      onChange: (check) => this.#controller.enqueue(check),
    });
    this.#actions = new MachineActionRunner({
      client,
      logger,
      kind,
      nowMs: this.#states.world.nowMs,
      machineType: types.machines,
      clusterType: types.clusters,
      remediations: this.#remediations,
      store: this.#store,
      states: this.#states,
      tell: (type, reason, note, machine) => this.#tell({ type, reason, note }, machine),
      ...(metrics !== undefined && { metrics }),
    });
    checks.subscribe(({ object }) => this.#controller.enqueue(nameOf(object)));
  }

  /** Resolves once `signal` has aborted and nothing runs any more. */
  async run(signal: AbortSignal): Promise<void> {
    try {
      await this.#controller.run(signal);
    } finally {
      this.#store.close();
      this.#states.close();
      await Promise.all([this.#remediations.settled(), this.#templates.settled(), this.#hostPower.settled()]);
    }
  }

  #fenceableSinceMs({ nodeName, clusterName, metadata }: Machine): number | undefined {
    if (nodeName === undefined) return undefined;
    const node = clusterName === "" ? nodeName : `${metadata.namespace}/${clusterName}/${nodeName}`;
    this.#awaited.add(node);
    return this.#hostPower.fenceableSinceMs(node);
  }

  #onHostPower(nodeName: string | undefined): void {
    // Who still waits for it says so again.
    if (nodeName === undefined || this.#awaited.delete(nodeName)) this.#enqueueAll();
  }

  #onRemediation(change: Change<RemediationObject> | undefined): void {
    if (change === undefined) return this.#enqueueAll();
    const { namespace } = change.object.metadata;
    for (const check of this.#deps.checks.values()) {
      // The end of one may be what another machine of the control plane waits for.
      if (check.metadata.namespace === namespace) this.#controller.enqueue(nameOf(check));
    }
  }

  #enqueueAll(): void {
    for (const check of this.#deps.checks.values()) this.#controller.enqueue(nameOf(check));
  }

  async #reconcile(key: string, signal: AbortSignal): Promise<{ requeueAfterMs?: number } | void> {
    const check = this.#store.get(parseKey(key));
    if (check === undefined || check.metadata.deletionTimestamp !== undefined) return this.#forget(key);
    const cluster = this.#states.clusterOf(check);
    if (this.#deps.types.clusters !== undefined && cluster === undefined) {
      // It is enqueued when the cluster comes.
      const fields = { machineHealthCheck: key, cluster: check.spec.clusterName };
      this.#deps.runtime.logger.info(fields, "a health check waits for its cluster");
      return this.#forget(key);
    }
    const paused = pausedCondition(check, cluster);
    const nowMs = this.#states.world.nowMs();
    if (paused.status === "True") {
      if (showsPaused(check)) await this.#store.storeStatus(check, check.status, [paused], nowMs, signal);
      return undefined;
    }
    if (cluster !== undefined) await this.#store.adopt(check, cluster, signal);
    const nodes = this.#states.holdNodes(check, cluster);
    const state = this.#states.of(check);
    const { compiled } = state;
    this.#retainKinds();
    if ("problem" in compiled) {
      return this.#conclude(check, state, decideUnusable(check, compiled.problem), [], signal);
    }
    const resolved = compiled.policy.step && (await this.#templates.resolve([compiled.policy.step], signal));
    // Not known is not the same as not there: until every kind in use can be seen, nothing is decided.
    if (resolved === "pending" || nodes?.isPending === true) return { requeueAfterMs: KIND_RETRY_MS };
    await this.#remediations.checkUnseen(signal);
    const template = resolved === undefined || "reason" in resolved ? resolved : [...resolved.values()][0];
    const { decision, current, errors } = await this.#act(check, state, compiled, template, signal);
    const conditions = showsPaused(check) ? [...decision.conditions, paused] : decision.conditions;
    return this.#conclude(current, state, { ...decision, conditions }, errors, signal);
  }

  /** Decides, does what was decided, and decides on what that has changed. */
  async #act(
    check: MachineHealthCheck,
    state: MachineCheckState,
    compiled: Compiled,
    template: MachineSnapshot["template"],
    signal: AbortSignal,
  ): Promise<{ decision: MachineDecision; current: MachineHealthCheck; errors: readonly unknown[] }> {
    const { nowMs } = this.#states.world;
    const errors: unknown[] = [];
    const taken = new Set<string>();
    let current = check;
    const look = (): MachineDecision => {
      const snapshot = this.#states.snapshot(current, compiled, state.holds, template, this.#actions.starting);
      return decide(this.#deps.kind, snapshot, nowMs());
    };
    let decision = look();
    // What was found comes before what is done about it, for those who read the events in their order.
    this.#announce(check, state, decision);
    for (let round = 1; round <= ROUNDS_MAX; round += 1) {
      const fresh = decision.actions.filter((action) => !taken.has(machineActionKey(action)));
      if (fresh.length === 0) break;
      for (const action of fresh) taken.add(machineActionKey(action));
      errors.push(...(await this.#actions.takeAll(current, state, fresh.filter(isSingle), signal)));
      signal.throwIfAborted();
      const attempts = new Map(fresh.flatMap((action) => (isSingle(action) ? [] : [[action.key, action.attempts]])));
      if (attempts.size > 0) {
        try {
          current = await this.#store.recordAttempts(current, attempts, nowMs(), signal);
        } catch (error) {
          errors.push(error);
        }
        signal.throwIfAborted();
      }
      decision = look();
    }
    return { decision, current, errors };
  }

  /** Stores the status, tells what there is to tell, and says when to look again. */
  async #conclude(
    check: MachineHealthCheck,
    state: MachineCheckState,
    decision: MachineDecision,
    errors: readonly unknown[],
    signal: AbortSignal,
  ): Promise<{ requeueAfterMs?: number }> {
    const nowMs = this.#states.world.nowMs();
    this.#announce(check, state, decision);
    const isRestricted = decision.gate?.outcome === "tooManyUnhealthy";
    this.#deps.metrics?.observe(check, { covered: decision.status.expectedMachines, isRestricted });
    for (const [uid, { untilMs }] of state.holds) if (untilMs <= nowMs) state.holds.delete(uid);
    try {
      await this.#store.storeStatus(check, decision.status, decision.conditions, nowMs, signal);
    } catch (error) {
      if (!isKubeError(error, "Conflict")) throw error;
      return { requeueAfterMs: CONFLICT_RETRY_MS };
    }
    if (errors.length > 0) throw new AggregateError(errors, `${errors.length} actions of ${nameOf(check)} failed`);
    const { nextCheckMs } = decision;
    if (nextCheckMs === undefined) return {};
    return { requeueAfterMs: Math.min(Math.max(1, Math.ceil(nextCheckMs - nowMs)), RECHECK_MAX_MS) };
  }

  /** Tells what stands and was not told yet. */
  #announce(check: MachineHealthCheck, state: MachineCheckState, { standing }: MachineDecision): void {
    for (const announcement of standing) {
      if (!state.told.has(announcement.key)) this.#tell(announcement, announcement.machine ?? check);
    }
    state.told = new Set(standing.map(({ key }) => key));
  }

  #tell({ type, reason, note }: Omit<EventNote, "regarding" | "action">, regarding: KubeObject): void {
    this.#deps.runtime.events.record({ regarding, action: "HealthCheck", type, reason, note });
  }

  #forget(key: string): void {
    this.#states.forget(key);
    this.#deps.metrics?.forget(key);
    this.#retainKinds();
  }

  /** Watches what templates name, and nothing else. */
  #retainKinds(): void {
    const templates = new Set<string>();
    const remediations = new Set<string>();
    for (const { compiled } of this.#states.values()) {
      if ("problem" in compiled || compiled.policy.step === undefined) continue;
      const { template } = compiled.policy.step;
      templates.add(kindKey(template.apiVersion, template.kind));
      remediations.add(kindKey(template.apiVersion, remediationKind(template)));
    }
    this.#templates.retain(templates);
    this.#remediations.retain(remediations);
  }
}

function isSingle(action: MachineAction): action is SingleMachineAction {
  return action.type !== "recordAttempts";
}
