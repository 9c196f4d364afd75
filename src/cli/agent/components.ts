import type { Registry } from "prom-client";
import type { Node } from "../../api/kubernetes/core.ts";
import type { FencingTarget } from "../../api/ironfence/fencing-target.ts";
import { FENCING_TARGETS } from "../../api/ironfence/fencing-target.ts";
import { trimTarget } from "../../nodes/trim.ts";
import type { OpenDevice } from "../../bmc/interface/device-config.ts";
import { guardOrders } from "../../bmc/devices/open-device.ts";
import { ownCluster, withOwnCluster } from "../../clusters/own-cluster.ts";
import type { WorkloadClusters } from "../../clusters/workload-clusters.ts";
import { createWorkloadClusters } from "../../clusters/workload-clusters.ts";
import type { RunOptions } from "../../config/resolve-run-options.ts";
import { runNodeHealthChecks } from "../../detector/nodes/run.ts";
import { CLUSTER_API_CHECKS } from "../../detector/machines/vendors/cluster-api.ts";
import { runOkdHealthChecks } from "../../detector/machines/run-okd.ts";
import { MachineCheckCounts } from "../../detector/machines/effects/machine-check-counts.ts";
import { runMachineHealthChecks } from "../../detector/machines/run.ts";
import { createHttpTransport, WORKLOAD_BODY_BYTES_MAX } from "../../kube/connection/transport/http-transport.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import type { Watched } from "../../kube/watched.ts";
import type { KdumpSource } from "../../remediator/kdump/kdump-messages.ts";
import type { FenceTracer } from "../../remediator/telemetry/fence-tracer.ts";
import { HealthCheckCoverage } from "../../nodes/health-check-coverage.ts";
import { KubeletLeases } from "../../nodes/leases/kubelet-leases.ts";
import type { RemediationListener } from "../../detector/shared/model/started-remediation.ts";
import { runRemediator } from "../../remediator/remediator.ts";
import { shareCollections } from "./share-collections.ts";
import { serveMetal3Remediations } from "../../remediator/requests/metal3-remediation.ts";
import { serveOkdMachines } from "../../remediator/requests/okd-machine.ts";
import type { DecisionRecorder } from "../../telemetry/decisions/recorder.ts";

/** `reportingController` of the agent's events, in every cluster. */
export const CONTROLLER_NAME = "ironfence.io/agent";

// A fence waits for its BMC nearly all of the time, so hundreds of fences cost little. The bound limits memory and
// sockets.
const REMEDIATIONS_AT_ONCE = 500;

export interface ComponentDeps {
  options: RunOptions;
  runtime: KubeRuntime;
  registry: Registry;
  nodes: Watched<Node>;
  openDevice: OpenDevice;
  /** Whether this agent may send power orders at this moment. */
  isOrderAllowed: () => boolean;
  handOver: (why: string) => void;
  recorder: DecisionRecorder | undefined;
  tracer: FenceTracer | undefined;
  /** Messages of crash kernels; undefined if the agent does not receive them. */
  kdump: KdumpSource | undefined;
  /** Undefined unless the agent only observes. */
  withheld: RemediationListener | undefined;
}

/** The parts that run concurrently, by the name that users see. */
type Parts = Record<string, Promise<void>>;

/**
 * Runs the chosen components until `signal` aborts. If one of them ends by itself, all of them end. Otherwise an agent
 * with only one half would look alive and keep its lease.
 */
