import type { Cluster, Machine } from "../../api/cluster-api/cluster-api.ts";
import type { MachineHealthCheck } from "../../api/cluster-api/machine-health-check.ts";
import type { WorkloadClusters } from "../../clusters/workload-clusters.ts";
import type { ResourceType } from "../../kube/resource.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import type { Change, Watched } from "../../kube/watched.ts";
import { nameOf } from "../../kube/watched.ts";
import type { DecisionRecorder } from "../../telemetry/decisions/recorder.ts";
import { clusterOf, nodeKey } from "../../nodes/subject.ts";
import type { RemediationObject } from "../shared/model/remediation.ts";
import { CheckDecisions } from "../shared/shell/check-decisions.ts";
import type { Reconcile, Requeue } from "../shared/shell/health-check-shell.ts";
import { HealthCheckShell, NO_ACTIONS } from "../shared/shell/health-check-shell.ts";
import type { RemediationListener } from "../shared/model/started-remediation.ts";
import { HealthCheckStore } from "../shared/shell/health-check-store.ts";
import { retainKinds } from "../shared/shell/retain-kinds.ts";
import { MonotonicTimes } from "../shared/views/watched-nodes/condition-times.ts";
import { KIND_RETRY_MS } from "../shared/views/dynamic-kinds.ts";
import { FencingTargetWatch } from "../shared/views/fencing-target-watch.ts";
import { RemediationStore } from "../shared/views/remediation-store.ts";
import { TemplateResolver } from "../shared/views/template-resolver.ts";
import { pausedCondition, showsPaused } from "./decide/decide.ts";
import { invalidMachineCheckDecider, machineCheckDecider } from "./decide/deciders.ts";
import type { MachineCheckDecision, MachineCheckSnapshot } from "./decide/decision.ts";
import type { MachineHealthCheckKind } from "./decide/kind.ts";
import type { MachineActionEvent } from "./decide/observe.ts";
import { announceMachineEvent } from "./decide/observe.ts";
import type { MachineActionDeps, SingleMachineAction } from "./effects/actions.ts";
import { machineActionKey, runMachineAction } from "./effects/actions.ts";
import { MachineStartGuard } from "./effects/start-guard.ts";
import type { MachineMetrics } from "./effects/metrics.ts";
import { adopt, storeMachineCheckStatus } from "./effects/store-status.ts";
import type { CompiledMachineCheck, MachineCheckState } from "./snapshot/check-state.ts";
import { MachineChecks } from "./snapshot/machine-checks.ts";

/** How many actions of one reconcile run at the same time. Many Machines may fail at once. */
const ACTIONS_PARALLEL_MAX = 16;

export interface MachineHealthCheckControllerDeps {
  runtime: KubeRuntime;
  clusters: WorkloadClusters;
  kind: MachineHealthCheckKind;
  namespace: string;
  /** Label of a node that names its failure zone. */
  zoneLabel: string;
  types: { checks: ResourceType; machines: ResourceType; clusters: ResourceType | undefined };
  checks: Watched<MachineHealthCheck>;
  machines: Watched<Machine>;
  /** Undefined if the vendor has no Clusters (OKD). */
  clusterObjects: Watched<Cluster> | undefined;
  metrics: MachineMetrics | undefined;
  listener?: RemediationListener | undefined;
  recorder?: DecisionRecorder | undefined;
}

type MachineReconcile = Reconcile<MachineHealthCheck, SingleMachineAction, MachineActionEvent, MachineCheckDecision>;

/** Serves all MachineHealthChecks of one vendor: reads what each of them needs, and reconciles it when that changes. */
export class MachineHealthCheckController {
  readonly #deps: MachineHealthCheckControllerDeps;
  readonly #shell: HealthCheckShell<MachineHealthCheck, SingleMachineAction, MachineActionEvent, MachineCheckDecision>;
  readonly #store: HealthCheckStore<MachineHealthCheck>;
  readonly #states: MachineChecks;
  readonly #remediations: RemediationStore;
  readonly #templates: TemplateResolver;
  readonly #startGuard: MachineStartGuard;
  readonly #actionDeps: MachineActionDeps;
  readonly #fencingTargets: FencingTargetWatch;
  readonly #decisions: CheckDecisions;
  /** Keys of nodes (`nodeKey`) with a failed remediation, which is repeated when the host can be fenced. */
  readonly #awaited = new Set<string>();

