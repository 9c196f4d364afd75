import type { Node } from "../../api/kubernetes/core.ts";
import { NODE_HEALTH_CHECKS } from "../../api/ironfence/node-health-check.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import type { Watched } from "../../kube/watched.ts";
import { describeClockOffset } from "../shared/model/clock-skew.ts";
import type { RemediationListener } from "../shared/model/started-remediation.ts";
import { CheckDecisions } from "../shared/shell/check-decisions.ts";
import type { Requeue } from "../shared/shell/health-check-shell.ts";
import { HealthCheckShell, NO_ACTIONS } from "../shared/shell/health-check-shell.ts";
import { HealthCheckStore } from "../shared/shell/health-check-store.ts";
import { retainKinds } from "../shared/shell/retain-kinds.ts";
import { CheckStates } from "../shared/views/check-states.ts";
import { KIND_RETRY_MS, kindKey } from "../shared/views/dynamic-kinds.ts";
import type { DecisionRecorder } from "../../telemetry/decisions/recorder.ts";
import type { KubeletLeases } from "../../nodes/leases/kubelet-leases.ts";
import { FencingTargetWatch } from "../shared/views/fencing-target-watch.ts";
import type { OverdueNodes } from "../shared/views/overdue-nodes.ts";
import { overdueNodes } from "../shared/views/overdue-nodes.ts";
import { NodeWatch } from "../shared/views/watched-nodes/node-watch.ts";
import { RemediationStore } from "../shared/views/remediation-store.ts";
import { TemplateResolver } from "../shared/views/template-resolver.ts";
import type { NodeReconcile } from "./check-actions.ts";
import { NodeCheckActions } from "./check-actions.ts";
import { INVALID_NODE_CHECK, NODE_CHECK } from "./decide/deciders.ts";
import type { NodeCheckDecision, PlatformFacts, NodeCheckSnapshot } from "./decide/decision.ts";
import type { NodeActionEvent } from "./decide/observe.ts";
import type { SingleNodeAction } from "./effects/actions.ts";
import { nodeActionKey } from "./effects/actions.ts";
import { NodeStartGuard } from "./effects/start-guard.ts";
import type { NodeHealthCheckMetrics } from "./effects/metrics.ts";
import { NodeLeases } from "./effects/node-lease.ts";
import { storeNodeCheckStatus } from "./effects/store-status.ts";
import type { CompiledNodeCheck, NodeCheckState } from "./snapshot/check-state.ts";
import { newNodeCheckState, nodeCheckKey } from "./snapshot/check-state.ts";
import type { HealthCheckObject } from "./snapshot/health-check.ts";
import { trimHealthCheck } from "./snapshot/health-check.ts";
import type { NodeCheckStates } from "./snapshot/peers.ts";
import { peersOf } from "./snapshot/peers.ts";
import { Platform } from "./snapshot/platform.ts";
import { takeNodeSnapshot } from "./snapshot/snapshot.ts";
import { NodeCheckWakeUps } from "./wake-ups.ts";

/** How many actions of one reconcile run at the same time. Many nodes may fail at once. */
const ACTIONS_PARALLEL_MAX = 32;
/**
 * If the view of the nodes has received nothing for this long, no remediation starts. A bookmark arrives every minute
 * even if nothing changes.
 */
const NODES_STALE_MS = 180_000;
/** The notes of all Events of medik8s begin with this prefix, and users filter by it. */
const NOTE_PREFIX = "[remediation]";

export interface NodeHealthCheckControllerDeps {
  runtime: KubeRuntime;
  nodes: Watched<Node>;
  checks: Watched<HealthCheckObject>;
  metrics: NodeHealthCheckMetrics;
  leaseNamespace: string;
  /** The agent's own namespace. */
  namespace: string;
  /** Label of a node that names its failure zone. */
  zoneLabel: string;
  /** The node leases. Without them no remediation begins early. */
  leases: KubeletLeases | undefined;
  listener: RemediationListener | undefined;
  recorder: DecisionRecorder | undefined;
}

/** Serves all NodeHealthChecks: reads what each of them needs, and reconciles it when that changes. */
export class NodeHealthCheckController {
  readonly #deps: NodeHealthCheckControllerDeps;
  readonly #shell: HealthCheckShell<HealthCheckObject, SingleNodeAction, NodeActionEvent, NodeCheckDecision>;
  readonly #checks: HealthCheckStore<HealthCheckObject>;
  readonly #states: NodeCheckStates;
  readonly #remediations: RemediationStore;
  readonly #templates: TemplateResolver;
  readonly #platform: Platform;
  readonly #fencingTargets: FencingTargetWatch;
  readonly #overdue: OverdueNodes | undefined;
  readonly #actions: NodeCheckActions;
  readonly #wakeUps: NodeCheckWakeUps;
  readonly #nodes: NodeWatch;
  readonly #decisions: CheckDecisions;

