import { NODES } from "../../../api/core-types.ts";
import type { Node } from "../../../api/core.ts";
import { trimNode } from "../../../api/trim.ts";
import type { KubeClient } from "../../../kube/client.ts";
import { isKubeError } from "../../../kube/errors.ts";
import type { ResourceType } from "../../../kube/resource.ts";
import type { Clock } from "../../../runtime/clock.ts";
import type { Logger } from "../../../telemetry/logger.ts";
import type { Deferral } from "../../shared/model/deferral.ts";
import type { ObservedHost } from "../../shared/model/observed-host.ts";
import type { Remediation } from "../../shared/model/remediation.ts";
import type { FencingTargetWatch } from "../../shared/views/fencing-target-watch.ts";
import type { RemediationStore } from "../../shared/views/remediation-store.ts";
import { renewLeaseAfterMs } from "../decide/decide-node.ts";
import type { Policy } from "../decide/policy.ts";
import type { HealthCheckObject } from "../snapshot/health-check.ts";
import type { NodeTracker } from "../snapshot/node-tracker.ts";
import type { NodeEvent } from "../snapshot/observe.ts";
import type { NodeLeases } from "./node-lease.ts";
import { leaseHolder } from "./node-lease.ts";

/** How soon a lease is requested again that another holder has. */
const LEASE_RETRY_MS = 15_000;

export interface ActionDeps {
  client: KubeClient;
  clock: Clock;
  logger: Logger;
  remediations: RemediationStore;
  leases: NodeLeases;
  fencingTargets: Pick<FencingTargetWatch, "readHost">;
}

/** The reconcile that an action belongs to. */
export interface ActionContext {
  check: HealthCheckObject;
  policy: Policy;
  tracker: NodeTracker;
  /** Whether this is OKD, which guards etcd's quorum. */
  isOkd: boolean;
  /** Makes sure that the nodes are known as they are, by a list if the view may be behind. */
  confirmNodes: (signal: AbortSignal) => Promise<void>;
  /** Whether a remediation may still start now: the decision is some requests old when its last action runs. */
  mayStart: () => boolean;
  /** A node as it is known now, without a request: in the view, and in a list if there is a recent one; undefined: gone. */
  nodesNamed: (nodeName: string) => readonly (Node | undefined)[];
  /** What is known of a node's host now, without a request. */
  hostOf: (nodeName: string) => ObservedHost;
}

/** Defers the remediation of a node. */
export function deferred(
  deps: ActionDeps,
  nodeName: string,
  deferral: Omit<Deferral, "untilMs">,
  forMs: number,
): NodeEvent {
  return { type: "deferred", nodeName, deferral: { ...deferral, untilMs: deps.clock.nowMs() + forMs } };
}

export async function takeLease(
  { leases, clock }: ActionDeps,
  { check }: ActionContext,
  node: Node,
  durationMs: number,
  signal: AbortSignal,
): Promise<Extract<NodeEvent, { type: "leaseTaken" | "leaseRefused" }>> {
  const nodeName = node.metadata.name;
  const answer = await leases.take(node, leaseHolder(check), durationMs, signal);
  const nowMs = clock.nowMs();
  if (answer.held) return { type: "leaseTaken", nodeName, renewAtMs: nowMs + renewLeaseAfterMs(durationMs) };
  const deferral = { reason: answer.reason, cause: "lease", untilMs: nowMs + LEASE_RETRY_MS } as const;
  return { type: "leaseRefused", nodeName, deferral };
}

/** Reads a node now; undefined if there is none. */
export async function readNode(deps: ActionDeps, name: string, signal: AbortSignal): Promise<Node | undefined> {
  try {
    return trimNode(await deps.client.get(NODES, { name }, signal));
  } catch (error) {
    if (isKubeError(error, "NotFound")) return undefined;
    throw error;
  }
}

/** How the API server serves a remediation's kind; undefined if it cannot be seen now. */
export function typeOf(deps: ActionDeps, { object }: Remediation): ResourceType | undefined {
  const state = deps.remediations.state(object.apiVersion, object.kind);
  return state.state === "watched" ? state.type : undefined;
}
