import { collectDefaultMetrics, Registry } from "prom-client";
import {
  AGENT_COMPONENTS,
  AGENT_FAMILIES,
  AGENT_MAX_HOSTS,
  AGENT_MAX_HOSTS_PER_ZONE,
  AGENT_NOT_READY,
  AGENT_STANDS_BY,
  AGENT_VERSION,
} from "../../api/names/annotations.ts";
import type { Node } from "../../api/kubernetes/core.ts";
import { LEASES, NODES } from "../../api/kubernetes/core-types.ts";
import { trimNode } from "../../api/kubernetes/trim.ts";
import type { OpenDevice } from "../../bmc/interface/device-config.ts";
import type { RunOptions } from "../../config/resolve-run-options.ts";
import { createAccessReview } from "../../kube/reviews/access-review.ts";
import { createKubeRuntime } from "../../kube/connection/create-runtime.ts";
import { loadCluster } from "../../kube/connection/credentials/credentials.ts";
import { isReady } from "../../nodes/ready.ts";
import { createHttpTransport } from "../../kube/connection/transport/http-transport.ts";
import type { KubeObject } from "../../kube/resource.ts";
import { apiVersionOf } from "../../kube/resource.ts";
import type { KubeTransport } from "../../kube/transport.ts";
import type { Watched } from "../../kube/watched.ts";
import type { Clock } from "../../runtime/clock.ts";
import { sleep } from "../../runtime/clock.ts";
import type { Memory } from "../../runtime/memory.ts";
import type { Random } from "../../runtime/random.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { countAgent } from "./agent-metrics.ts";
import { CONTROLLER_NAME, runComponents } from "./components.ts";
import { CommandFailure } from "../errors/failures.ts";
import type { ClusterAddress } from "../cluster/connect.ts";
import { agentClient } from "../dashboard/serve/agent-client.ts";
import { agentSource } from "../dashboard/serve/cluster-source.ts";
import { Installation } from "./installation.ts";
import { guardAgent } from "./write-guards.ts";
import { WithheldRemediations } from "./withheld-remediations.ts";
import { keepWrites } from "../../kube/unsent/keep-writes.ts";
import { findObject } from "../../kube/objects/find-object.ts";
import { readAsIfAlone } from "../../detector/shared/model/read-as-if-alone.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import { createAuthorizer } from "./page-access.ts";
import { watchUnreadVersions } from "../cluster/unread-versions.ts";
import { RefusedWatches } from "./refused-watches.ts";
import type { FenceTracer } from "../../remediator/telemetry/fence-tracer.ts";
import { VERSION } from "../../runtime/version.ts";
import { recordTo } from "./record-decisions.ts";
import { readCertificate, receiveKdump, servePagesOf, serveStatusPage } from "./agent-pages.ts";
import { HandOver, HAND_OVER_MS } from "./hand-over.ts";
import { collectAtRest } from "./memory-at-rest.ts";

/** The longest text about why the agent is not ready, in characters. Each renewal of the agent lease writes it. */
const NOT_READY_CHARS_MAX = 2_000;

/** What the process gives to the agent. */
export interface AgentDeps {
  clock: Clock;
  random: Random;
  logger: Logger;
  openDevice: OpenDevice;
  memory: Memory;
}

/**
 * Runs the agent against the cluster of its options until `signal` aborts, and leaves nothing running.
 *
 * @throws Error if it cannot start (no kubeconfig, address in use) or has lost its lease.
 */
export async function runAgent(options: RunOptions, deps: AgentDeps, signal: AbortSignal): Promise<void> {
  const { clock } = deps;
  const cluster = await loadCluster({
    ...(options.kubeconfig !== undefined && { kubeconfig: options.kubeconfig }),
    ...(options.context !== undefined && { context: options.context }),
  });
  await runAgentOn(createHttpTransport(cluster, { clock }), cluster, options, deps, signal);
}

