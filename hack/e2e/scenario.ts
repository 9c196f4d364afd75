import assert from "node:assert/strict";
import { applyObject } from "../lib/apply.ts";
import type { Manifest } from "../lib/apply.ts";
import { startAgent } from "./agent.ts";
import type { Agent, AgentStart } from "./agent.ts";
import { OUT_OF_SERVICE, conditionOf, hasTaint, openChronicle, readyOf } from "./chronicle.ts";
import type { Chronicle, NodeView, RemediationView } from "./chronicle.ts";
import { eventually } from "./eventually.ts";
import { applyFencingTarget, applyHealthCheck } from "./examples.ts";
import type { HealthCheckExample, TargetOverrides } from "./examples.ts";
import { DEFAULT_WORLD, NAMESPACE, startWorld } from "./world.ts";
import type { World, WorldOptions } from "./world.ts";

// Steps that several end-to-end tests share.

const START_TIMEOUT_MS = 120_000;
const TARGETS_READY_TIMEOUT_MS = 60_000;
export const REMEDIATION_TIMEOUT_MS = 120_000;

export const REMEDIATIONS = "/apis/ironfence.io/v1alpha1/baremetalremediations";
export const TARGETS = `/apis/ironfence.io/v1alpha1/namespaces/${NAMESPACE}/fencingtargets`;
const LEASE = `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases/ironfence`;
export const HEALTH_CHECK = "/apis/remediation.medik8s.io/v1alpha1/nodehealthchecks/workers";

/** The fields of a `NodeHealthCheck` that tests read. */
export interface HealthCheckView {
  status?: {
    observedNodes?: number;
    healthyNodes?: number;
    unhealthyNodes?: { name: string; remediations?: { templateName?: string; resource: { name?: string } }[] }[];
    inFlightRemediations?: Record<string, string>;
    phase?: string;
    conditions?: { type: string; status: string; reason: string; message: string }[];
  };
}

/** A world with agents that are distinguished by number. */
export interface Scenario {
  world: World;
  chronicle: Chronicle;
  agents: Agent[];
  startAgent(flags?: readonly string[], start?: AgentStart): Promise<Agent>;
  stop(): Promise<void>;
}

export const WORKERS = ["worker-1", "worker-2", "worker-3", "worker-4"];

/** Starts a world of four workers. The test starts the agents. */
export async function startScenario(options: Partial<WorldOptions> = {}): Promise<Scenario> {
  const nodes = WORKERS.map((name) => ({ name, labels: { "node-role.kubernetes.io/worker": "" } }));
  const world = await startWorld({ ...DEFAULT_WORLD, nodes, ...options }, AbortSignal.timeout(START_TIMEOUT_MS));
  const agents: Agent[] = [];
  const chronicle = openChronicle(world);
  return {
    world,
    chronicle,
    agents,
    startAgent: async (flags = [], start) => {
      const agent = await startAgent(world, `agent-${agents.length + 1}`, flags, start);
      agents.push(agent);
      return agent;
    },
    stop: async () => {
      await Promise.all(agents.map((agent) => agent.stop()));
      chronicle.close();
      await world.stop();
    },
  };
}

/** Applies the examples for every worker and waits until each FencingTarget is Ready. */
export async function configure(
  { world }: Scenario,
  overrides: {
    target?: (node: string) => TargetOverrides;
    healthCheck?: (manifest: Manifest) => Manifest;
    example?: HealthCheckExample;
  } = {},
): Promise<void> {
  for (const node of WORKERS) await applyFencingTarget(world, node, overrides.target?.(node));
  await applyHealthCheck(world, overrides.healthCheck, overrides.example);
}

/** Waits until the FencingTargets of `nodes` are Ready. */
export async function targetsReady(scenario: Scenario, nodes: readonly string[] = WORKERS): Promise<void> {
  for (const node of nodes) {
    await explain(scenario, `FencingTarget ${node} is Ready`, TARGETS_READY_TIMEOUT_MS, async () => {
      const target = await scenario.world.api.get<TargetView>(`${TARGETS}/${node}`);
      return target.status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True");
    });
  }
}

/** The fields of a `FencingTarget` that tests read. */
export interface TargetView {
  status?: {
    powerState?: string;
    owner?: { uid: string };
    conditions?: { type: string; status: string; reason: string; message: string }[];
  };
}

