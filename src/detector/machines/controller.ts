import type { Cluster, Machine } from "../../api/cluster-api.ts";
import { CLUSTER_API_VERSIONS } from "../../api/cluster-api.ts";
import type { MachineHealthCheck } from "../../api/machine-health-check.ts";
import type { WorkloadClusters } from "../../clusters/workload-clusters.ts";
import { Controller } from "../../kube/controller.ts";
import { isKubeError } from "../../kube/errors.ts";
import type { KubeObject, ResourceType } from "../../kube/resource.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import type { Change, Watched } from "../../kube/watched.ts";
import { keyText, parseKey } from "../../kube/watched.ts";
import type { CountedAttempt } from "../attempts.ts";
import { isBookFull, readAttempts } from "../attempts.ts";
import { KIND_RETRY_MS, kindKey } from "../dynamic-kinds.ts";
import { remediationKind } from "../policy.ts";
import { RemediationStore } from "../remediation-store.ts";
import type { RemediationObject } from "../remediation.ts";
import { SteadyTimes } from "../steady-time.ts";
import { TemplateResolver } from "../template-resolver.ts";
import type { MachineActionContext, MachineActionDeps, SingleMachineAction } from "./actions.ts";
import { machineActionKey, takeMachineAction } from "./actions.ts";
import { MachineCheckStore } from "./check-store.ts";
import type { MachineCheckState, MachineWorld } from "./check-state.ts";
import { judgeNow, newMachineCheckState, stateKey } from "./check-state.ts";
import { ClusterNodes } from "./cluster-nodes.ts";
import { decide, decideUnusable, nameOf, pausedCondition } from "./decide.ts";
import type { MachineAction, MachineDecision, MachineSnapshot } from "./decision.ts";
import type { MachineHealthCheckKind } from "./kind.ts";
import { takeMachineSnapshot } from "./snapshot.ts";
import { judgeTrigger } from "./trigger.ts";

/** Health checks worked on at a time. */
const CONCURRENCY = 4;
/** Requests of one pass under way at a time. */
const ACTIONS_PARALLEL_MAX = 16;
/** A pass looks again at what its actions changed, at most so often: remember, then act, then tell. */
const ROUNDS_MAX = 4;
/** Timers follow a clock that cannot jump, and so does judgement; what a watch might have lost is found again by then. */
const RECHECK_MAX_MS = 60_000;
/** Nothing starts on a view of machines or clusters that is older: a bookmark comes every minute where nothing changes. */
const VIEW_STALE_MS = 180_000;
/** Longest wait after a pass in which something failed. */
const BACKOFF_MAX_MS = 15_000;
/** How soon a pass is run again whose status write met a newer version. */
const CONFLICT_RETRY_MS = 50;

export interface MachineHealthCheckDeps {
  runtime: KubeRuntime;
  clusters: WorkloadClusters;
  kind: MachineHealthCheckKind;
  types: { checks: ResourceType; machines: ResourceType; clusters: ResourceType | undefined };
  checks: Watched<MachineHealthCheck>;
  machines: Watched<Machine>;
  /** Undefined where the kind knows none. */
  clusterObjects: Watched<Cluster> | undefined;
}

/** Serves all MachineHealthChecks of one kind: gathers what bears on one, has `decide` decide, and does what it says. */
export class MachineHealthCheckController {
  readonly #deps: MachineHealthCheckDeps;
  readonly #controller: Controller;
  readonly #store: MachineCheckStore;
  readonly #remediations: RemediationStore;
  readonly #templates: TemplateResolver;
  readonly #times: SteadyTimes;
  readonly #states = new Map<string, MachineCheckState>();
  /** By `namespace/name` of the cluster. */
  readonly #nodes = new Map<string, ClusterNodes>();
  /** Machines whose remediation is being started at this moment, by UID: two passes must not both start. */
  readonly #starting = new Map<string, Machine>();
  readonly #world: MachineWorld;
  readonly #actionDeps: MachineActionDeps;

