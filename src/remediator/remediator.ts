import type { Registry } from "prom-client";
import type { BareMetalRemediation } from "../api/ironfence/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../api/ironfence/bare-metal-remediation.ts";
import type { Node } from "../api/kubernetes/core.ts";
import type { FencingTarget } from "../api/ironfence/fencing-target.ts";
import type { ClusterRef, WorkloadClusters } from "../clusters/workload-clusters.ts";
import { measureDevices } from "../bmc/devices/measured-device.ts";
import type { OpenDevice } from "../bmc/interface/device-config.ts";
import { Controller } from "../kube/reconcile/controller.ts";
import type { KubeRuntime } from "../kube/runtime.ts";
import type { Watched } from "../kube/watched.ts";
import { keyOf, keyText, parseKey } from "../kube/watched.ts";
import { HealthCheckCoverage } from "../nodes/health-check-coverage.ts";
import { AwaitedNodes } from "./controller/awaited-nodes.ts";
import { FINALIZER } from "./effects/objects/finalizer.ts";
import { DeletedMembers } from "./controller/admission/deleted-members.ts";
import { recordMembers } from "./controller/admission/record-members.ts";
import type { FenceTracer } from "./telemetry/fence-tracer.ts";
import { createMetrics } from "./telemetry/metrics.ts";
import { countProbes } from "./telemetry/probe-metrics.ts";
import { ProbeRecords } from "./probes/schedule/probe-records.ts";
import { countViews } from "./telemetry/view-metrics.ts";
import type { NodeCluster } from "./clusters/node-clusters.ts";
import { NodeClusters } from "./clusters/node-clusters.ts";
import { tendOrphans } from "./orphans/orphans.ts";
import { RemediationIndex } from "./controller/remediation-index.ts";
import type { RemediationSession } from "./controller/session/session.ts";
import { trimRemediation } from "../nodes/trim.ts";
import { Sessions } from "./controller/session/sessions.ts";
import { WaitReports } from "./controller/wait-reports.ts";
import { subscribeWakeUps } from "./controller/wake-ups.ts";
import { keepFinalizers } from "./controller/keep-finalizers.ts";
import { isBegun, isFinal, slotOf } from "./machine/model/decision/state.ts";
import { watchStopSwitch } from "./controller/stop-switch.ts";
import type { KubeletLeases } from "../nodes/leases/kubelet-leases.ts";
import type { NodeId } from "../nodes/subject.ts";
import { createBareMetalHostDirectory } from "./hosts/bare-metal-host/directory.ts";
import { BARE_METAL_HOSTS } from "./hosts/bare-metal-host/store/host-store.ts";
import { giveOrphanedImagesBack } from "./orphans/orphaned-images.ts";
import { reportOrphanedOffRequests } from "./orphans/orphaned-holds.ts";
import { probeHosts } from "./probes/probe-hosts.ts";
import { createCompositeDirectory, whyManaged } from "./hosts/composite-directory.ts";
import { createFencingTargetDirectory } from "./hosts/fencing-target/directory.ts";
import { KdumpMessages } from "./kdump/kdump-messages.ts";
import type { KdumpSource } from "./kdump/kdump-messages.ts";
import { RatePermits } from "./early/rate-permits.ts";
import { startTargetController } from "./probes/target-controller.ts";
import type { ViewHealth } from "./controller/stale-views.ts";
import { reportStaleViews } from "./controller/stale-views.ts";
import type { AdmissionLimits } from "./machine/rules/admission/admission.ts";
import { Admissions } from "./controller/admission/admissions.ts";
import { tendUnvouchedTaints } from "./orphans/unvouched-taints.ts";
import type { ReconcileDeps } from "./controller/reconcile.ts";
import { reconcile } from "./controller/reconcile.ts";
import { refresh } from "./controller/recover.ts";
import type { DecisionRecorder } from "../telemetry/decisions/recorder.ts";