/** `eventually`, whose error shows the nodes, the custom resources and the agents' logs. */
export function explain<T>(
  { world, agents }: { world: Pick<World, "api">; agents: readonly Agent[] },
  what: string,
  timeoutMs: number,
  ask: () => Promise<T | undefined | false>,
): Promise<T> {
  return eventually(what, timeoutMs, ask, async () => {
    const nodes = await world.api.list<NodeView>("/api/v1/nodes");
    const remediations = await world.api.list<RemediationView>(REMEDIATIONS);
    const targets = await world.api.list<TargetView>(TARGETS);
    const healthCheck = await world.api.find<HealthCheckView>(HEALTH_CHECK);
    return [
      ...nodes.map((node) => {
        const taints = (node.spec.taints ?? []).map(({ key, effect }) => `${key}:${effect}`).join(" ") || "no taints";
        return `${node.metadata.name}: Ready=${readyOf(node) ?? "?"}, ${taints}`;
      }),
      ...remediations.map(({ metadata, status }) => JSON.stringify({ remediation: metadata.name, status })),
      ...targets.map(({ status }) => JSON.stringify({ target: status })),
      JSON.stringify({ healthCheck: healthCheck?.status }),
      ...agents.map((agent) => `${agent.instance} (${agent.running ? "running" : "ended"}):\n${agent.log()}`),
    ].join("\n");
  });
}

/** Kubernetes removes its own taints a moment after the node is Ready. */
const isSettled = (node: NodeView): boolean =>
  readyOf(node) === "True" && (node.spec.taints ?? []).every(({ key }) => !key.startsWith("node.kubernetes.io/"));

/**
 * Waits until all workers are Ready and have no taint of Kubernetes. After the API server was away, the controller
 * manager sees old leases for up to a minute. Until then it may report a worker Unknown that renews its lease.
 */
export function workersSettle(scenario: Scenario): Promise<unknown> {
  return explain(scenario, "all workers are Ready, without a taint of Kubernetes", REMEDIATION_TIMEOUT_MS, async () => {
    const nodes = await scenario.world.api.list<NodeView>("/api/v1/nodes");
    return nodes.filter(({ metadata }) => WORKERS.includes(metadata.name)).every(isSettled);
  });
}

/** The marks of users on a node, which a remediation must leave as they were. */
export interface NodeMarks {
  labels: Record<string, string>;
  annotations: Record<string, string>;
  taints: { key: string; value?: string; effect: string }[];
  unschedulable: boolean;
}

/** A node's labels, annotations and taints, without the times at which taints were added. */
export async function marksOf({ world }: Scenario, name: string): Promise<NodeMarks> {
  const { metadata, spec } = await world.api.get<NodeView>(`/api/v1/nodes/${name}`);
  return {
    labels: metadata.labels ?? {},
    annotations: metadata.annotations ?? {},
    taints: (spec.taints ?? []).map(({ key, value, effect }) => ({ key, ...(value && { value }), effect })),
    unschedulable: spec.unschedulable ?? false,
  };
}

/** Adds a label, an annotation and a taint of a user to a node. A remediation must keep them. */
export async function decorate({ world }: Scenario, node: string): Promise<void> {
  await world.api.mergePatch(`/api/v1/nodes/${node}`, {
    metadata: { labels: { "example.com/rack": "r7" }, annotations: { "example.com/note": "keep this" } },
    spec: { taints: [{ key: "example.com/dedicated", value: "db", effect: "PreferNoSchedule" }] },
  });
}

/** Waits until a remediation of a node exists. */
export function remediationOf(scenario: Scenario, node: string): Promise<RemediationView> {
  return explain(scenario, `a remediation of ${node}`, REMEDIATION_TIMEOUT_MS, () =>
    Promise.resolve(scenario.chronicle.remediations(node).at(-1)?.object),
  );
}

/** Waits until a node is healthy again, its remediation is gone, and the health check no longer lists it. */
export async function remediationEnds(scenario: Scenario, node: string, before: NodeMarks): Promise<void> {
  const { world } = scenario;
  await explain(scenario, `${node} is back and its remediation gone`, REMEDIATION_TIMEOUT_MS, async () => {
    const view = await world.api.get<NodeView>(`/api/v1/nodes/${node}`);
    const remediations = await world.api.list<RemediationView>(REMEDIATIONS);
    return isSettled(view) && remediations.length === 0;
  });
  await explain(scenario, "the health check's status is clean", 30_000, async () => {
    const { status } = await world.api.get<HealthCheckView>(HEALTH_CHECK);
    return (
      status?.phase === "Enabled" &&
      (status.unhealthyNodes ?? []).length === 0 &&
      Object.keys(status.inFlightRemediations ?? {}).length === 0 &&
      status.healthyNodes === WORKERS.length &&
      status.observedNodes === WORKERS.length
    );
  });
  assert.deepEqual(await marksOf(scenario, node), before, "labels, annotations and taints are as they were");
  assert.equal(await world.bmc.powerState(world.host(node).systemUuid), "On");
  const target = await world.api.get<TargetView>(`${TARGETS}/${node}`);
  assert.equal(target.status?.owner, undefined, "no remediation owns the host any more");
}

