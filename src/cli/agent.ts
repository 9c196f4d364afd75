import { collectDefaultMetrics, Registry } from "prom-client";
import type { Node } from "../api/core.ts";
import type { FencingTarget } from "../api/fencing-target.ts";
import { FENCING_TARGETS } from "../api/fencing-target.ts";
import { NODES } from "../api/core-types.ts";
import { trimMeta, trimNode } from "../api/trim.ts";
import { openDevice } from "../bmc/open-device.ts";
import type { BindAddress, Component } from "../config/parsers.ts";
import type { RunOptions } from "../config/run-options.ts";
import { runDetector } from "../detector/detector.ts";
import { createKubeRuntime } from "../kube/create-runtime.ts";
import { loadCluster } from "../kube/credentials.ts";
import { createHttpTransport } from "../kube/http-transport.ts";
import { runLeaderElection } from "../kube/leader-election.ts";
import type { KubeObject } from "../kube/resource.ts";
import type { KubeRuntime } from "../kube/runtime.ts";
import type { KubeTransport } from "../kube/transport.ts";
import type { Watched } from "../kube/watched.ts";
import { runRemediator } from "../remediator/remediator.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Random } from "../runtime/random.ts";
import { servePages } from "../telemetry/http-server.ts";
import type { Page } from "../telemetry/http-server.ts";
import type { Logger } from "../telemetry/logger.ts";
import { VERSION } from "./version.ts";

// A fence waits for its BMC nearly all of the time, so hundreds of them cost little; the bound is on memory and sockets.
const REMEDIATIONS_AT_ONCE = 500;

/** What the agent gets from its process. */
export interface AgentDeps {
  clock: Clock;
  random: Random;
  logger: Logger;
}

/**
 * Runs the agent against the cluster of its options until `signal` aborts, and leaves nothing running.
 *
 * @throws Error where it cannot start (no kubeconfig, address in use) or has lost its lease.
 */
export async function runAgent(options: RunOptions, deps: AgentDeps, signal: AbortSignal): Promise<void> {
  const { clock } = deps;
  const cluster = await loadCluster({
    ...(options.kubeconfig !== undefined && { kubeconfig: options.kubeconfig }),
    ...(options.context !== undefined && { context: options.context }),
  });
  await runAgentOn(createHttpTransport(cluster, { clock }), options, deps, signal);
}

/** Same, on a transport that is there already; it is closed at the end. */
export async function runAgentOn(
  transport: KubeTransport,
  options: RunOptions,
  deps: AgentDeps,
  signal: AbortSignal,
): Promise<void> {
  const { logger } = deps;
  // Everything ends with the agent, also when it ends by an error.
  const stop = new AbortController();
  const running = AbortSignal.any([signal, stop.signal]);
  const registry = new Registry();
  const identity = `${options.instance}_${deps.random.uuid()}`;
  const runtime = createKubeRuntime({
    ...deps,
    transport,
    controllerName: "ironfence.io/agent",
    instance: options.instance,
  });
  const closeServers: (() => Promise<void>)[] = [];
  const background: Promise<void>[] = [];
  try {
    collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 100 });
    const nodes = runtime.watch({ type: NODES, trim: trimNode }, running);
    await servePagesOf(options, registry, () => nodes.synced, logger, closeServers);
    background.push(runtime.run(running));
    logger.info(
      { version: VERSION, components: [...options.components], namespace: options.namespace, identity },
      "ironfence is starting",
    );
    const lead = (leading: AbortSignal): Promise<void> => runComponents(options, runtime, registry, nodes, leading);
    if (options.leaderElect) {
      await runLeaderElection(
        { ...deps, client: runtime.leaseClient },
        {
          namespace: options.namespace,
          name: options.leaseName,
          identity,
          lead,
          onChange: (leader) => logger.info({ leader, self: leader === identity }, "the leader is known"),
        },
        running,
      );
    } else {
      await lead(running);
    }
  } finally {
    stop.abort(new Error("the agent has ended"));
    await Promise.allSettled(background);
    await Promise.allSettled(closeServers.map((close) => close()));
    await transport.close();
    logger.info("ironfence has stopped");
  }
}

/** Runs the chosen halves until `signal` aborts; one that ends by itself takes the other with it: half an agent that looks alive would be worse than none. */
async function runComponents(
  options: RunOptions,
  runtime: KubeRuntime,
  registry: Registry,
  nodes: Watched<Node>,
  signal: AbortSignal,
): Promise<void> {
  const failure = new AbortController();
  const running = AbortSignal.any([signal, failure.signal]);
  const guard = async (name: Component, component: Promise<void>): Promise<void> => {
    try {
      await component;
      if (!running.aborted) throw new Error(`the ${name} has ended by itself`);
    } catch (error) {
      if (!running.aborted) failure.abort(error);
    }
  };
  const components: Promise<void>[] = [];
  if (options.components.has("detector")) {
    const detectorOptions = { leaseNamespace: options.nodeLeaseNamespace };
    components.push(guard("detector", runDetector({ runtime, nodes, registry, options: detectorOptions }, running)));
  }
  if (options.components.has("remediator")) {
    const { namespace } = options;
    const targets = runtime.watch<FencingTarget>({ type: FENCING_TARGETS, namespace, trim: trimTarget }, running);
    const remediatorOptions = { concurrency: REMEDIATIONS_AT_ONCE };
    const deps = { runtime, nodes, targets, namespace, openDevice, registry, options: remediatorOptions };
    components.push(guard("remediator", runRemediator(deps, running)));
  }
  await Promise.all(components);
  if (failure.signal.aborted) throw failure.signal.reason;
}

function trimTarget(raw: KubeObject): FencingTarget {
  const target = raw as FencingTarget;
  return { ...target, metadata: trimMeta(target.metadata) };
}

async function servePagesOf(
  options: RunOptions,
  registry: Registry,
  ready: () => boolean,
  logger: Logger,
  closeServers: (() => Promise<void>)[],
): Promise<void> {
  const text =
    (status: number, body: string): Page =>
    () =>
      Promise.resolve({ status, contentType: "text/plain", body });
  const metrics: Page = async () => ({
    status: 200,
    contentType: registry.contentType,
    body: await registry.metrics(),
  });
  const readyz: Page = () => (ready() ? text(200, "ok\n") : text(503, "the nodes have not been listed yet\n"))();
  const start = async (what: string, address: BindAddress | "off", pages: Record<string, Page>): Promise<void> => {
    if (address === "off") return;
    const server = await servePages(address, pages);
    closeServers.push(() => server.close());
    logger.info({ host: address.host, port: server.port }, `serving ${what}`);
  };
  await start("metrics", options.metricsBindAddress, { "/metrics": metrics });
  await start("probes", options.healthProbeBindAddress, { "/healthz": text(200, "ok\n"), "/readyz": readyz });
}
