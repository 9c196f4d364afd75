import type { Node } from "../../../api/kubernetes/core.ts";
import type { KubeClient } from "../../../kube/client.ts";
import type { ResourceType } from "../../../kube/resource.ts";
import type { Clock } from "../../../runtime/clock.ts";
import type { Logger } from "../../../telemetry/logger.ts";
import type { Deferral } from "../../shared/model/deferral.ts";
import type { ObservedHost } from "../../shared/model/observed-host.ts";
import type { Remediation } from "../../shared/model/remediation.ts";
import type { FencingTargetWatch } from "../../shared/views/fencing-target-watch.ts";
import type { OverdueNodes } from "../../shared/views/overdue-nodes.ts";
import type { RemediationStore } from "../../shared/views/remediation-store.ts";
import { renewLeaseAfterMs } from "../decide/lease.ts";
import type { NodePolicy } from "../decide/policy.ts";
import type { HealthCheckObject } from "../snapshot/health-check.ts";
import type { NodeTracker } from "../snapshot/node-tracker.ts";
import type { NodeActionEvent } from "../decide/observe.ts";
import type { NodeLeases } from "./node-lease.ts";
import { leaseHolder } from "./node-lease.ts";

/** How soon a remediation lease of another holder is requested again. */
const LEASE_RETRY_MS = 15_000;

export interface NodeActionDeps {
  client: KubeClient;
  clock: Clock;
  logger: Logger;
  remediations: RemediationStore;
  leases: NodeLeases;
  fencingTargets: Pick<FencingTargetWatch, "readHost">;
  /** Which nodes do not renew their node leases; undefined if node leases are not watched. */
  overdue: OverdueNodes | undefined;
  /** Label of a node that names its failure zone. */
  zoneLabel: string;
}

/** What an action needs from its reconcile. */
export interface NodeActionContext {
  check: HealthCheckObject;
  policy: NodePolicy;
  tracker: NodeTracker;
  /** Whether the cluster is OKD, so that the quorum of etcd can be checked. */
  isOkd: boolean;
  /** Reads a node live; undefined if there is none. */
  readNode: (nodeName: string, signal: AbortSignal) => Promise<Node | undefined>;
  /** Ensures that the current nodes are known, by a live list if the view may be late. */
  confirmNodes: (signal: AbortSignal) => Promise<void>;
  /** Whether a remediation may still start. Live reads have taken time since the decision. */
  mayStart: () => boolean;
  /** The same if nodes whose renewals are overdue count as unhealthy. Call it after `mayStart`. */
  mayStartEarly: () => boolean;
  /**
   * The node in the view and, if there is a recent one, in the live list; undefined for each in which it does not
   * exist. Sends no request.
   */
  nodesNamed: (nodeName: string) => readonly (Node | undefined)[];
  /** What is known about the host of a node now. Sends no request. */
  hostOf: (nodeName: string) => ObservedHost;
}

/** Defers the remediation of a node. */
export function deferred(
  deps: NodeActionDeps,
  nodeName: string,
  deferral: Omit<Deferral, "untilMs">,
  forMs: number,
): NodeActionEvent {
  return { type: "deferred", nodeName, deferral: { ...deferral, untilMs: deps.clock.nowMs() + forMs } };
}

export async function takeLease(
  { leases, clock }: NodeActionDeps,
  { check }: NodeActionContext,
  node: Node,
  durationMs: number,
  signal: AbortSignal,
): Promise<Extract<NodeActionEvent, { type: "leaseTaken" | "leaseRefused" }>> {
  const nodeName = node.metadata.name;
  const answer = await leases.take(node, leaseHolder(check), durationMs, signal);
  const nowMs = clock.nowMs();
  if (answer.held) return { type: "leaseTaken", nodeName, renewAtMs: nowMs + renewLeaseAfterMs(durationMs) };
  const deferral = { reason: answer.reason, cause: "lease", untilMs: nowMs + LEASE_RETRY_MS } as const;
  return { type: "leaseRefused", nodeName, deferral };
}

/** The resource type of a remediation; undefined if its kind is not watched now. */
export function typeOf(deps: NodeActionDeps, { object }: Remediation): ResourceType | undefined {
  const state = deps.remediations.state(object.apiVersion, object.kind);
  return state.state === "watched" ? state.type : undefined;
}
