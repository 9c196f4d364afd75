import type { KubeObject } from "../../kube/resource.ts";
import { keyOf, keyText } from "../../kube/watched.ts";
import type { Watched } from "../../kube/watched.ts";

/** A view of the objects of one live list, for a command that ends before anything changes. */
export function staticView<T extends KubeObject>(items: readonly T[]): Watched<T> {
  const byKey = new Map(items.map((item) => [keyText(keyOf(item)), item]));
  return {
    get: (key) => byKey.get(keyText(key)),
    values: () => byKey.values(),
    size: byKey.size,
    synced: true,
    lastContactMs: 0,
    problem: undefined,
    subscribe(listener) {
      for (const object of items) listener({ type: "added", object });
      return () => undefined;
    },
    whenSynced: () => Promise.resolve(),
  };
}
