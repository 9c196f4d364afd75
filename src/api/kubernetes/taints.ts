import { FENCED_BY } from "../names/annotations.ts";
import type { Taint } from "./core.ts";

/** Reports to Kubernetes that the node is shut down permanently, so that pods and volumes may move (KEP-2268). */
export const OUT_OF_SERVICE: Taint = {
  key: "node.kubernetes.io/out-of-service",
  value: "nodeshutdown",
  effect: "NoExecute",
};

/** Keeps new pods off a node between its release and its proven return. */
export const QUARANTINE: Taint = { key: "ironfence.io/quarantine", value: "fenced", effect: "NoSchedule" };

/**
 * The ownership taint. It is put on together with our out-of-service taint, and only with it. Its value names the
 * remediation that put both on. A kubelet cannot write taints (the admission plugin NodeRestriction), but it can
 * annotate its own Node. The ownership taint has the weakest effect: ironfence 0.1.0 does not know it and leaves it
 * behind after a rollback.
 */
export const FENCED: Pick<Taint, "key" | "effect"> = { key: FENCED_BY, effect: "PreferNoSchedule" };

/** Taints that Kubernetes derives from node conditions. They are neither backed up nor restored. */
export const CONDITION_TAINT_PREFIX = "node.kubernetes.io/";

/** Whether both are one taint: Kubernetes distinguishes taints by key and effect. */
export function sameTaint(a: Pick<Taint, "key" | "effect">, b: Pick<Taint, "key" | "effect">): boolean {
  return a.key === b.key && a.effect === b.effect;
}
