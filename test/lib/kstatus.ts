import type { KubeObject } from "../../src/kube/resource.ts";

type Kstatus = "InProgress" | "Failed" | "Current" | "Terminating";

/** The fields of an object that decide. */
type Judged = Pick<KubeObject, "metadata"> & {
  status?: {
    observedGeneration?: number | undefined;
    conditions?: readonly { type: string; status: string }[] | undefined;
  };
};

/**
 * The status that generic tools derive from an object, by the rules of kstatus (sigs.k8s.io/cli-utils) for kinds that
 * it does not know.
 */
export function kstatusOf({ metadata, status = {} }: Judged): Kstatus {
  if (metadata.deletionTimestamp !== undefined) return "Terminating";
  const { observedGeneration, conditions = [] } = status;
  if (observedGeneration !== undefined && observedGeneration !== metadata.generation) return "InProgress";
  const says = (type: string): string | undefined => conditions.find((condition) => condition.type === type)?.status;
  if (says("Reconciling") === "True") return "InProgress";
  if (says("Stalled") === "True") return "Failed";
  const ready = says("Ready");
  return ready === undefined || ready === "True" ? "Current" : "InProgress";
}
