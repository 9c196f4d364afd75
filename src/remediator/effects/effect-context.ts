import type { Node } from "../../api/core.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import type { Session } from "../controller/session.ts";
import type { SentOrder } from "../machine/model/observations.ts";
import type { Sibling } from "../machine/model/snapshot.ts";
import { clusterKey } from "../../nodes/subject.ts";
import type { FencedHost } from "../hosts/host.ts";
import type { Turns } from "../controller/admissions.ts";

/** What effects act on. */
export interface EffectContext {
  /** Of the cluster that holds the remediation, its target and its Machine. */
  runtime: KubeRuntime;
  /** Of the cluster that holds the node, its lease, its pods and their volumes. */
  nodeRuntime: KubeRuntime;
  session: Session;
  /** Absent where the host cannot be found. */
  host: FencedHost | undefined;
  /** The node as watched; absent where there is none. */
  node: Node | undefined;
  siblings: readonly Sibling[];
  turns: Pick<Turns, "ask" | "leave" | "askToReplace">;
  /** Gives the agent's lease to another one; nothing where the agent has none to give. */
  handOver: (why: string) => void;
  /** The nodes that run etcd, as watched. */
  etcdNodes(): Node[];
  /** Whether the etcd of the node's cluster runs outside of it. */
  hasExternalEtcd: boolean;
  /** Whether a power order may still go out now: the decision for it was stored first, which takes its time. */
  mayOrder(action: SentOrder["action"]): boolean;
  /** Why no power-off may be sent, by a live look at the stop switch. @throws KubeError */
  readStopSwitch(signal: AbortSignal): Promise<{ reason: string } | undefined>;
  /** Finds out which cluster the agent lives in. @throws KubeError */
  identifyOwnCluster(signal: AbortSignal): Promise<void>;
}

/** What stands in every log line about a remediation. */
export function fieldsOf(session: Session): {
  remediation: string;
  uid: string;
  node: string | undefined;
  cluster?: string;
} {
  const { namespace = "", name } = session.remediation.metadata;
  const { nodeName, cluster } = session.subject;
  return {
    remediation: `${namespace}/${name}`,
    uid: session.uid,
    node: nodeName,
    ...(cluster !== undefined && { cluster: clusterKey(cluster) }),
  };
}
