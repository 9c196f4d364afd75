import { setTimeout as delay } from "node:timers/promises";
import type { BareMetalRemediation } from "../../src/api/ironfence/bare-metal-remediation.ts";
import type { Node } from "../../src/api/kubernetes/core.ts";
import type { NodeHealthCheck } from "../../src/api/ironfence/node-health-check.ts";
import { parseTimeMs } from "../../src/runtime/time.ts";
import { startControlPlane } from "../control-plane/control-plane.ts";
import type { ControlPlane } from "../control-plane/control-plane.ts";
import { registerNode } from "../control-plane/fake-node.ts";
import { applyManifests, applyObject } from "../lib/apply.ts";
import type { KubeApi } from "../lib/kube-api.ts";
import { startBenchAgent } from "./bench-agent.ts";
import { CONDITION_MS, DETECTOR_OBJECTS, HEALTH_CHECK, nodeNames, VENDOR_CRDS } from "./detector-objects.ts";
import { readUsage } from "./process-usage.ts";
import { mib, row, seconds, spread } from "./report.ts";

const NODES = 1_000;
const SHARES = [0.01, 0.05];
/** The default of Kubernetes. */
const GRACE_MS = 50_000;
const START_MS_MAX = 120_000;
const PHASE_MS_MAX = 240_000;
const IDLE_MS = 60_000;
const SETTLE_MS = 10_000;
const POLL_MS = 500;
const REGISTRATIONS_AT_ONCE = 16;

/**
 * Runs the detector on the real control plane with 1,000 kwok nodes. When their leases are no longer renewed, the node
 * lifecycle controller sets them to Unknown at different times. The time of each node therefore counts from the end of
 * its own duration: its transition time, in whole seconds, plus the duration.
 */
export async function benchDetectorOnControlPlane(): Promise<void> {
  const progress = (message: string): void => void process.stderr.write(`bench: ${message}\n`);
  const controlPlane = await startControlPlane(
    { progress, nodeMonitorGracePeriodMs: GRACE_MS },
    AbortSignal.timeout(START_MS_MAX),
  );
  const stopping = new AbortController();
  try {
    await Promise.race([controlPlane.failed, measure(controlPlane, stopping.signal)]);
  } finally {
    stopping.abort();
    await controlPlane.stop();
  }
}

async function measure(controlPlane: ControlPlane, signal: AbortSignal): Promise<void> {
  const { api, folder, kubeconfig } = controlPlane;
  await applyManifests(api, new URL("../../deploy/crds", import.meta.url).pathname);
  await applyManifests(api, new URL("../../deploy/kustomize/namespace.yaml", import.meta.url).pathname);
  await applyManifests(api, new URL("../../deploy/node-health-check", import.meta.url).pathname);
  for (const crd of VENDOR_CRDS) await applyObject(api, crd);
  await registerAll(api);
  await controlPlane.startKwok();
  const seen = watchCluster(api, signal);
  await until("all nodes are Ready", () => seen.ready.size === NODES);
  for (const { object } of DETECTOR_OBJECTS) await applyObject(api, object);
  const agent = await startBenchAgent(folder, kubeconfig, ["--components", "detector"]);
  try {
    const ended = await Promise.race([agent.ended, measureAgent(api, agent.pid, seen)]);
    if (ended !== undefined) throw new Error(ended);
  } finally {
    await agent.stop();
  }
}