/** Runs the agent on a transport, and closes the transport at the end. */
async function runAgentOn(
  transport: KubeTransport,
  cluster: ClusterAddress,
  options: RunOptions,
  deps: AgentDeps,
  signal: AbortSignal,
): Promise<void> {
  const { logger, clock } = deps;
  // Ends everything together with the agent, even after an error.
  const stop = new AbortController();
  const running = AbortSignal.any([signal, stop.signal]);
  const registry = new Registry();
  const identity = `${options.instance}_${deps.random.uuid()}`;
  // Without leader election the agent always leads.
  let mayAct = (): boolean => true;
  const ownLease = { namespace: options.namespace, name: options.leaseName };
  const guards = guardAgent(transport, options, () => mayAct());
  const kube = createKubeRuntime({
    ...deps,
    transport: guards.transport,
    controllerName: CONTROLLER_NAME,
    instance: options.instance,
  });
  const refused = new RefusedWatches();
  const withheld = options.observe ? new WithheldRemediations({ ...deps, events: kube.events, registry }) : undefined;
  const runtime = refused.observe(withheld === undefined ? kube : observingRuntime(kube, withheld));
  const closeServers: (() => Promise<void>)[] = [];
  const background: Promise<void>[] = [];
  try {
    const { recordDecisions } = options;
    const recording = recordDecisions === undefined ? undefined : await recordTo(recordDecisions, identity, deps);
    if (recording !== undefined) closeServers.push(() => recording.close());
    collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 100 });
    let leads = false;
    const nodes = runtime.watch({ type: NODES, trim: trimNode }, running);
    let unread: readonly string[] = [];
    const lease = leaseNamed(options.namespace, options.leaseName);
    const electionDeps = { ...deps, client: kube.leaseClient };
    const installation = new Installation({ ...electionDeps, events: kube.events, registry, lease }, options);
    const problems = (): string[] => [
      ...installation.standsBy,
      ...installation.unguarded,
      ...whyNotReady(nodes, refused),
      ...unread,
    ];
    countAgent(
      registry,
      () => leads,
      () => problems().length === 0,
    );
    const authorizer = createAuthorizer(createAccessReview({ client: kube.reviewClient, clock }), deps, running);
    const protection =
      options.metricsCertPath === undefined
        ? undefined
        : { certificate: readCertificate(options.metricsCertPath, clock, "metrics"), authorizer };
    await servePagesOf(options, registry, problems, { ...deps, protection }, closeServers);
    const pageRuntime = { ...kube, client: agentClient(kube.pageClient, { families: options.families, nodes }) };
    const source = agentSource(pageRuntime, options, { server: cluster.server, source: cluster.source });
    await serveStatusPage(options, { ...deps, source, authorizer }, closeServers);
    const kdump = await receiveKdump(options, deps, closeServers);
    background.push(kube.run(running), collectAtRest(clock, deps.memory, running));
    const tracer = await startTracing(options, deps, background, running);
    logger.info(
      {
        version: VERSION,
        components: [...options.components],
        families: [...options.families],
        namespace: options.namespace,
        identity,
      },
      "ironfence is starting",
    );
    const handOver = new HandOver(logger);
    const lead = async (leading: AbortSignal): Promise<void> => {
      logger.info({ identity }, "leading");
      leads = true;
      leading.addEventListener("abort", () => (leads = false), { once: true });
      withheld?.restore((await findObject(kube.leaseClient, LEASES, ownLease, leading))?.metadata.annotations);
      const { isOrderAllowed } = guards;
      const ending = handOver.signalBeside(leading);
      const onFound = (found: readonly string[]): void => void (unread = found);
      background.push(watchUnreadVersions({ runtime, families: options.families, lease, onFound }, ending));
      const hand = (why: string): void => (options.leaderElect ? handOver.begin(why) : undefined);
      const { recorder } = recording ?? {};
      const { openDevice } = deps;
      await runComponents(
        {
          options,
          runtime,
          registry,
          nodes,
          openDevice,
          isOrderAllowed,
          handOver: hand,
          recorder,
          tracer,
          kdump,
          withheld,
        },
        ending,
      );
    };
    if (options.leaderElect) {
      await installation.leases.run(
        {
          namespace: options.namespace,
          name: options.leaseName,
          identity,
          lead: (leading, isHeld) => {
            mayAct = isHeld;
            return lead(leading);
          },
          describe: () => ({
            [AGENT_VERSION]: VERSION,
            [AGENT_COMPONENTS]: [...options.components].join(","),
            [AGENT_FAMILIES]: [...options.families].join(","),
            [AGENT_MAX_HOSTS]: limitText(options.maxHosts),
            [AGENT_MAX_HOSTS_PER_ZONE]: limitText(options.maxHostsPerZone),
            [AGENT_STANDS_BY]: installation.standsBy.join("; "),
            [AGENT_NOT_READY]: problems().join("; ").slice(0, NOT_READY_CHARS_MAX),
          }),
          remember: () => {
            withheld?.endInherited((name) => isWell(nodes, name));
            return withheld?.annotations ?? {};
          },
          onChange: (leader) => logger.info({ leader, self: leader === identity }, "the leader is known"),
        },
        running,
      );
      if (handOver.why !== undefined && !running.aborted) {
        await sleep(clock, HAND_OVER_MS, running).catch(() => undefined);
        throw new CommandFailure("LeaseHandedOver", `this agent has handed its lease over: ${handOver.why}`);
      }
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

/**
 * The runtime of an agent that only observes: it keeps writes in memory. The transport refuses any write that is sent
 * nevertheless.
 */
function observingRuntime(kube: KubeRuntime, { events }: WithheldRemediations): KubeRuntime {
  return keepWrites({ ...kube, events }, readAsIfAlone);
}

function isWell(nodes: Watched<Node>, name: string): boolean {
  const node = nodes.get({ name });
  return node !== undefined && isReady(node);
}

/** Starts the traces of fences if a collector is configured. Their code is loaded only then. */
async function startTracing(
  { otlpEndpoint, instance }: RunOptions,
  { clock, random, logger }: AgentDeps,
  background: Promise<void>[],
  signal: AbortSignal,
): Promise<FenceTracer | undefined> {
  if (otlpEndpoint === undefined) return undefined;
  const { OtlpExporter } = await import("../../telemetry/otlp-exporter.ts");
  const { FenceTraces } = await import("../../remediator/telemetry/fence-traces.ts");
  const exporter = new OtlpExporter(otlpEndpoint, { clock, logger, instance });
  background.push(exporter.run(signal));
  logger.info({ endpoint: otlpEndpoint }, "sending a trace of each fence");
  return new FenceTraces({ clock, random, add: (span) => exporter.add(span) });
}

/** The agent's Lease, as the object that Kubernetes Events refer to. */
function leaseNamed(namespace: string, name: string): KubeObject {
  const { kind } = LEASES;
  return { apiVersion: apiVersionOf(LEASES), kind, metadata: { namespace, name, uid: "", resourceVersion: "" } };
}

/** The limit as the option has it: 0 for any number. */
function limitText(limit: number): string {
  return limit === Infinity ? "0" : String(limit);
}

/** Why the agent is not ready, in words; empty if it is ready. Only the leader watches what its families need. */
export function whyNotReady(nodes: Watched<Node>, refused: RefusedWatches): string[] {
  const { lines } = refused;
  if (lines.length > 0)
    return [
      ...lines,
      "apply your installation (deploy/kustomize or the Helm chart) with the permissions of each of --families (deploy/families)",
    ];
  if (refused.unread.length > 0) return refused.unread;
  return nodes.synced ? [] : ["the nodes have not been listed yet"];
}