  /** @param signal ends everything that this controller starts. */
  constructor(deps: MachineHealthCheckDeps, signal: AbortSignal) {
    const { runtime, kind, types, checks, machines, clusterObjects } = deps;
    const { client, clock, logger } = runtime;
    this.#deps = deps;
    this.#controller = new Controller(runtime, {
      name: kind.name,
      concurrency: CONCURRENCY,
      maxBackoffMs: BACKOFF_MAX_MS,
      reconcile: (key, passSignal) => this.#reconcile(key, passSignal),
    });
    this.#times = new SteadyTimes(clock, runtime.clockOffset?.());
    this.#store = new MachineCheckStore({ client, clock, kind, type: types.checks, checks });
    this.#remediations = new RemediationStore(runtime, (change) => this.#onRemediation(change), signal);
    this.#templates = new TemplateResolver(runtime, this.#remediations, () => this.#enqueueAll(), signal);
    this.#world = {
      kind,
      nowMs: () => this.#times.nowMs(),
      clusterOf: (check) => this.#clusterOf(check),
      nodesOf: (check) => this.#nodes.get(clusterKey(check)),
    };
    this.#actionDeps = {
      client,
      logger,
      kind,
      nowMs: this.#world.nowMs,
      machineType: types.machines,
      clusterType: types.clusters,
      remediations: this.#remediations,
    };
    checks.subscribe(({ object }) => this.#controller.enqueue(nameOf(object)));
    machines.subscribe((change) => this.#onMachine(change));
    clusterObjects?.subscribe(({ object }) => this.#onCluster(nameOf(object)));
  }

  /** Resolves once `signal` has aborted and nothing runs any more. */
  async run(signal: AbortSignal): Promise<void> {
    try {
      await this.#controller.run(signal);
    } finally {
      this.#store.close();
      for (const nodes of this.#nodes.values()) nodes.close();
      await Promise.all([this.#remediations.settled(), this.#templates.settled()]);
    }
  }

  #onMachine(change: Change<Machine>): void {
    const { namespace } = change.object.metadata;
    for (const [key, { compiled }] of this.#states) {
      if ("problem" in compiled || parseKey(key).namespace !== namespace) continue;
      if (compiled.tracker.observe(change)) this.#controller.enqueue(key);
    }
  }

  /** @param nodeName undefined: whatever its machines have in common may have changed. */
  #onCluster(cluster: string, nodeName?: string): void {
    for (const check of this.#deps.checks.values()) {
      if (clusterKey(check) !== cluster) continue;
      const key = nameOf(check);
      const compiled = this.#states.get(key)?.compiled;
      if (compiled !== undefined && "tracker" in compiled) {
        if (nodeName === undefined) compiled.tracker.judgeAll();
        else if (!compiled.tracker.observeNode(nodeName)) continue;
      }
      this.#controller.enqueue(key);
    }
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
    const cluster = this.#clusterOf(check);
    if (this.#deps.types.clusters !== undefined && cluster === undefined) {
      // It is enqueued when the cluster comes.
      this.#deps.runtime.logger.info(
        { machineHealthCheck: key, cluster: clusterKey(check) },
        "there is no such cluster yet",
      );
      return this.#forget(key);
    }
    const paused = pausedCondition(check, cluster);
    if (paused.status === "True") return this.#showPaused(check, paused, signal);
    if (cluster !== undefined) await this.#store.adopt(check, cluster, signal);
    const nodes = this.#holdNodes(check, cluster);
    const state = this.#stateOf(check);
    const { compiled } = state;
    this.#retainKinds();
    if ("problem" in compiled)
      return this.#conclude(check, state, decideUnusable({ check }, compiled.problem), [], signal);
    const resolved = compiled.policy.step && (await this.#templates.resolve([compiled.policy.step], signal));
    // Not known is not the same as not there: until every kind in use can be seen, nothing is decided.
    if (resolved === "pending" || nodes?.isPending === true) return { requeueAfterMs: KIND_RETRY_MS };
    await this.#remediations.checkUnseen(signal);
    const template = resolved === undefined || "reason" in resolved ? resolved : [...resolved.values()][0];

    const errors: unknown[] = [];
    const taken = new Set<string>();
    let current = check;
    const look = (): MachineDecision =>
      decide(this.#deps.kind, this.#snapshot(current, state, template), this.#world.nowMs());
    let decision = look();
    this.#announce(check, state, decision);
    for (let round = 1; round <= ROUNDS_MAX; round += 1) {
      const fresh = decision.actions.filter((action) => !taken.has(machineActionKey(action)));
      if (fresh.length === 0) break;
      for (const action of fresh) taken.add(machineActionKey(action));
      errors.push(...(await this.#takeAll(current, state, fresh.filter(isSingle), signal)));
      signal.throwIfAborted();
      const attempts = attemptsOf(fresh);
      if (attempts.size > 0) {
        try {
          current = await this.#store.recordAttempts(current, attempts, this.#world.nowMs(), signal);
        } catch (error) {
          errors.push(error);
        }
        signal.throwIfAborted();
      }
      decision = look();
    }
    const conditions = knowsPaused(check) ? [...decision.conditions, paused] : decision.conditions;
    return this.#conclude(current, state, { ...decision, conditions }, errors, signal);
  }

  async #showPaused(
    check: MachineHealthCheck,
    paused: ReturnType<typeof pausedCondition>,
    signal: AbortSignal,
  ): Promise<void> {
    if (!knowsPaused(check)) return;
    await this.#store.storeStatus(check, check.status, [paused], this.#world.nowMs(), signal);
  }

  #snapshot(
    check: MachineHealthCheck,
    state: MachineCheckState,
    template: MachineSnapshot["template"],
  ): MachineSnapshot {
    const { compiled } = state;
    if ("problem" in compiled)
      throw new Error(`there is nothing to see for a spec that cannot be used: ${compiled.problem}`);
    compiled.tracker.advance(this.#world.nowMs());
    const attempts = readAttempts(check);
    return takeMachineSnapshot({
      check,
      ...compiled,
      holds: state.holds,
      template,
      remediations: [...this.#remediations.values()],
      machineOf: (machineKey) => this.#deps.machines.get(machineKey),
      starting: [...this.#starting.values()],
      isUnhealthyToOthers: (machine) => this.#findOther(check, machine),
      attemptsOf: (key): readonly CountedAttempt[] => attempts.get(key) ?? [],
      isBookFull: isBookFull(check),
      standstill: this.#findStandstill(),
      away: this.#nodes.get(clusterKey(check))?.away,
    });
  }

  /** Another health check that finds the machine unhealthy; its name. */
  #findOther(check: MachineHealthCheck, machine: Machine): string | undefined {
    for (const [key, { compiled }] of this.#states) {
      if (key === nameOf(check) || "problem" in compiled) continue;
      const tracked = compiled.tracker.get(machine.metadata.name);
      if (tracked?.machine.metadata.uid === machine.metadata.uid && tracked.health.state === "unhealthy") return key;
    }
    return undefined;
  }

  #findStandstill(): string | undefined {
    const { runtime, machines, clusterObjects } = this.#deps;
    const lastMs = Math.min(machines.lastContactMs, clusterObjects?.lastContactMs ?? Infinity);
    const isStale = runtime.clock.monotonicMs() - lastMs > VIEW_STALE_MS;
    return isStale ? "the API server has not told of machines for minutes" : undefined;
  }

  /** Takes actions side by side. @returns what failed; one failure never keeps the others from being taken. */
  async #takeAll(
    check: MachineHealthCheck,
    state: MachineCheckState,
    actions: readonly SingleMachineAction[],
    signal: AbortSignal,
  ): Promise<unknown[]> {
    const { logger } = this.#deps.runtime;
    const context = this.#contextOf(check, state);
    const errors: unknown[] = [];
    const waiting = [...actions];
    const work = async (): Promise<void> => {
      for (let action = waiting.shift(); action !== undefined; action = waiting.shift()) {
        try {
          await takeMachineAction(this.#actionDeps, context, action, signal);
        } catch (error) {
          errors.push(error);
          const fields = { machineHealthCheck: nameOf(check), action: machineActionKey(action) };
          if (!signal.aborted) logger.warn({ err: error, ...fields }, "an action failed");
        } finally {
          this.#starting.delete(action.machine.metadata.uid);
        }
      }
    };
    await Promise.all(Array.from({ length: Math.min(ACTIONS_PARALLEL_MAX, actions.length) }, work));
    return errors;
  }

  #contextOf(check: MachineHealthCheck, state: MachineCheckState): MachineActionContext {
    const { compiled } = state;
    const world = this.#world;
    return {
      check,
      covers: (machine) => "policy" in compiled && compiled.policy.covers(machine),
      holds: state.holds,
      judge: (machine, cluster, node) => judgeNow(world, check, machine, cluster, node),
      readNode: async ({ nodeName }, cluster, signal) => {
        const nodes = this.#nodes.get(clusterKey(check));
        const isBefore = cluster !== undefined && !cluster.controlPlaneInitialized;
        if (nodeName === undefined || nodes === undefined || isBefore) return { state: "none" };
        return nodes.readSight(nodeName, signal);
      },
      mayStart: (machine) => this.#mayStart(check, state, machine),
      wrote: (machine) => {
        if ("tracker" in compiled) compiled.tracker.observe({ type: "updated", object: machine, previous: machine });
      },
      tell: (reason, note, machine) => this.#tell({ type: "Normal", reason, note }, machine),
    };
  }

  /**
   * Whether a remediation that was decided on may still start: same spec, not paused, the threshold holds as things are now,
   * and neither the machine nor another one of its control plane has one. One that may counts as started at once.
   */
  #mayStart(check: MachineHealthCheck, state: MachineCheckState, machine: Machine): boolean {
    const { compiled } = state;
    const current = this.#store.get(parseKey(nameOf(check)));
    if (current === undefined || stateKey(current) !== state.key || "problem" in compiled) return false;
    if (pausedCondition(current, this.#clusterOf(current)).status === "True") return false;
    const { tracker, policy } = compiled;
    tracker.advance(this.#world.nowMs());
    if (!judgeTrigger(policy.trigger, tracker.size, tracker.size - tracker.healthy).allowed) return false;
    if (this.#findStandstill() !== undefined || this.#nodes.get(clusterKey(check))?.away !== undefined) return false;
    const { uid, name } = machine.metadata;
    if (this.#starting.has(uid)) return false;
    const snapshot = this.#snapshot(current, state, undefined);
    const facts = snapshot.targets.find((target) => target.machine.metadata.name === name);
    if (facts === undefined || facts.requests.length > 0) return false;
    if (policy.step !== undefined && machine.isControlPlane && facts.controlPlaneBusy !== undefined) return false;
    this.#starting.set(uid, machine);
    return true;
  }

  /** Stores the status, tells what there is to tell, and says when to look again. */
  async #conclude(
    check: MachineHealthCheck,
    state: MachineCheckState,
    decision: MachineDecision,
    errors: readonly unknown[],
    signal: AbortSignal,
  ): Promise<{ requeueAfterMs?: number }> {
    const nowMs = this.#world.nowMs();
    this.#announce(check, state, decision);
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

  #tell(told: { type: "Normal" | "Warning"; reason: string; note: string }, regarding: KubeObject): void {
    const { type, reason, note } = told;
    this.#deps.runtime.events.record({ regarding, action: "HealthCheck", type, reason, note });
  }

  #clusterOf(check: MachineHealthCheck): Cluster | undefined {
    return this.#deps.clusterObjects?.get(parseKey(clusterKey(check)));
  }

  /** Sees to it that the nodes of a health check's cluster are seen, once there is an API server to see them by. */
  #holdNodes(check: MachineHealthCheck, cluster: Cluster | undefined): ClusterNodes | undefined {
    const key = clusterKey(check);
    const known = this.#nodes.get(key);
    if (known !== undefined || (cluster !== undefined && !cluster.controlPlaneInitialized)) return known;
    const { clusters, runtime } = this.#deps;
    const ref = { namespace: check.metadata.namespace, name: check.spec.clusterName };
    const onChange = (nodeName: string | undefined): void => this.#onCluster(key, nodeName);
    const nodes = new ClusterNodes({ clusters, clock: runtime.clock, times: this.#times, onChange }, ref);
    this.#nodes.set(key, nodes);
    // Whatever its machines were judged by before, it was without their nodes.
    this.#onCluster(key);
    return nodes;
  }

  #stateOf(check: MachineHealthCheck): MachineCheckState {
    const key = nameOf(check);
    const known = this.#states.get(key);
    if (known?.key === stateKey(check)) return known;
    const state = newMachineCheckState(this.#world, check, this.#deps.machines.values());
    state.told = known?.told ?? state.told;
    this.#states.set(key, state);
    return state;
  }

  #forget(key: string): void {
    this.#states.delete(key);
    this.#retainKinds();
    const used = new Set([...this.#deps.checks.values()].map(clusterKey));
    for (const [cluster, nodes] of this.#nodes) {
      if (used.has(cluster)) continue;
      nodes.close();
      this.#nodes.delete(cluster);
    }
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

function clusterKey({ metadata, spec }: MachineHealthCheck): string {
  return keyText({ namespace: metadata.namespace, name: spec.clusterName });
}

/** Upstream has the condition Paused since v1beta2. */
function knowsPaused({ apiVersion }: MachineHealthCheck): boolean {
  return apiVersion.endsWith(`/${CLUSTER_API_VERSIONS[0]}`);
}

function isSingle(action: MachineAction): action is SingleMachineAction {
  return action.type !== "recordAttempts";
}

function attemptsOf(actions: readonly MachineAction[]): Map<string, readonly CountedAttempt[]> {
  return new Map(actions.flatMap((action) => (isSingle(action) ? [] : [[action.key, action.attempts]])));
}