  /** @param signal ends everything that this controller starts. */
  constructor(deps: NodeHealthCheckControllerDeps, signal: AbortSignal) {
    const { runtime, nodes, checks, leaseNamespace, namespace, zoneLabel } = deps;
    const { client, clock, logger } = runtime;
    this.#deps = deps;
    this.#decisions = new CheckDecisions(deps.recorder);
    const watchDeps = { client, clock, clockOffset: runtime.clockOffset?.() };
    this.#nodes = new NodeWatch(watchDeps, nodes, (change) => this.#wakeUps.onNode(change));
    this.#checks = new HealthCheckStore({
      client,
      clock,
      type: NODE_HEALTH_CHECKS,
      view: checks,
      read: trimHealthCheck,
    });
    this.#shell = new HealthCheckShell(runtime, {
      name: "node-health-check",
      logField: "nodeHealthCheck",
      actionsParallelMax: ACTIONS_PARALLEL_MAX,
      store: this.#checks,
      nowMs: () => clock.nowMs(),
      read: (check, readSignal) => this.#read(check, readSignal),
      forget: (name) => {
        this.#states.forget(name);
        this.#decisions.forget(name);
        this.#retainKinds();
      },
      keyOf: nodeActionKey,
      record: (check, { type, reason, note, about }) =>
        runtime.events.record({
          regarding: check,
          action: "HealthCheck",
          type,
          reason,
          note: `${NOTE_PREFIX} ${note}`,
          ...(about !== undefined && { related: about }),
        }),
    });
    this.#states = new CheckStates({
      keyOf: nodeCheckKey,
      make: (check, before) => this.#newState(check, before),
    });
    this.#wakeUps = new NodeCheckWakeUps({
      clock,
      states: this.#states,
      checks: this.#checks,
      metrics: deps.metrics,
      isProvenEarly: (nodeName) => this.#fencingTargets.isProvenEarly(nodeName),
      enqueue: (name) => this.#shell.enqueue(name),
      enqueueAll: () => this.#shell.enqueueAll(),
    });
    this.#remediations = new RemediationStore(runtime, (change) => this.#wakeUps.onRemediation(change), signal);
    this.#templates = new TemplateResolver(runtime, this.#remediations, () => this.#shell.enqueueAll(), signal);
    this.#platform = new Platform(runtime, () => this.#shell.enqueueAll(), signal);
    this.#fencingTargets = new FencingTargetWatch(
      runtime,
      namespace,
      (nodeName) => this.#wakeUps.onHostPower(nodeName),
      signal,
    );
    this.#overdue = deps.leases && overdueNodes(runtime, nodes, deps.leases, signal);
    const startGuard = new NodeStartGuard({
      overdue: this.#overdue,
      clock,
      checks: this.#checks,
      nodes,
      remediations: this.#remediations,
      currentNodes: this.#nodes.current,
      platform: this.#platform,
    });
    this.#actions = new NodeCheckActions({
      actionDeps: {
        client,
        clock,
        logger,
        remediations: this.#remediations,
        leases: new NodeLeases(runtime, leaseNamespace),
        fencingTargets: this.#fencingTargets,
        overdue: this.#overdue,
        zoneLabel,
      },
      currentNodes: this.#nodes.current,
      fencingTargets: this.#fencingTargets,
      platform: this.#platform,
      startGuard,
      metrics: deps.metrics,
      listener: deps.listener,
    });
    checks.subscribe((change) => this.#wakeUps.onCheck(change));
  }

  /** Resolves once `signal` has aborted and nothing runs any more. */
  async run(signal: AbortSignal): Promise<void> {
    try {
      await this.#shell.run(signal);
    } finally {
      const watchers = [this.#remediations, this.#templates, this.#platform, this.#fencingTargets];
      await Promise.all(watchers.map((watcher) => watcher.settled()));
    }
  }

  #newState(check: HealthCheckObject, before: NodeCheckState | undefined): NodeCheckState {
    const { nodes, runtime, metrics } = this.#deps;
    const nowMs = runtime.clock.nowMs();
    const state = newNodeCheckState(check, nodes.values(), nowMs, this.#nodes.times);
    if (before?.uid === state.uid) {
      state.announced = before.announced;
      state.observations = before.observations;
      state.observations.addToAll({ type: "specChanged" });
    } else {
      metrics.follow({}, check.status, nowMs);
    }
    return state;
  }

  async #read(check: HealthCheckObject, signal: AbortSignal): Promise<NodeReconcile | Requeue> {
    const { clock } = this.#deps.runtime;
    const state = this.#states.of(check);
    const { compiled } = state;
    const shown = { state, storeStatus: this.#storer(state) };
    if ("problem" in compiled) {
      const decide = (current: HealthCheckObject): NodeCheckDecision => {
        const { status, metadata } = current;
        const invalid = { status, generation: metadata.generation, problem: compiled.problem };
        return this.#decisions.decide(current, INVALID_NODE_CHECK, invalid, clock.nowMs());
      };
      return { ...NO_ACTIONS, ...shown, decide };
    }
    this.#retainKinds();
    const templates = await this.#templates.resolve(compiled.policy.steps, signal);
    const records = (check.status.unhealthyNodes ?? []).flatMap(({ remediations = [] }) => remediations);
    const pending = records.some(
      ({ resource }) => this.#remediations.state(resource.apiVersion ?? "", resource.kind ?? "").state === "pending",
    );
    // A kind that was not read yet must not look as if it had no objects, so nothing is decided until every kind in use
    // was read.
    const platform = this.#platform.read();
    if (templates === "pending" || platform === "pending" || pending) return { requeueAfterMs: KIND_RETRY_MS };
    await this.#remediations.checkUnreported(signal);
    let unlisted: string | undefined;
    return {
      ...shown,
      ...this.#actions.of(state, compiled, check),
      decide: (current) => {
        const snapshot = this.#snapshot(current, state, compiled, { templates, platform, unlisted });
        return this.#decisions.decide(current, NODE_CHECK, snapshot, clock.nowMs());
      },
      confirm: async ({ actions }) => {
        if (!actions.some(({ type }) => type === "create") || this.#nodes.current.isKnown) return undefined;
        // The watch may be late, and the threshold must be judged by the current nodes.
        try {
          await this.#nodes.current.confirm(signal);
          return [];
        } catch (error) {
          signal.throwIfAborted();
          unlisted = `the watched nodes may be out of date, and they cannot be listed: ${error instanceof Error ? error.message : String(error)}`;
          return [error];
        }
      },
    };
  }

  #snapshot(
    check: HealthCheckObject,
    state: NodeCheckState,
    compiled: CompiledNodeCheck,
    found: { templates: NodeCheckSnapshot["templates"]; platform: PlatformFacts; unlisted: string | undefined },
  ): NodeCheckSnapshot {
    const { nodes, runtime } = this.#deps;
    const { unlisted, templates, platform } = found;
    const silentMs = runtime.clock.monotonicMs() - nodes.lastContactMs;
    return takeNodeSnapshot(
      {
        check,
        ...compiled,
        state,
        peers: peersOf(this.#states, this.#checks.values(), check),
        nodes,
        liveNodes: this.#nodes.current.liveNodes,
        remediations: [...this.#remediations.values()],
        starting: this.#actions.starting,
        skewOf: (name, matters) => this.#nodes.times.skewOf(name, matters),
        clockSkew: describeClockOffset(runtime.clockOffset?.()),
        templates,
        platform,
        canSee: (record) => this.#remediations.canSee(record),
        blocked: silentMs > NODES_STALE_MS ? "the API server has reported nothing about nodes for 3 minutes" : unlisted,
        fencingTargets: this.#fencingTargets,
        overdue: this.#overdue,
      },
      runtime.clock.nowMs(),
    );
  }

  #storer(state: NodeCheckState): NodeReconcile["storeStatus"] {
    return async (check, { gate, nodes, status }, nowMs, signal) => {
      const entries = status.unhealthyNodes ?? [];
      state.reportedNodes = new Set([...nodes, ...entries].map(({ name }) => name));
      await storeNodeCheckStatus(this.#checks, check, status, signal);
      this.#deps.metrics.follow(check.status, status, nowMs);
      const { compiled } = state;
      const threshold = "policy" in compiled ? compiled.policy.threshold : undefined;
      this.#deps.metrics.keep(check.metadata.name, { gate, nodes }, threshold);
    };
  }

  /** Ends the watches of kinds that no health check uses any more. */
  #retainKinds(): void {
    const checks = [...this.#checks.values()];
    const recorded = checks.flatMap(({ status }) =>
      (status.unhealthyNodes ?? []).flatMap(({ remediations = [] }) =>
        remediations.map(({ resource }) => kindKey(resource.apiVersion ?? "", resource.kind ?? "")),
      ),
    );
    const steps = checks.flatMap(({ metadata }) => {
      const compiled = this.#states.get(metadata.name)?.compiled;
      return compiled !== undefined && "policy" in compiled ? compiled.policy.steps : [];
    });
    retainKinds({ templates: this.#templates, remediations: this.#remediations }, steps, recorded);
  }
}
