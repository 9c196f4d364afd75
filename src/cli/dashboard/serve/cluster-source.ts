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
    // A process of its own may spend a third of its time on reads, or more if they take over 7 s: the page has to be
    // fresh.
    ageByCost: 2,
    readOverview: (signal) => readOverview(runtime, options, cluster, signal),
    readDecisions: (signal) => readDecisions(runtime, { leaseNamespace, namespace }, signal),
  };
}

/** The same for the agent: it has no permission for all that a decision rests on, and no memory to decide twice. */
export function agentSource(
  runtime: KubeRuntime,
  options: ClusterOptions & { leaseName: string },
  cluster: ClusterAddress,
): PageSource {
  return {
    // Nor for the Lease of an agent that only observes.
    readOverview: (signal) => readOverview(runtime, { ...options, readsObserver: false }, cluster, signal),
    readDecisions: () => Promise.resolve({ problem: "run ironfence explain node, or ironfence dashboard" }),
  };
}