export interface RemediatorOptions {
  /** How many remediations are reconciled at the same time. Those that only wait do not count. */
  concurrency: number;
  /** How many hosts may be remediated at the same time, in all and in one failure zone. */
  limits: AdmissionLimits;
  /** Label of a node that names its failure zone. */
  zoneLabel: string;
  /** The node that this agent runs on, which it never powers off; undefined if it is not configured. */
  ownNode: string | undefined;
  /** The Cluster that the agent runs in, if that management cluster manages itself. */
  ownCluster?: ClusterRef | undefined;
  /** The `clusterKey` of each cluster whose etcd runs outside of it. */
  externalEtcd?: ReadonlySet<string>;
  /** Hands the agent lease over to another agent. Does nothing if this agent does not hold it. */
  handOver: (why: string) => void;
}

export interface RemediatorDeps {
  runtime: KubeRuntime;
  nodes: Watched<Node>;
  /** The workload clusters, which contain the nodes of remediated Machines. */
  clusters: WorkloadClusters;
  targets: Watched<FencingTarget>;
  /** The agent's own namespace: it holds FencingTargets, their Secrets and the stop switch. */
  namespace: string;
  openDevice: OpenDevice;
  registry: Registry;
  /** The node leases of the agent's own cluster. Without them there are no early off proofs. */
  leases?: KubeletLeases | undefined;
  /** The nodes that the health checks of this agent cover; none by default. */
  coverage?: HealthCheckCoverage;
  /** Whether BareMetalHosts are hosts to fence, in addition to those of FencingTargets. */
  bareMetalHosts?: boolean;
  /** Records every decision with its input; undefined if nothing is recorded. */
  recorder?: DecisionRecorder | undefined;
  /** Traces fences; undefined if tracing is off. */
  tracer?: FenceTracer | undefined;
  /** Datagrams of crash kernels; undefined if the agent does not receive them. */
  kdump?: KdumpSource | undefined;
  options: RemediatorOptions;
}

/** The longest backoff after an error in our own code, for example a status that this version cannot read. */
const ERROR_BACKOFF_MAX_MS = 60_000;
/** The time until a failed live read of a remediation is repeated. */
const REREAD_MS = 1_000;
/** The most writes to pods in a second, for all early remediations together. */
const EARLY_POD_WRITES_A_SECOND = 100;
/** How long after the start a remediation without a host waits until the BareMetalHosts are read. */
const UNREAD_START_MS = 5_000;

/**
 * Serves every `BareMetalRemediation` of the cluster until `signal` aborts. When it settles, all its tasks have ended
 * and all device sessions are closed. Call it only while the agent holds the agent lease, with a signal that aborts
 * when the lease is lost.
 */
