import type { BareMetalRemediation } from "../../api/ironfence/bare-metal-remediation.ts";
import type { FencingTarget } from "../../api/ironfence/fencing-target.ts";
import type { ClusterRef } from "../../clusters/workload-clusters.ts";
import type { Change } from "../../kube/watched.ts";
import { nodeKey, subjectOf } from "../../nodes/subject.ts";
import { MultiMap } from "../../runtime/multi-map.ts";

/**
 * The watched remediations by node and by Machine, so that a change of a node wakes only its own remediations. A node
 * is identified by its name and its cluster.
 */
export class RemediationIndex {
  readonly #byKey = new MultiMap<BareMetalRemediation>();

  apply(change: Change<BareMetalRemediation>): void {
    const { object } = change;
    this.#remove(change.type === "updated" ? change.previous : object);
    if (change.type === "deleted") return;
    for (const key of keysOf(object)) this.#byKey.add(key, object);
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
    return [...new Set(keys.flatMap((key) => [...this.#byKey.get(key)]))];
  }

  #remove(remediation: BareMetalRemediation): void {
    for (const key of keysOf(remediation)) {
      const known = [...this.#byKey.get(key)].find(({ metadata }) => metadata.uid === remediation.metadata.uid);
      if (known !== undefined) this.#byKey.delete(key, known);
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