  /** @param signal ends everything that this controller starts. */
  constructor(deps: MachineHealthCheckControllerDeps, signal: AbortSignal) {
    const { runtime, kind, types, checks, namespace } = deps;
    const { client, clock, logger, events } = runtime;
    this.#deps = deps;
    this.#decisions = new CheckDecisions(deps.recorder);
    this.#store = new HealthCheckStore({ client, clock, type: types.checks, view: checks, read: kind.readCheck });
    this.#shell = new HealthCheckShell(runtime, {
      name: kind.name,
      logField: "machineHealthCheck",
      actionsParallelMax: ACTIONS_PARALLEL_MAX,
      store: this.#store,
      nowMs: () => this.#states.sources.nowMs(),
      read: (check, readSignal) => this.#read(check, readSignal),
      forget: (name) => this.#forget(name),
      keyOf: machineActionKey,
      record: (check, { type, reason, note, about }) =>
        events.record({ regarding: about ?? check, action: "HealthCheck", type, reason, note }),
    });
    this.#remediations = new RemediationStore(runtime, (change) => this.#onRemediation(change), signal);
    this.#templates = new TemplateResolver(runtime, this.#remediations, () => this.#shell.enqueueAll(), signal);
    this.#fencingTargets = new FencingTargetWatch(
      runtime,
      namespace,
      (nodeName) => this.#onHostPower(nodeName),
      signal,
    );
    this.#states = new MachineChecks({
      ...deps,
      fenceableSinceMs: (machine) => this.#fenceableSinceMs(machine),
      clock,
      times: new MonotonicTimes(clock, runtime.clockOffset?.()),
      remediations: this.#remediations,
      onChange: (check) => this.#shell.enqueue(check),
    });
    const { nowMs } = this.#states.sources;
    this.#startGuard = new MachineStartGuard({
      store: this.#store,
      states: this.#states,
      remediations: this.#remediations,
    });
    this.#actionDeps = {
      client,
      logger,
      kind,
      nowMs,
      machineType: types.machines,
      clusterType: types.clusters,
      remediations: this.#remediations,
      zoneLabel: deps.zoneLabel,
    };
    checks.subscribe(({ object }) => this.#shell.enqueue(nameOf(object)));
  }

  /** Resolves once `signal` has aborted and nothing runs any more. */
  async run(signal: AbortSignal): Promise<void> {
    try {
      await this.#shell.run(signal);
    } finally {
      this.#states.close();
      await Promise.all([this.#remediations.settled(), this.#templates.settled(), this.#fencingTargets.settled()]);
    }
  }

  #fenceableSinceMs(machine: Machine): number | undefined {
    const { nodeName } = machine;
    if (nodeName === undefined) return undefined;
    const node = nodeKey({ cluster: clusterOf(machine), name: nodeName });
    this.#awaited.add(node);
    return this.#fencingTargets.fenceableSinceMs(node);
  }

  #onHostPower(nodeName: string | undefined): void {
    // The next evaluation adds the node again if a Machine still waits for it.
    if (nodeName === undefined || this.#awaited.delete(nodeName)) this.#shell.enqueueAll();
  }

  #onRemediation(change: Change<RemediationObject> | undefined): void {
    if (change === undefined) return this.#shell.enqueueAll();
    const { namespace } = change.object.metadata;
    for (const check of this.#deps.checks.values()) {
      // Another Machine of the control plane may wait for the end of this remediation.
      if (check.metadata.namespace === namespace) this.#shell.enqueue(nameOf(check));
    }
  }

  async #read(check: MachineHealthCheck, signal: AbortSignal): Promise<MachineReconcile | Requeue> {
    const name = nameOf(check);
    if (check.metadata.deletionTimestamp !== undefined) return this.#forget(name);
    const cluster = this.#states.clusterOf(check);
    if (this.#deps.types.clusters !== undefined && cluster === undefined) {
      // The health check is enqueued when the Cluster is created.
      const fields = { machineHealthCheck: name, cluster: check.spec.clusterName };
      this.#deps.runtime.logger.info(fields, "the Cluster of a health check does not exist yet");
      return this.#forget(name);
    }
    const paused = pausedCondition(check, cluster);
    if (paused.status === "True") {
      const shown = { status: check.status, conditions: [paused] };
      const nowMs = this.#states.sources.nowMs();
      if (showsPaused(check)) await storeMachineCheckStatus(this.#store, this.#deps.kind, check, shown, nowMs, signal);
      return {};
    }
    if (cluster !== undefined) await adopt(this.#store, check, cluster, signal);
    const nodes = this.#states.holdNodes(check, cluster);
    const state = this.#states.of(check);
    const { compiled } = state;
    this.#retainKinds();
    if ("problem" in compiled) {
      const decider = invalidMachineCheckDecider(this.#deps.kind);
      const decide = (current: MachineHealthCheck): MachineCheckDecision => {
        const invalid = { check: current, problem: compiled.problem };
        return this.#decisions.decide(current, decider, invalid, this.#states.sources.nowMs());
      };
      return { ...NO_ACTIONS, state, decide, storeStatus: this.#storer([]) };
    }
    const resolved = compiled.policy.step && (await this.#templates.resolve([compiled.policy.step], signal));
    // A kind that was not read yet must not look as if it had no objects, so nothing is decided until every kind in use
    // was read.
    if (resolved === "pending" || nodes?.isPending === true) return { requeueAfterMs: KIND_RETRY_MS };
    await this.#remediations.checkUnreported(signal);
    const template = resolved === undefined || "reason" in resolved ? resolved : resolved[0];
    return {
      ...this.#actionsOf(check, state),
      state,
      decide: (current) => this.#decide(current, compiled, state, template),
      storeStatus: this.#storer(showsPaused(check) ? [paused] : []),
    };
  }

  #decide(
    check: MachineHealthCheck,
    compiled: CompiledMachineCheck,
    { observations }: MachineCheckState,
    template: MachineCheckSnapshot["template"],
  ): MachineCheckDecision {
    const snapshot = this.#states.snapshot(check, compiled, observations, template, this.#startGuard.starting);
    const decider = machineCheckDecider(this.#deps.kind);
    return this.#decisions.decide(check, decider, snapshot, this.#states.sources.nowMs());
  }

  #actionsOf(check: MachineHealthCheck, state: MachineCheckState): Pick<MachineReconcile, "run" | "observe" | "end"> {
    return {
      run: (current, action, signal) =>
        runMachineAction(this.#actionDeps, this.#startGuard.contextOf(current, state), action, signal),
      observe: (event) => {
        if (event.type === "deleted") this.#deps.metrics?.deleted(check);
        this.#report(check, event);
        if (event.type === "deferred") state.observations.add(event.machine.metadata.uid, event);
        if (event.type === "written" && "tracker" in state.compiled) {
          state.compiled.tracker.observeWritten(event.machine);
        }
        return announceMachineEvent(check, event);
      },
      end: ({ machine }) => this.#startGuard.ended(machine),
    };
  }

  /** Reports to the listener what an action has started or ended. */
  #report(check: MachineHealthCheck, event: MachineActionEvent): void {
    const { machine } = event;
    const subject = machine.nodeName ?? `Machine ${nameOf(machine)}`;
    const healthCheck = `${check.kind} ${nameOf(check)}`;
    if (event.type === "recovered") this.#deps.listener?.ended({ healthCheck, subject });
    if (event.type !== "started") return;
    const { remedy, because } = event;
    this.#deps.listener?.started({ healthCheck, subject, about: machine, remedy, because });
  }

  /** @param conditions conditions of the health check in addition to those of the decision. */
  #storer(conditions: MachineCheckDecision["conditions"]): MachineReconcile["storeStatus"] {
    return (check, { gate, status, conditions: decided }, nowMs, signal) => {
      const isRestricted = gate?.outcome === "tooManyUnhealthy";
      this.#deps.metrics?.observe(check, { covered: status.expectedMachines, isRestricted });
      const shown = { status, conditions: [...decided, ...conditions] };
      return storeMachineCheckStatus(this.#store, this.#deps.kind, check, shown, nowMs, signal);
    };
  }

  #forget(name: string): Requeue {
    this.#states.forget(name);
    this.#decisions.forget(name);
    this.#deps.metrics?.forget(name);
    this.#retainKinds();
    return {};
  }

  /** Ends the watches of kinds that no health check uses any more. */
  #retainKinds(): void {
    const steps = [...this.#states.policies()].flatMap(({ step }) => step ?? []);
    retainKinds({ templates: this.#templates, remediations: this.#remediations }, steps);
  }
}
