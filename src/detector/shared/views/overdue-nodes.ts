import type { Node } from "../../../api/kubernetes/core.ts";
import type { KubeRuntime } from "../../../kube/runtime.ts";
import { serverTimeMs } from "../../../kube/server-time.ts";
import type { Watched } from "../../../kube/watched.ts";
import { isControlPlane } from "../../../nodes/control-plane.ts";
import type { KubeletLeases } from "../../../nodes/leases/kubelet-leases.ts";
import type { EarlyFacts } from "../model/early-facts.ts";

/** Which nodes do not renew their leases, as far as this process has observed. */
export interface OverdueNodes {
  factsOf(nodeName: string): EarlyFacts;
  /** The names of the nodes whose renewal is overdue. */
  names(): readonly string[];
  /** Reads the lease of a node live, so that a late watch does not look like silence. */
  confirm(nodeName: string, signal: AbortSignal): Promise<void>;
}

/** Watches the node leases from the first call until `signal` aborts. */
export function overdueNodes(
  runtime: Pick<KubeRuntime, "clock" | "contact">,
  nodes: Pick<Watched<Node>, "get">,
  leases: Pick<KubeletLeases, "start" | "synced" | "of" | "overdue" | "readLive">,
  signal: AbortSignal,
): OverdueNodes {
  const names = (): string[] => {
    leases.start(signal);
    return [...leases.overdue()];
  };
  return {
    names,
    factsOf(nodeName) {
      leases.start(signal);
      const isOfControlPlane = (name: string): boolean => {
        const node = nodes.get({ name });
        return node !== undefined && isControlPlane(node);
      };
      return {
        lease: leases.synced ? leases.of(nodeName) : undefined,
        monotonicMs: runtime.clock.monotonicMs(),
        serverNowMs: serverTimeMs(runtime),
        otherControlPlaneOverdue:
          isOfControlPlane(nodeName) && names().some((name) => name !== nodeName && isOfControlPlane(name)),
      };
    },
    confirm: async (nodeName, signal) => {
      await leases.readLive(nodeName, signal);
    },
  };
}
