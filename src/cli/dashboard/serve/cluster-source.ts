import type { ClusterOptions } from "../../../config/cluster-options.ts";
import type { KubeRuntime } from "../../../kube/runtime.ts";
import type { ClusterAddress } from "../../cluster/connect.ts";
import { readDecisions } from "../../explain/read.ts";
import { readOverview } from "../../status/objects/read.ts";
import type { PageSource } from "./live-pages.ts";

/** Reads what the pages show, with the permissions of the runtime's credentials. */
export function sourceOf(
  runtime: KubeRuntime,
  options: ClusterOptions & { leaseName: string; leaseNamespace: string },
  cluster: ClusterAddress,
): PageSource {
  const { namespace, leaseNamespace } = options;
  return {
    // The command serves nothing else, so it may spend a third of its time on reads, or more if a read takes over 7 s.
    // The page has to be fresh.
    ageByCost: 2,
    readOverview: (signal) => readOverview(runtime, options, cluster, signal),
    readDecisions: (signal) => readDecisions(runtime, { leaseNamespace, namespace }, signal),
  };
}

/**
 * Like `sourceOf`, for the agent. It lacks permissions for some of what a decision needs, and the memory to make each
 * decision twice.
 */
export function agentSource(
  runtime: KubeRuntime,
  options: ClusterOptions & { leaseName: string },
  cluster: ClusterAddress,
): PageSource {
  return {
    // The agent has no permission for the Lease of an agent that only observes.
    readOverview: (signal) => readOverview(runtime, { ...options, readsObserver: false }, cluster, signal),
    readDecisions: () => Promise.resolve({ problem: "run ironfence explain node, or ironfence dashboard" }),
  };
}
