import { LEASES, NODES } from "../../api/kubernetes/core-types.ts";
import type { Lease, Node } from "../../api/kubernetes/core.ts";
import { NODE_HEALTH_CHECKS } from "../../api/ironfence/node-health-check.ts";
import { trimNode } from "../../api/kubernetes/trim.ts";
import { KubeError } from "../../kube/errors.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import type { Watched } from "../../kube/watched.ts";
import { sleep } from "../../runtime/clock.ts";
import { parseTimeMs } from "../../runtime/time.ts";
import { ETCD_RETRY_MS } from "./effects/create-remediation.ts";
import { newNodeCheckState } from "./snapshot/check-state.ts";
import type { NodeCheckDecision, NodeCheckSnapshot, PlatformFacts } from "./decide/decision.ts";
import type { NodeHealthCheckOptions } from "./run.ts";
import { findEtcdObjection } from "./effects/etcd-guard.ts";
import type { HealthCheckObject } from "./snapshot/health-check.ts";
import { trimHealthCheck } from "./snapshot/health-check.ts";
import { FencingTargetWatch } from "../shared/views/fencing-target-watch.ts";
import { leaseHolder, leaseName, readTaken } from "./effects/node-lease.ts";
import { renewLeaseAfterMs } from "./decide/lease.ts";
import { decideNodeCheck, decideInvalid } from "./decide/decide.ts";
import { Platform } from "./snapshot/platform.ts";
import type { NodePolicy } from "./decide/policy.ts";
import { remediationKind } from "../shared/model/template-reference.ts";
import { RemediationStore } from "../shared/views/remediation-store.ts";
import type { Peer } from "./snapshot/snapshot.ts";
import { takeNodeSnapshot } from "./snapshot/snapshot.ts";
import type { Deferral } from "../shared/model/deferral.ts";
import { describeClockOffset } from "../shared/model/clock-skew.ts";
import { MonotonicTimes } from "../shared/views/watched-nodes/condition-times.ts";
import type { Resolution } from "../shared/views/template-resolver.ts";
import { isControlPlane } from "../../nodes/control-plane.ts";
import { TemplateResolver } from "../shared/views/template-resolver.ts";

/** How often pending lookups of kinds are polled. */
const KINDS_POLL_MS = 20;

/** One NodeHealthCheck, and the decision that the detector would make for it now. */
export interface EvaluatedNodeCheck {
  check: HealthCheckObject;
  /** The input of the decision; undefined if the spec is invalid. */
  snapshot: NodeCheckSnapshot | undefined;
  decision: NodeCheckDecision;
}

/** Every health check of a cluster, at one moment. */
export interface EvaluatedNodeChecks {
  nowMs: number;
  nodes: Watched<Node>;
  checks: EvaluatedNodeCheck[];
}

/**
 * Decides for every health check as the controller does, by objects that it reads now, and runs no action.
 *
 * It does not have two facts that only the running agent knows: how late the agent's view is, and which remediations
 * the agent is creating at this moment. It reads the holder of a remediation lease, but does not take the lease.
 *
 * @param signal should have a deadline: pending lookups of kinds are repeated until it aborts.
 * @throws KubeError if something that the decision depends on cannot be read.
 */
export async function evaluateNodeHealthChecks(
  deps: { runtime: KubeRuntime } & NodeHealthCheckOptions,
  signal: AbortSignal,
): Promise<EvaluatedNodeChecks> {
  const { runtime, leaseNamespace, namespace } = deps;
  const scope = new AbortController();
  const reading = AbortSignal.any([signal, scope.signal]);
  const remediations = new RemediationStore(runtime, () => undefined, reading);
  const templates = new TemplateResolver(runtime, remediations, () => undefined, reading);
  const platform = new Platform(runtime, () => undefined, reading);
  const fencingTargets = new FencingTargetWatch(runtime, namespace, () => undefined, reading);
  try {
    const nodes = runtime.watch({ type: NODES, trim: trimNode }, reading);
    const checks = runtime.watch({ type: NODE_HEALTH_CHECKS, trim: trimHealthCheck }, reading);
    await Promise.all([nodes.whenSynced(reading), checks.whenSynced(reading)]);
    const leases = await runtime.client.list<Lease>(LEASES, { namespace: leaseNamespace }, reading);
    const times = new MonotonicTimes(runtime.clock, runtime.clockOffset?.());
    const peers = [...checks.values()].map((check): Peer => ({
      check,
      state: newNodeCheckState(check, nodes.values(), runtime.clock.nowMs(), times),
    }));
    const platformFacts = await readPlatform(runtime, platform, reading);
    const resolved = await resolveAll(runtime, peers, { remediations, templates }, reading);
    if (peers.some(({ state }) => "policy" in state.compiled && state.compiled.policy.skipsDurationIfOff)) {
      while (fencingTargets.pending) await sleep(runtime.clock, KINDS_POLL_MS, reading);
      // Throws if this user cannot read them, because the agent may have that permission and decide differently.
      if (fencingTargets.refusal !== undefined)
        throw new KubeError("Forbidden", fencingTargets.refusal, { status: 403 });
    }
    const nowMs = runtime.clock.nowMs();
    for (const peer of peers) readLeases(peer, { nodes, leases: leases.items }, nowMs);
    if (platformFacts.isOkd) await checkEtcd(runtime, peers, reading);
    const found = [...remediations.values()];
    const decided = peers.map((peer): EvaluatedNodeCheck => {
      const { check, state } = peer;
      if ("problem" in state.compiled) {
        const { problem } = state.compiled;
        return {
          check,
          snapshot: undefined,
          decision: decideInvalid(check.status, problem, nowMs, check.metadata.generation),
        };
      }
      const sources = {
        check,
        ...state.compiled,
        state,
        peers: peers.filter((other) => other !== peer),
        nodes,
        liveNodes: undefined,
        remediations: found,
        starting: new Map<string, string>(),
        templates: resolved.get(check) ?? [],
        platform: platformFacts,
        clockSkew: describeClockOffset(runtime.clockOffset?.()),
        canSee: (record: Parameters<RemediationStore["canSee"]>[0]) => remediations.canSee(record),
        blocked: undefined,
        fencingTargets: asJustArrived(fencingTargets),
      };
      const snapshot = takeNodeSnapshot(sources, nowMs);
      return { check, snapshot, decision: decideNodeCheck(snapshot, nowMs) };
    });
    return { nowMs, nodes, checks: decided };
  } finally {
    scope.abort(new Error("everything is read"));
    await Promise.all([remediations, templates, platform, fencingTargets].map((reader) => reader.settled()));
  }
}

