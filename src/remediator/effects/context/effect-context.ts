import type { RatePermits } from "../../early/rate-permits.ts";
import type { Node } from "../../../api/kubernetes/core.ts";
import type { KubeRuntime } from "../../../kube/runtime.ts";
import type { Now, Sibling } from "../../machine/model/facts/snapshot.ts";
import { clusterKey } from "../../../nodes/subject.ts";
import type { FencedHost, HostPower } from "../../hosts/model/host.ts";
import type {
  BareMetalRemediation,
  BareMetalRemediationStatus,
} from "../../../api/ironfence/bare-metal-remediation.ts";
import type { State } from "../../machine/model/decision/state.ts";
import type { Subject } from "../../../nodes/subject.ts";
import type { NodeCluster } from "../../clusters/node-clusters.ts";
import type { Observations } from "../../machine/model/facts/observations.ts";
import type { OrderFacts } from "../../machine/rules/orders/order-obstacle.ts";
import type { RemediationEvent } from "../../machine/model/facts/event.ts";
import type { LeaseVersion } from "../../machine/model/decision/strategy.ts";

/** What effects know about the remediation, and the object to which they report events. */
export interface EffectSession {
  readonly uid: string;
  readonly remediation: BareMetalRemediation;
  readonly status: BareMetalRemediationStatus;
  readonly state: State;
  readonly subject: Subject;
  /** Undefined while the node is not resolved, and for a Machine without a Node. */
  readonly nodeName: string | undefined;
  readonly cluster: Pick<NodeCluster, "runtime" | "nodes" | "problem">;
  readonly observations: Observations;
  readonly provenLease: LeaseVersion | undefined;
  /** The open devices of the host. */
  power: HostPower | undefined;
  now(): Now;
  /** Reports an event when it happens, because the call around it may still fail or never return. */
  observe(event: RemediationEvent): void;
  /** Takes the object from a live read or the answer to a write. */
  learn(current: BareMetalRemediation): void;
  closeDevices(): Promise<void>;
  /** Aborts when the session ends. */
  readonly lifetime: AbortSignal;
  /** Requests another decision. */
  wake(): void;
}

/** What effects act on. */
export interface EffectContext {
  /** Reaches the cluster that holds the remediation, its target and its Machine. */
  runtime: KubeRuntime;
  /** Reaches the cluster that holds the node, its lease, its pods and their volumes. */
  nodeRuntime: KubeRuntime;
  session: EffectSession;
  /** Undefined if the host cannot be found. */
  host: FencedHost | undefined;
  /** The watched node; undefined if there is none. */
  node: Node | undefined;
  siblings: readonly Sibling[];
  admissions: {
    ask(remediation: BareMetalRemediation): void;
    withdraw(uid: string): void;
    askToReplace(remediation: BareMetalRemediation): { granted: true } | { granted: false; by: string };
  };
  /** Bounds the writes to pods of all early remediations together; undefined if they are not bounded. */
  earlyPodWrites?: RatePermits | undefined;
  /** Hands the agent lease over to another agent. Does nothing if this agent does not hold it. */
  handOver: (why: string) => void;
  /** The nodes that run etcd, as watched. */
  etcdNodes(): Node[];
  /** Whether the etcd of the node's cluster runs outside of it. */
  hasExternalEtcd: boolean;
  /**
   * The facts that a power order depends on, as they are now: they may have changed while its intent was being stored.
   */
  orderFacts(): OrderFacts;
  /** Why no power-off may be sent, by a live read of the stop switch. @throws KubeError */
  readStopSwitch(signal: AbortSignal): Promise<{ reason: string } | undefined>;
  /** Finds out which cluster the agent runs in. @throws KubeError */
  identifyOwnCluster(signal: AbortSignal): Promise<void>;
}

/** The fields of every log line about a remediation. */
export function fieldsOf(session: Pick<EffectSession, "uid" | "remediation" | "subject">): {
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
