import type { BareMetalRemediation } from "../api/bare-metal-remediation.ts";
import type { FencingTarget } from "../api/fencing-target.ts";
import type { Change } from "../kube/watched.ts";
import { nodeNameOf } from "./session.ts";

/** The watched remediations by node, so that a change of one node wakes none but its own. */
export class RemediationIndex {
  readonly #byNode = new Map<string, Map<string, BareMetalRemediation>>();

  apply(change: Change<BareMetalRemediation>): void {
    const { object } = change;
    const { uid } = object.metadata;
    const nodeName = nodeNameOf(object);
    if (change.type === "updated" && nodeNameOf(change.previous) !== nodeName) this.#remove(change.previous);
    if (change.type === "deleted") {
      this.#remove(object);
      return;
    }
    const remediations = this.#byNode.get(nodeName) ?? new Map<string, BareMetalRemediation>();
    remediations.set(uid, object);
    this.#byNode.set(nodeName, remediations);
  }

  /** The remediations of a node. */
  ofNode(nodeName: string): BareMetalRemediation[] {
    return [...(this.#byNode.get(nodeName)?.values() ?? [])];
  }

  /** The other remediations of the same node. */
  siblings(remediation: BareMetalRemediation): BareMetalRemediation[] {
    return this.ofNode(nodeNameOf(remediation)).filter((other) => other.metadata.uid !== remediation.metadata.uid);
  }

  /** The remediations that a target concerns: those of its node, and those that took it. */
  ofTarget(target: FencingTarget): BareMetalRemediation[] {
    const { uid } = target.metadata;
    const found = new Map<string, BareMetalRemediation>();
    for (const [nodeName, remediations] of this.#byNode) {
      for (const remediation of remediations.values()) {
        const concerned = nodeName === target.spec.nodeName || remediation.status?.target?.uid === uid;
        if (concerned) found.set(remediation.metadata.uid, remediation);
      }
    }
    return [...found.values()];
  }

  #remove(remediation: BareMetalRemediation): void {
    const nodeName = nodeNameOf(remediation);
    const remediations = this.#byNode.get(nodeName);
    remediations?.delete(remediation.metadata.uid);
    if (remediations?.size === 0) this.#byNode.delete(nodeName);
  }
}
