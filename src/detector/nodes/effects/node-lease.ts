import { LEASES } from "../../../api/kubernetes/core-types.ts";
import type { Lease, Node } from "../../../api/kubernetes/core.ts";
import type { KubeClient } from "../../../kube/client.ts";
import { isKubeError } from "../../../kube/errors.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { parseTimeMs, toMicroTime } from "../../../runtime/time.ts";
import type { Logger } from "../../../telemetry/logger.ts";
import type { HealthCheckObject } from "../snapshot/health-check.ts";

/** How long a lease of another holder still counts after its end, because the clock of that holder may differ. */
const SKEW_MS = 15_000;

export type LeaseResult = { held: true } | { held: false; reason: string };

/**
 * The remediation leases (`node-<node>`, medik8s), by which node maintenance tools and remediators exclude each other.
 * If their namespace does not exist, no other tool can hold a lease, so the lease counts as held by the agent, and this
 * is logged once. If RBAC does not allow the agent to write leases, the holder is unknown, so the lease counts as
 * taken.
 */
export class NodeLeases {
  readonly #client: KubeClient;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #namespace: string;
  #warned = false;

  constructor(deps: { client: KubeClient; clock: Clock; logger: Logger }, namespace: string) {
    this.#client = deps.client;
    this.#clock = deps.clock;
    this.#logger = deps.logger;
    this.#namespace = namespace;
  }

  /** Takes or renews the lease of a node, for `durationMs` from now. */
  async take(node: Node, holder: string, durationMs: number, signal: AbortSignal): Promise<LeaseResult> {
    try {
      await this.#client.create<Lease>(LEASES, this.#newLease(node, holder, durationMs), {}, signal);
      return { held: true };
    } catch (error) {
      if (isKubeError(error, "AlreadyExists")) return this.#takeExisting(node, holder, durationMs, signal);
      if (isKubeError(error, "Forbidden")) return { held: false, reason: `cannot take its lease: ${error.message}` };
      if (!isKubeError(error, "NotFound")) throw error;
      if (!this.#warned)
        this.#logger.warn(
          { namespace: this.#namespace },
          "the namespace of the remediation leases does not exist, so other tools cannot hold one",
        );
      this.#warned = true;
      return { held: true };
    }
  }

  /** Releases the lease if `holder` holds it. */
  async release(nodeName: string, holder: string, signal: AbortSignal): Promise<void> {
    const key = { namespace: this.#namespace, name: leaseName(nodeName) };
    try {
      const lease = await this.#client.get<Lease>(LEASES, key, signal);
      if (lease.spec.holderIdentity !== holder) return;
      const { uid, resourceVersion } = lease.metadata;
      await this.#client.delete(LEASES, key, { guard: { uid, resourceVersion } }, signal);
    } catch (error) {
      // The lease was deleted, or another holder took it after it was read.
      if (!isKubeError(error, "NotFound", "Conflict")) throw error;
    }
  }

  async #takeExisting(node: Node, holder: string, durationMs: number, signal: AbortSignal): Promise<LeaseResult> {
    const key = { namespace: this.#namespace, name: leaseName(node.metadata.name) };
    try {
      const lease = await this.#client.get<Lease>(LEASES, key, signal);
      const taken = readTaken(lease, holder, this.#clock.nowMs());
      if (taken !== undefined) return { held: false, reason: taken.reason };
      const { holderIdentity, leaseTransitions = 0 } = lease.spec;
      const isOurs = holderIdentity === holder;
      const now = toMicroTime(this.#clock.nowMs());
      const spec = {
        holderIdentity: holder,
        leaseDurationSeconds: Math.ceil(durationMs / 1_000),
        renewTime: now,
        ...(!isOurs && { acquireTime: now, leaseTransitions: leaseTransitions + 1 }),
      };
      const { uid, resourceVersion } = lease.metadata;
      await this.#client.mergePatch<Lease>(LEASES, key, { uid, resourceVersion }, { spec }, {}, signal);
      return { held: true };
    } catch (error) {
      if (isKubeError(error, "NotFound", "Conflict")) return { held: false, reason: "its lease has just changed" };
      throw error;
    }
  }

  #newLease(node: Node, holder: string, durationMs: number) {
    const { name, uid } = node.metadata;
    const now = toMicroTime(this.#clock.nowMs());
    return {
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: {
        namespace: this.#namespace,
        name: leaseName(name),
        ownerReferences: [{ apiVersion: "v1", kind: "Node", name, uid }],
      },
      spec: {
        holderIdentity: holder,
        leaseDurationSeconds: Math.ceil(durationMs / 1_000),
        acquireTime: now,
        renewTime: now,
        leaseTransitions: 0,
      },
    };
  }
}

/** Whether another holder than `holder` has the lease, and until when that counts; undefined if the lease is free. */
export function readTaken(
  { spec }: Lease,
  holder: string,
  nowMs: number,
): { reason: string; untilMs: number } | undefined {
  const { holderIdentity = "", renewTime, leaseDurationSeconds } = spec;
  const renewedMs = parseTimeMs(renewTime);
  if (holderIdentity === "" || holderIdentity === holder) return undefined;
  if (renewedMs === undefined || leaseDurationSeconds === undefined) return undefined;
  const untilMs = renewedMs + leaseDurationSeconds * 1_000 + SKEW_MS;
  return untilMs < nowMs ? undefined : { reason: `node lease is already taken by ${holderIdentity}`, untilMs };
}

/** The name of the remediation lease of a node. */
export function leaseName(nodeName: string): string {
  return `node-${nodeName}`;
}

/** The holder of the remediation leases that a health check takes. */
export function leaseHolder(check: HealthCheckObject): string {
  return `NodeHealthCheck-${check.metadata.name}`;
}