/**
 * Fences a node that hangs, and waits until it is tainted. A pod that a finalizer holds keeps the fence there.
 *
 * @returns a function that removes the finalizer of the pod.
 */
export async function holdFence(scenario: Scenario, victim: string): Promise<() => Promise<void>> {
  const { world } = scenario;
  const pod = `held-on-${victim}`;
  await applyObject(world.api, {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: pod, namespace: "default", finalizers: ["example.com/held"] },
    spec: { nodeName: victim, containers: [{ name: "main", image: "none" }] },
  });
  const node = (): Promise<NodeView> => world.api.get<NodeView>(`/api/v1/nodes/${victim}`);
  await world.host(victim).hang();
  await explain(
    scenario,
    `${victim} is Unknown`,
    REMEDIATION_TIMEOUT_MS,
    async () => readyOf(await node()) === "Unknown",
  );
  await applyObject(world.api, {
    apiVersion: "ironfence.io/v1alpha1",
    kind: "BareMetalRemediation",
    metadata: { name: victim, namespace: NAMESPACE },
    spec: { strategy: { drainTimeout: "600s" } },
  });
  await explain(scenario, `${victim} is tainted`, REMEDIATION_TIMEOUT_MS, async () =>
    hasTaint(await node(), OUT_OF_SERVICE),
  );
  return async () => {
    await world.api.mergePatch(`/api/v1/namespaces/default/pods/${pod}`, { metadata: { finalizers: null } });
  };
}

/**
 * Asserts the order of a fence by the records of the BMC and the API server. The out-of-service taint is added after
 * the host was read Off, and removed before the power-on.
 */
export async function assertOrder({ chronicle }: Scenario, node: string, taint: string): Promise<void> {
  const bmc = await chronicle.bmc(node);
  const off = bmc.find((record) => record.kind === "order" && record.value === "ForceOff");
  const reads = bmc.filter((record) => record.kind === "read");
  const on = bmc.find((record) => record.kind === "order" && record.value === "On");
  assert.ok(off && on, "the host was ordered off and on");
  const versions = chronicle.nodes(node);
  const tainted = versions.filter(({ object }) => hasTaint(object, taint));
  const first = tainted[0];
  assert.ok(first, `${taint} was seen`);
  assert.ok(reads.filter((read) => read.atMs < first.atMs).length >= 2, "two Off readings come before the taint");
  const gone = versions.find(({ atMs, object }) => atMs > first.atMs && !hasTaint(object, taint));
  assert.ok(gone, `${taint} was removed`);
  const intent = chronicle.remediations(node).find(({ object }) => object.status?.attempt?.action === "On");
  assert.ok(intent, "the intent to order the host on was written");
  // Watches are independent of each other, so only revisions of the API server show the order of two writes.
  assert.ok(revisionOf(gone.object) < revisionOf(intent.object), "the taint went before the host was ordered on");
}

/** A revision counts all writes to etcd, so it orders writes of different kinds. */
export function revisionOf(object: { metadata: { resourceVersion: string } }): bigint {
  return BigInt(object.metadata.resourceVersion);
}

/** The condition Succeeded of a remediation if it is False. */
export function failureOf(remediation: RemediationView | undefined) {
  const succeeded = conditionOf(remediation, "Succeeded");
  return succeeded?.status === "False" ? succeeded : undefined;
}

/**
 * Waits until the BMC has accepted the power-off and the remediation has recorded it. If an agent dies between the two,
 * its successor does not know whether the order was sent, and sends it again to a host that reads Off.
 */
export async function powerOffIsSent(scenario: Scenario, node: string, before = 0): Promise<void> {
  await explain(scenario, `${node} is ordered off, and its status says so`, REMEDIATION_TIMEOUT_MS, async () => {
    const attempt = scenario.chronicle.remediations(node).at(-1)?.object.status?.attempt;
    return (
      attempt?.action === "ForceOff" &&
      attempt.sent &&
      (await scenario.world.host(node).orderCount("ForceOff")) > before
    );
  });
}

/** The agent whose identity the Lease holds. */
export function leaderOf(scenario: Scenario, agents: readonly Agent[]): Promise<Agent> {
  return explain(scenario, "one agent leads", REMEDIATION_TIMEOUT_MS, async () => {
    const lease = await scenario.world.api.find<{ spec: { holderIdentity?: string } }>(LEASE);
    const holder = lease?.spec.holderIdentity ?? "";
    return agents.find((agent) => agent.running && holder.startsWith(`${agent.instance}_`));
  });
}
