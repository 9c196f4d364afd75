import type { Registry } from "prom-client";
import { COMPONENTS } from "../../config/parsers.ts";
import type { Component } from "../../config/parsers.ts";
import type { RunOptions } from "../../config/resolve-run-options.ts";
import { ClusterLeases } from "../../kube/lease/cluster-leases.ts";
import type { EventNote, EventRecorder } from "../../kube/events.ts";
import type { LeaderElectionDeps } from "../../kube/lease/elector.ts";
import type { KubeObject } from "../../kube/resource.ts";
import { collectedGauge, metric } from "../../telemetry/metric.ts";

/**
 * The namespace of the Leases that keep installations apart. Every cluster has it, and all installations use the same
 * one.
 */
export const CLUSTER_LEASE_NAMESPACE = "kube-system";

export const CLUSTER_LEASE_METRIC = metric({
  name: "ironfence_cluster_lease",
  type: "gauge",
  help: "1 for the state of each [Lease that keeps installations apart](../explanation/limits.md#two-installations-in-one-cluster), as this agent read it last: `taken` by another installation, `refused` by the API server, `failing` if the last call failed",
  labels: {
    lease: COMPONENTS.map((component) => `${CLUSTER_LEASE_NAMESPACE}/${clusterLeaseName(component)}`),
    state: ["ours", "free", "taken", "refused", "failing", "unknown"],
  },
});

/** Each component has its own Lease, so that one installation may run the detector and another one the remediator. */
export function clusterLeaseName(component: Component): string {
  return `ironfence-${component}`;
}

export interface InstallationDeps extends LeaderElectionDeps {
  events: EventRecorder;
  registry: Registry;
  /** The agent's own Lease, to which the Kubernetes Events refer. */
  lease: KubeObject;
}

/**
 * The installation that an agent belongs to. It finds out whether this installation or another one works in the
 * cluster, and reports it.
 */
export class Installation {
  readonly leases: ClusterLeases;
  readonly #deps: InstallationDeps;
  #lastReport = "";

  constructor(deps: InstallationDeps, options: Pick<RunOptions, "namespace" | "leaseName" | "components" | "observe">) {
    this.#deps = deps;
    this.leases = new ClusterLeases(deps, {
      namespace: CLUSTER_LEASE_NAMESPACE,
      // An agent that only observes may run next to any other installation.
      names: (options.observe ? [] : [...options.components]).sort().map(clusterLeaseName),
      installation: `${options.namespace}/${options.leaseName}`,
      onChange: () => this.report(),
    });
    this.#count();
  }

  /** Why this installation stands by, in words; empty if nothing is known that keeps it from working. */
  get standsBy(): string[] {
    return [...this.#others, ...this.#failing];
  }

  get #others(): string[] {
    return this.leases.blocking.flatMap(({ lease, state }) =>
      state.is === "taken" ? [standsByText(lease, state.by)] : [],
    );
  }

  get #failing(): string[] {
    return this.leases.blocking.flatMap(({ lease, state }) =>
      state.is === "failing" ? [`the Lease ${lease} cannot be used, so this installation stands by: ${state.why}`] : [],
    );
  }

  /** Why a second installation could work at the same time, in words; empty if the Leases prevent that. */
  get unguarded(): string[] {
    return this.leases.states.flatMap(({ lease, state }) =>
      state.is === "refused" ? [refusedText(lease, state.why)] : [],
    );
  }

  /** Reports a change once, in the log and in a Kubernetes Event. */
  report(): void {
    const [others, unguarded] = [this.#others, this.unguarded];
    const report = JSON.stringify([others, unguarded]);
    if (report === this.#lastReport) return;
    this.#lastReport = report;
    for (const note of others) this.#warn("AnotherInstallation", note);
    for (const note of unguarded) this.#warn("ClusterLeaseRefused", note);
  }

  #warn(reason: string, note: string): void {
    const { logger, events, lease } = this.#deps;
    logger.warn({ problem: note }, "another installation may work in the same cluster");
    events.record({ regarding: lease, type: "Warning", reason, action: "Lead", note } satisfies EventNote);
  }

  #count(): void {
    collectedGauge(CLUSTER_LEASE_METRIC, this.#deps.registry, (set) => {
      for (const { lease, state } of this.leases.states) set({ lease, state: state.is }, 1);
    });
  }
}

function standsByText(lease: string, by: string): string {
  return `the installation ${by} holds the Lease ${lease}, so this installation stands by: remove one of the two installations, or give them different --components`;
}

function refusedText(lease: string, why: string): string {
  return `this agent has no permission to use the Lease ${lease}, so it would not notice a second installation: apply your installation (deploy/kustomize or the Helm chart): ${why}`;
}