async function measureAgent(api: KubeApi, pid: number, seen: Seen): Promise<void> {
  await until("the detector has counted the nodes", () => seen.observedNodes === NODES);
  await delay(SETTLE_MS);
  const atRest = await readUsage(pid);
  await delay(IDLE_MS);
  const rested = await readUsage(pid);
  const what = `real control plane, ${NODES} nodes`;
  row(`${what}, at rest: RSS; CPU in 60 s`, `${mib(rested.rssBytes)} MiB; ${seconds(rested.cpuMs - atRest.cpuMs)} s`);
  let first = 0;
  for (const share of SHARES) {
    const names = nodeNames(NODES).slice(first, first + NODES * share);
    first += names.length;
    const before = await readUsage(pid);
    for (const name of names) await silence(api, name);
    await until("all CRs are there", () => names.every((name) => seen.createdMs.has(name)));
    const after = await readUsage(pid);
    const overMs = (name: string): number => (seen.unknownSinceMs.get(name) ?? Number.NaN) + CONDITION_MS;
    const delays = names.map((name) => (seen.createdMs.get(name) ?? Number.NaN) - overMs(name));
    row(`${what}, ${names.length} fall silent: duration over → CR seen`, spread(delays));
    row(
      `${what}, ${names.length} fall silent: last duration over → last CR seen`,
      `${(Math.max(...names.map((name) => seen.createdMs.get(name) ?? 0)) - Math.max(...names.map(overMs))).toFixed(0)} ms`,
    );
    const used = `${seconds(after.cpuMs - before.cpuMs)} s; ${mib(after.rssBytes)} MiB, ${mib(after.rssPeakBytes)} MiB`;
    row(`${what}, ${names.length} fall silent: CPU since; RSS, peak`, used);
  }
}

async function registerAll(api: KubeApi): Promise<void> {
  const waiting = nodeNames(NODES);
  const work = async (): Promise<void> => {
    for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) await registerNode(api, { name });
  };
  await Promise.all(Array.from({ length: REGISTRATIONS_AT_ONCE }, work));
}

/** Stops the renewals of a kwok node: kwok does not renew a Lease that has another holder. */
async function silence(api: KubeApi, name: string): Promise<void> {
  const spec = { holderIdentity: "nobody", leaseDurationSeconds: 1_000_000 };
  await api.mergePatch(`/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/${name}`, { spec });
}

interface Seen {
  ready: Set<string>;
  /** The time at which each node became Unknown. */
  unknownSinceMs: Map<string, number>;
  /** The time at which the watch received the remediation of each node. */
  createdMs: Map<string, number>;
  observedNodes: number;
}

function watchCluster(api: KubeApi, signal: AbortSignal): Seen {
  const seen: Seen = { ready: new Set(), unknownSinceMs: new Map(), createdMs: new Map(), observedNodes: 0 };
  const watched = [
    api.watch<Node>(
      "/api/v1/nodes",
      ({ object: { metadata, status } }) => {
        const ready = status.conditions?.find(({ type }) => type === "Ready");
        const sinceMs = parseTimeMs(ready?.lastTransitionTime) ?? 0;
        if (ready?.status === "True") seen.ready.add(metadata.name);
        else if (ready?.status === "Unknown") seen.unknownSinceMs.set(metadata.name, sinceMs);
      },
      signal,
    ),
    api.watch<BareMetalRemediation>(
      "/apis/ironfence.io/v1alpha1/baremetalremediations",
      ({ type, object: { metadata }, atMs }) => {
        if (type === "ADDED") seen.createdMs.set(metadata.name, atMs);
      },
      signal,
    ),
    api.watch<NodeHealthCheck>(
      "/apis/remediation.medik8s.io/v1alpha1/nodehealthchecks",
      ({ object: { metadata, status } }) => {
        if (metadata.name === HEALTH_CHECK) seen.observedNodes = status?.observedNodes ?? 0;
      },
      signal,
    ),
  ];
  // If a watch fails, only its error is printed here. The wait for the missing objects then fails the bench.
  for (const watch of watched) watch.catch((error: unknown) => process.stderr.write(`bench: ${String(error)}\n`));
  return seen;
}

async function until(what: string, holds: () => boolean): Promise<void> {
  const endMs = performance.now() + PHASE_MS_MAX;
  while (!holds()) {
    if (performance.now() > endMs) throw new Error(`not within ${PHASE_MS_MAX} ms: ${what}`);
    await delay(POLL_MS);
  }
}