export async function runComponents(agent: ComponentDeps, signal: AbortSignal): Promise<void> {
  const { options, registry, nodes, isOrderAllowed } = agent;
  const runtime = shareCollections(agent.runtime, options.namespace);
  const deps = { ...agent, runtime };
  const failure = new AbortController();
  const running = AbortSignal.any([signal, failure.signal]);
  const guard = async (name: string, part: Promise<void>): Promise<void> => {
    try {
      await part;
      if (!running.aborted) throw new Error(`the ${name} stopped unexpectedly`);
    } catch (error) {
      if (!running.aborted) failure.abort(error);
    }
  };
  const clusters = createWorkloadClusters(
    {
      runtime,
      registry,
      openTransport: (cluster, work) =>
        createHttpTransport(cluster, runtime, {
          bodyBytesMax: WORKLOAD_BODY_BYTES_MAX,
          allowLocal: options.allowLocalWorkloadClusters,
          work,
        }),
      mayWrite: isOrderAllowed,
      controllerName: CONTROLLER_NAME,
      instance: options.instance,
    },
    running,
  );
  const { ownCluster: name } = options;
  const all = name === undefined ? clusters : withOwnCluster(name, ownCluster(runtime, nodes, running), clusters);
  const shared = { leases: new KubeletLeases(runtime), coverage: new HealthCheckCoverage() };
  const parts: Parts = {
    ...(options.components.has("detector") && startDetector(deps, all, shared, running)),
    // An agent that only observes does not act on remediations and calls no BMC, because another agent may be fencing
    // the host.
    ...(options.components.has("remediator") && !options.observe && startRemediator(deps, all, shared, running)),
  };
  await Promise.all(Object.entries(parts).map(([name, part]) => guard(name, part)));
  await clusters.settled();
  if (failure.signal.aborted) throw failure.signal.reason;
}

/** What both halves know about the nodes of the agent's own cluster. */
interface Shared {
  leases: KubeletLeases;
  coverage: HealthCheckCoverage;
}

function startDetector(
  deps: ComponentDeps,
  clusters: WorkloadClusters,
  { leases, coverage }: Shared,
  signal: AbortSignal,
): Parts {
  const { options, runtime, registry, nodes, recorder, withheld: listener } = deps;
  const { families, nodeLeaseNamespace: leaseNamespace, namespace, zoneLabel, ownCluster: own } = options;
  const counts = new MachineCheckCounts(registry);
  return {
    ...(families.has("node-health-check") && {
      detector: runNodeHealthChecks(
        {
          runtime,
          nodes,
          registry,
          leases,
          coverage,
          listener,
          recorder,
          zoneLabel,
          options: { leaseNamespace, namespace },
        },
        signal,
      ),
    }),
    ...(families.has("machine-health-check") && {
      "detector of machines": runMachineHealthChecks(
        {
          runtime,
          clusters,
          kind: CLUSTER_API_CHECKS,
          namespace,
          zoneLabel,
          count: counts.of("machine-health-check"),
          coverage,
          ownCluster: own,
          listener,
          recorder,
        },
        signal,
      ),
    }),
    ...(families.has("okd-machine-health-check") && {
      "detector of OKD machines": runOkdHealthChecks(
        {
          runtime,
          nodes,
          registry,
          namespace,
          zoneLabel,
          count: counts.of("okd-machine-health-check"),
          coverage,
          listener,
          recorder,
        },
        signal,
      ),
    }),
  };
}

function startRemediator(
  deps: ComponentDeps,
  clusters: WorkloadClusters,
  { leases, coverage }: Shared,
  signal: AbortSignal,
): Parts {
  const { options, runtime, registry, nodes, openDevice, isOrderAllowed, handOver, recorder, tracer, kdump } = deps;
  const { families, namespace } = options;
  const targets = runtime.watch<FencingTarget>({ type: FENCING_TARGETS, namespace, trim: trimTarget }, signal);
  const remediator = runRemediator(
    {
      runtime,
      nodes,
      leases,
      coverage,
      clusters,
      targets,
      namespace,
      openDevice: guardOrders(openDevice, isOrderAllowed),
      registry,
      bareMetalHosts: families.has("bare-metal-host"),
      recorder,
      tracer,
      kdump,
      options: {
        concurrency: REMEDIATIONS_AT_ONCE,
        limits: {
          hosts: options.maxHosts,
          perCluster: options.maxHostsPerCluster,
          perZone: options.maxHostsPerZone,
        },
        zoneLabel: options.zoneLabel,
        externalEtcd: options.externalEtcd,
        ownNode: options.nodeName,
        ownCluster: options.ownCluster,
        handOver,
      },
    },
    signal,
  );
  return {
    remediator,
    ...(families.has("okd-machine") && {
      "server of OKD machines": serveOkdMachines(runtime, options.zoneLabel, signal),
    }),
    ...(families.has("metal3-remediation") && {
      "server of Metal3Remediations": serveMetal3Remediations(runtime, signal),
    }),
  };
}