/** This process did not observe when a proof arrived, so the time in the proof is the only measure of its age. */
function asJustArrived(
  fencingTargets: FencingTargetWatch,
): Pick<FencingTargetWatch, "hostOf" | "problem" | "fenceableSinceMs" | "provenEarly"> {
  return {
    get problem() {
      return fencingTargets.problem;
    },
    provenEarly: () => fencingTargets.provenEarly(),
    fenceableSinceMs: (nodeName) => fencingTargets.fenceableSinceMs(nodeName),
    hostOf: (nodeName) => {
      const { targets, ...host } = fencingTargets.hostOf(nodeName);
      return { ...host, targets: targets.map(({ target }) => ({ target, proofArrivedAgoMs: 0 })) };
    },
  };
}

async function readPlatform(runtime: KubeRuntime, platform: Platform, signal: AbortSignal): Promise<PlatformFacts> {
  for (;;) {
    const facts = platform.read();
    if (facts !== "pending") {
      // Throws if this user cannot read these kinds, because the agent may have that permission and decide differently.
      if (facts.unknown !== undefined) throw new KubeError("Forbidden", facts.unknown, { status: 403 });
      return facts;
    }
    await sleep(runtime.clock, KINDS_POLL_MS, signal);
  }
}

/**
 * Reads every template and remediation that a health check names. All kinds are requested before the first wait, so
 * that they are read in parallel.
 */
async function resolveAll(
  runtime: KubeRuntime,
  peers: readonly Peer[],
  from: { remediations: RemediationStore; templates: TemplateResolver },
  signal: AbortSignal,
): Promise<Map<HealthCheckObject, Exclude<Resolution, "pending">>> {
  const resolved = new Map<HealthCheckObject, Exclude<Resolution, "pending">>();
  for (;;) {
    let pending = false;
    for (const { check, state } of peers) {
      for (const { apiVersion = "", kind = "" } of recorded(check)) {
        if (from.remediations.state(apiVersion, kind).state === "pending") pending = true;
      }
      if ("problem" in state.compiled) continue;
      const { policy } = state.compiled;
      const resolution = await from.templates.resolve(policy.steps, signal);
      if (resolution === "pending") pending = true;
      else resolved.set(check, resolution);
      assertReadable(policy, from.remediations);
    }
    if (!pending) return resolved;
    await sleep(runtime.clock, KINDS_POLL_MS, signal);
  }
}

const recorded = ({ status }: HealthCheckObject) =>
  (status.unhealthyNodes ?? []).flatMap(({ remediations = [] }) => remediations.map(({ resource }) => resource));

// Throws if this user cannot read a kind. The agent may have that permission, and would then decide differently.
function assertReadable({ steps }: NodePolicy, remediations: RemediationStore): void {
  for (const { template } of steps) {
    const state = remediations.state(template.apiVersion, remediationKind(template));
    if (state.state === "forbidden") throw new KubeError("Forbidden", state.message, { status: 403 });
  }
}

/** Checks etcd for the unhealthy nodes of the control plane, as the controller does before it creates a remediation. */
async function checkEtcd({ client, clock }: KubeRuntime, peers: readonly Peer[], signal: AbortSignal): Promise<void> {
  for (const { state } of peers) {
    if ("problem" in state.compiled) continue;
    for (const [name, { node, health }] of state.compiled.tracker.notable) {
      if (health.state !== "unhealthy" || !isControlPlane(node)) continue;
      const reason = await findEtcdObjection(client, name, signal);
      if (reason !== undefined) {
        const deferral: Deferral = { reason, untilMs: clock.nowMs() + ETCD_RETRY_MS, cause: "etcd" };
        state.observations.add(name, { type: "deferred", nodeName: name, deferral });
      }
    }
  }
}

/** Restores from the remediation leases what the controller observes when it tries to take them. */
function readLeases(
  { check, state }: Peer,
  cluster: { nodes: Watched<Node>; leases: readonly Lease[] },
  nowMs: number,
): void {
  const byName = new Map(cluster.leases.map((lease) => [lease.metadata.name, lease]));
  const holder = leaseHolder(check);
  for (const { metadata } of cluster.nodes.values()) {
    const { name: nodeName } = metadata;
    const lease = byName.get(leaseName(nodeName));
    if (lease === undefined) continue;
    const taken = readTaken(lease, holder, nowMs);
    if (taken !== undefined) {
      state.observations.add(nodeName, { type: "deferred", nodeName, deferral: { ...taken, cause: "lease" } });
    }
    const { holderIdentity, renewTime, leaseDurationSeconds = 0 } = lease.spec;
    const renewedMs = parseTimeMs(renewTime);
    if (holderIdentity === holder && renewedMs !== undefined) {
      const renewAtMs = renewedMs + renewLeaseAfterMs(leaseDurationSeconds * 1_000);
      state.observations.add(nodeName, { type: "leaseTaken", nodeName, renewAtMs });
    }
  }
}