export async function runRemediator(deps: RemediatorDeps, signal: AbortSignal): Promise<void> {
  const { runtime, nodes, targets, namespace } = deps;
  const metrics = createMetrics(deps.registry);
  const openDevice = measureDevices(deps.openDevice, runtime.clock, (call) => {
    metrics.bmcCall(call);
    deps.tracer?.called(call);
  });
  const clusters = new NodeClusters({ ...deps, ownCluster: deps.options.ownCluster });
  const ended = new AbortController();
  const running = AbortSignal.any([signal, ended.signal]);
  const directory = createFencingTargetDirectory({ runtime, targets, namespace, openDevice, clusters }, running);
  const bareMetalHosts =
    deps.bareMetalHosts === true ? createBareMetalHostDirectory({ runtime, nodes, openDevice }, running) : undefined;
  const stopSwitch = watchStopSwitch(runtime, namespace, running);
  const remediations = runtime.watch<BareMetalRemediation>(
    { type: BARE_METAL_REMEDIATIONS, trim: trimRemediation },
    running,
  );
  const startedMs = runtime.clock.monotonicMs();
  const index = new RemediationIndex();
  const kdump = deps.kdump && new KdumpMessages((result) => metrics.kdumpMessage(result));
  const stopKdump = deps.kdump?.((datagram, from) => kdump?.receive(datagram, from));
  const sessions = new Sessions({
    runtime,
    clusters,
    kdump,
    recorder: deps.recorder,
    tracer: deps.tracer,
    metrics,
    wake: (key) => controller.enqueue(key),
    onEnd: (uid) => {
      if (uid !== undefined) admissions.withdraw(uid);
      admissions.review();
    },
  });
  const { limits, zoneLabel, ownNode, handOver } = deps.options;
  const latest = function* (): Generator<BareMetalRemediation> {
    for (const watched of remediations.values()) {
      const session = sessions.get(keyText(keyOf(watched)));
      yield session?.uid === watched.metadata.uid ? session.remediation : watched;
    }
  };
  const deletedMembers = new DeletedMembers((cluster, nodeName) => {
    const host = shell.directory.find({ cluster, nodeName, machine: undefined });
    return host.found || host.reason !== "NoTarget";
  }, clusters.isOwn.bind(clusters));
  const nodesOf = (cluster: ClusterRef | undefined): NodeCluster["nodes"] => {
    const { nodes } = clusters.of(cluster);
    return { get: (key) => nodes.get(key), values: () => deletedMembers.among(cluster, nodes.values()) };
  };
  const hasExternalEtcd = (cluster: string): boolean => deps.options.externalEtcd?.has(cluster) === true;
  const admissions = new Admissions({
    clock: runtime.clock,
    limits,
    zoneLabel,
    nodesOf,
    hasExternalEtcd,
    remediations: latest,
    wake: (remediation) => controller.enqueue(keyText(keyOf(remediation))),
    onWaiting: (count) => metrics.waiting(count),
  });
  const shell: ReconcileDeps = {
    runtime,
    clusters,
    nodesOf,
    hasExternalEtcd,
    directory: bareMetalHosts === undefined ? directory : createCompositeDirectory(runtime, directory, bareMetalHosts),
    stopSwitch,
    leases: deps.leases,
    earlyPodWrites: new RatePermits(runtime.clock, EARLY_POD_WRITES_A_SECOND),
    waitReports: new WaitReports(runtime.clock),
    metrics,
    admissions,
    zoneLabel,
    ownNode,
    handOver,
    recorder: deps.recorder,
    tracer: deps.tracer,
    siblingsOf: (session) => index.siblings(session.remediation),
    unreadFor: ({ status }) => {
      if (!nodes.synced) return whyUnread("Nodes", nodes);
      if (!targets.synced) return whyUnread("FencingTargets", targets);
      // While the hosts are not read, a missing host does not count as deleted: the remediation must not fail because
      // of it.
      if (status.target !== undefined) {
        return status.target.kind === BARE_METAL_HOSTS.kind ? bareMetalHosts?.problem : undefined;
      }
      const isStart = runtime.clock.monotonicMs() - startedMs < UNREAD_START_MS;
      return isStart ? (bareMetalHosts?.unread ?? bareMetalHosts?.consumersUnread) : undefined;
    },
  };

  const records = new ProbeRecords();
  const { directory: hosts } = shell;
  const coverage = deps.coverage ?? new HealthCheckCoverage();
  countViews(deps.registry, { targets, nodes, remediations, directory: hosts, coverage, stopSwitch });
  countProbes(deps.registry, { targets, records, clock: runtime.clock });

  const awaitedNodes = new AwaitedNodes(clusters);
  const controller: Controller = new Controller(runtime, {
    name: "remediation",
    concurrency: deps.options.concurrency,
    maxBackoffMs: ERROR_BACKOFF_MAX_MS,
    reconcile: async (key, signal) => {
      const watched = remediations.get(parseKey(key));
      // After a restore of etcd, the observations of a session belong to another history. A new session begins without
      // any, as after a restart.
      const isOther = sessions.get(key)?.isOf(watched, remediations.rewinds) !== true;
      if (watched === undefined || isOther) await sessions.end(key);
      if (watched === undefined) return awaitedNodes.follow(key, undefined);
      const session = sessions.get(key) ?? sessions.begin(key, watched, remediations.rewinds);
      session.absorb(watched);
      if (mayBeLate(session)) {
        if (!(await refresh(runtime, session, running))) return sessions.end(key);
        if (!session.wasReadLive) return { requeueAfterMs: REREAD_MS };
      }
      admissions.reviewIfOld();
      const hadSlot = slotOf(session.status, runtime.clock.nowMs()) !== "None";
      const work = (): Promise<number | undefined> => reconcile(shell, session, signal);
      const requeueAfterMs = await (deps.tracer === undefined ? work() : deps.tracer.within(session.traced, work));
      sessions.count(key, session);
      admissions.observe(session.remediation);
      awaitedNodes.follow(key, session.remediation);
      // A released slot lets another remediation begin.
      if (hadSlot && slotOf(session.status, runtime.clock.nowMs()) === "None") admissions.review();
      if (requeueAfterMs !== undefined) return { requeueAfterMs };
      if (isFinal(session.status.phase)) await sessions.end(key);
    },
  });

  const isServed = (node: NodeId): boolean =>
    index.ofNode(node.cluster, node.name).some(({ status }) => !isFinal(status?.phase)) ||
    sessions.ofNode(node).length > 0;
  const wake = (woken: Iterable<BareMetalRemediation>): void => {
    for (const remediation of woken) controller.enqueue(keyText(keyOf(remediation)));
  };
  const unsubscribe = subscribeWakeUps({
    targets,
    remediations,
    clusters,
    directory,
    bareMetalHosts,
    stopSwitch,
    index,
    sessions,
    awaitedNodes,
    deletedMembers,
    admissions,
    enqueue: (key) => controller.enqueue(key),
  });
  const vouching = {
    powerOf: (node: NodeId) => sessions.ofNode(node).map(({ observations }) => observations.power),
    onTakenOff: (node: NodeId) => {
      for (const session of sessions.ofNode(node)) session.observe({ type: "TaintTakenOff" });
    },
  };
  /** Serves remediations as soon as they are read. Each of them reports which other collection it waits for. */
  const serveRemediations = async (): Promise<void> => {
    await remediations.whenSynced(running);
    const views = new Map<string, ViewHealth>([
      ["BareMetalRemediations", remediations],
      ["Nodes", nodes],
      ["FencingTargets", targets],
    ]);
    await Promise.all([
      controller.run(running),
      keepFinalizers({ runtime, remediations }, running),
      reportStaleViews({ runtime, views, remediations, metrics }, running),
    ]);
  };
  /** Starts what cannot report that it waits for a collection, so it starts when all are read. */
  const serveTargets = async (): Promise<void> => {
    await Promise.all([targets.whenSynced(running), nodes.whenSynced(running), remediations.whenSynced(running)]);
    wake(remediations.values());
    const managed = bareMetalHosts && {
      whyManaged: (target: FencingTarget) => whyManaged(directory, bareMetalHosts, target),
      subscribeManaged: (listener: () => void) => bareMetalHosts.subscribeKnown(listener),
    };
    const early = deps.leases && {
      nodes,
      leases: deps.leases,
      isStopped: () => stopSwitch.stopped !== undefined,
      remediations: latest,
    };
    await Promise.all([
      startTargetController(
        { runtime, targets, clusters, directory, namespace, openDevice, records, ...managed, ...(early && { early }) },
        running,
      ),
      tendOrphans(
        {
          runtime,
          clusters,
          targets,
          remediations,
          isServed,
          onSessionEnd: sessions.onNodeLetGo.bind(sessions),
          metrics,
        },
        running,
      ),
      bareMetalHosts && giveOrphanedImagesBack({ runtime, directory: bareMetalHosts, remediations }, running),
      bareMetalHosts && reportOrphanedOffRequests({ runtime, directory: bareMetalHosts, remediations }, running),
      bareMetalHosts && probeHosts({ runtime, directory: bareMetalHosts, nodes, metrics }, running),
    ]);
  };
  const background = [
    recordMembers({ runtime, targets, directory, clusters, members: deletedMembers }, running),
    tendUnvouchedTaints({ runtime, clusters, remediations, metrics, ...vouching }, running),
    serveRemediations(),
    serveTargets(),
  ];
  try {
    await Promise.all(background);
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    ended.abort(new Error("the remediator has ended"));
    stopKdump?.();
    unsubscribe();
    admissions.close();
    await Promise.allSettled(background);
    await bareMetalHosts?.settled();
    awaitedNodes.close();
    await sessions.close();
  }
}

function whyUnread(what: string, { problem }: Watched<Node> | Watched<FencingTarget>): string {
  return `${what} are not read yet (${problem ?? "wait a moment"})`;
}

/**
 * Whether the remediation must be read live first. The watch may be older than the last write of an earlier process or
 * session: the remediation may already have ended or be deleted. A remediation that has not begun and lacks our
 * finalizer needs no live read: the guard of its first write fails if the watch is late.
 */
function mayBeLate({ wasReadLive, remediation, status }: RemediationSession): boolean {
  const hasBegun = remediation.metadata.finalizers?.includes(FINALIZER) === true || isBegun(status);
  return !wasReadLive && hasBegun && !isFinal(status.phase);
}
