import type { FencingTarget } from "../../api/ironfence/fencing-target.ts";
import type { Node } from "../../api/kubernetes/core.ts";
import type { Outage } from "../../api/kubernetes/outage.ts";
import { outageOf } from "../../api/kubernetes/outage.ts";
import type { KubeObject } from "../../kube/resource.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import type { Watched } from "../../kube/watched.ts";
import { isReady } from "../../nodes/ready.ts";
import { clusterKey } from "../../nodes/subject.ts";
import type { NodeClusters } from "../clusters/node-clusters.ts";
import type { Managed } from "../hosts/composite-directory.ts";
import type { FencingTargetDirectory } from "../hosts/fencing-target/directory.ts";
import type { Conflict } from "../hosts/fencing-target/target-index.ts";
import { meaningfulUuid } from "../hosts/model/identity.ts";
import type { ProofsWanted } from "./proofs-wanted.ts";
import type { ProbeTrigger } from "./schedule/probe-schedule.ts";

export interface TargetSurroundingsDeps {
  clusters: NodeClusters;
  directory: FencingTargetDirectory;
  /** The agent's own namespace. */
  namespace: string;
  /** Why another operator powers the host of a target as well; undefined if none is known. */
  whyManaged?: (target: FencingTarget) => Managed | undefined;
}

/** What the watches show about a target besides its object: its node, an outage of the node, a conflict. */
export class TargetSurroundings {
  readonly #deps: TargetSurroundingsDeps;
  readonly #secrets: Watched<KubeObject>;
  readonly #proofs: ProofsWanted;
  /** Keeps the clusters of targets' nodes connected, by the target's UID. */
  readonly #connections = new Map<string, { key: string; release: () => void }>();

  constructor(deps: TargetSurroundingsDeps, secrets: Watched<KubeObject>, proofs: ProofsWanted) {
    this.#deps = deps;
    this.#secrets = secrets;
    this.#proofs = proofs;
  }

  forget(targetUid: string): void {
    this.#connections.get(targetUid)?.release();
    this.#connections.delete(targetUid);
  }

  close(): void {
    for (const { release } of this.#connections.values()) release();
  }

  /** The node that the target names, in its cluster; also undefined while the cluster has a problem. */
  nodeOf(target: FencingTarget): { nodeRuntime: KubeRuntime; node: Node | undefined } {
    const { clusters } = this.#deps;
    const { nodeName, clusterRef } = target.spec;
    const { uid } = target.metadata;
    const key = clusterKey(clusterRef);
    const held = this.#connections.get(uid);
    // The agent's own cluster needs no hold.
    if ((held?.key ?? clusterKey(undefined)) !== key) {
      if (clusterRef === undefined) this.#connections.delete(uid);
      else this.#connections.set(uid, { key, release: clusters.hold(clusterRef) });
      held?.release();
    }
    const { runtime, nodes } = clusters.of(clusterRef);
    return { nodeRuntime: runtime, node: nodes.get({ name: nodeName }) };
  }

  /** The outage of the node for which a health check requests a proof of Off. */
  outageOf(target: FencingTarget): Outage | undefined {
    // Health checks that request proofs select nodes of the agent's own cluster.
    if (!this.#proofs.wanted || target.spec.clusterRef !== undefined) return undefined;
    return outageOf(this.nodeOf(target).node);
  }

  /**
   * The boot of a Ready node whose host may be proven off before its duration begins; undefined if no health check
   * may remediate it then.
   */
  readyBootOf(target: FencingTarget, node: Node | undefined): string | undefined {
    if (node === undefined || target.spec.clusterRef !== undefined || !isReady(node)) return undefined;
    return this.#proofs.isEarlyWantedFor(node) ? node.status.nodeInfo?.bootID : undefined;
  }

  conflictOf(target: FencingTarget): Conflict | undefined {
    const { directory, whyManaged } = this.#deps;
    const conflict = directory.conflictOf(target.metadata.uid);
    if (conflict !== undefined) return conflict;
    const managed = whyManaged?.(target);
    if (managed?.why === undefined) return undefined;
    const found = { message: managed.why, byReport: false, holdsOn: true };
    return managed.state === "unread" ? { ...found, unread: true } : found;
  }

  /** What makes a probe of the target due when it changes. */
  triggerOf(target: FencingTarget): ProbeTrigger {
    const { namespace } = this.#deps;
    const names = target.spec.devices.flatMap((device) => [
      device.credentialsSecretRef.name,
      ...(device.tls?.caSecretRef === undefined ? [] : [device.tls.caSecretRef.name]),
    ]);
    const versions = names.map((name) => this.#secrets.get({ namespace, name })?.metadata.resourceVersion ?? "");
    const { node } = this.nodeOf(target);
    const uuid = node !== undefined && isReady(node) ? meaningfulUuid(node.status.nodeInfo?.systemUUID) : undefined;
    const parts = [target.metadata.generation ?? 0, target.status?.owner?.uid ?? "", ...versions];
    const { nodeUID, bootID, notReadySince } = this.outageOf(target) ?? {};
    const outage = nodeUID === undefined ? "" : `${nodeUID} ${bootID ?? ""} ${notReadySince}`;
    const readyBoot = this.readyBootOf(target, node);
    // A host is proven off early only if a probe has read it On in the present boot.
    const isUnread = readyBoot !== undefined && readyBoot !== target.status?.onInBoot;
    return { fingerprint: parts.join(" "), readyUuid: uuid ?? "", outage, unreadBoot: isUnread ? readyBoot : "" };
  }
}
