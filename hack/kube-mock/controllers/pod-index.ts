import { PODS } from "../../../src/api/kubernetes/core-types.ts";
import { keyOf, keyText } from "../../../src/kube/watched.ts";
import type { ApiServer } from "../api-server.ts";
import type { ClusterPod } from "./cluster-types.ts";

/** An index of pods by node. */
export class PodIndex {
  readonly #keysByNode = new Map<string, Set<string>>();
  readonly #unsubscribe: () => void;

  constructor(server: ApiServer) {
    this.#unsubscribe = server.collection<ClusterPod>(PODS).subscribe(({ type, object }) => {
      const { nodeName } = object.spec;
      if (nodeName === undefined) return;
      const keys = this.#keysByNode.get(nodeName) ?? new Set<string>();
      if (type === "DELETED") keys.delete(keyText(keyOf(object)));
      else this.#keysByNode.set(nodeName, keys.add(keyText(keyOf(object))));
      if (keys.size === 0) this.#keysByNode.delete(nodeName);
    });
  }

  keysOn(nodeName: string): readonly string[] {
    return [...(this.#keysByNode.get(nodeName) ?? [])];
  }

  countOn(nodeName: string): number {
    return this.#keysByNode.get(nodeName)?.size ?? 0;
  }

  stop(): void {
    this.#unsubscribe();
  }
}
