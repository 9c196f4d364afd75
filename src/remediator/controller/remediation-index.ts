import type { BareMetalRemediation } from "../../api/ironfence/bare-metal-remediation.ts";
import type { FencingTarget } from "../../api/ironfence/fencing-target.ts";
import type { ClusterRef } from "../../clusters/workload-clusters.ts";
import type { Change } from "../../kube/watched.ts";
import { nodeKey, subjectOf } from "../../nodes/subject.ts";

/**
 * The watched remediations by node and by Machine, so that a change of a node wakes only its own remediations. A node
 * is identified by its name and its cluster.
 */
export class RemediationIndex {
  readonly #byKey = new Map<string, Map<string, BareMetalRemediation>>();

  apply(change: Change<BareMetalRemediation>): void {
    const { object } = change;
    if (change.type === "updated") this.#remove(change.previous);
    if (change.type === "deleted") {
      this.#remove(object);
      return;
    }
    for (const key of keysOf(object)) {
      const remediations = this.#byKey.get(key) ?? new Map<string, BareMetalRemediation>();
      remediations.set(object.metadata.uid, object);
      this.#byKey.set(key, remediations);
    }
  }

  /** The remediations of a node. */
  ofNode(cluster: ClusterRef | undefined, name: string): BareMetalRemediation[] {
    return this.#of([nodeKeyOf(cluster, name)]);
  }

  /** The other remediations of the same node or Machine. */
  siblings(remediation: BareMetalRemediation): BareMetalRemediation[] {
    const keys = keysOf(remediation).filter((key) => key.startsWith(NODE) || key.startsWith(MACHINE));
    return this.#of(keys).filter((other) => other.metadata.uid !== remediation.metadata.uid);
  }

  /** The remediations that a target concerns: those of its node, and those with this target in their status. */
  ofTarget(target: FencingTarget): BareMetalRemediation[] {
    const { nodeName, clusterRef } = target.spec;
    return this.#of([nodeKeyOf(clusterRef, nodeName), targetKeyOf(target.metadata.uid)]);
  }

  #of(keys: readonly string[]): BareMetalRemediation[] {
    const found = new Map<string, BareMetalRemediation>();
    for (const key of keys) for (const [uid, remediation] of this.#byKey.get(key) ?? []) found.set(uid, remediation);
    return [...found.values()];
  }

  #remove(remediation: BareMetalRemediation): void {
    for (const key of keysOf(remediation)) {
      const remediations = this.#byKey.get(key);
      remediations?.delete(remediation.metadata.uid);
      if (remediations?.size === 0) this.#byKey.delete(key);
    }
  }
}

const NODE = "node ";
const MACHINE = "machine ";

/** The keys of a remediation in the index. */
function keysOf(remediation: BareMetalRemediation): string[] {
  const { nodeName, cluster, machine } = subjectOf(remediation);
  const target = remediation.status?.target?.uid;
  return [
    ...(nodeName === undefined ? [] : [nodeKeyOf(cluster, nodeName)]),
    ...(machine === undefined ? [] : [`${MACHINE}${machine.uid}`]),
    ...(target === undefined ? [] : [targetKeyOf(target)]),
  ];
}

const nodeKeyOf = (cluster: ClusterRef | undefined, name: string): string => `${NODE}${nodeKey({ cluster, name })}`;
const targetKeyOf = (uid: string): string => `target ${uid}`;
