import type { KubeObject } from "../../../kube/resource.ts";

/** A Kubernetes event that is to be recorded. */
export interface Announcement<R extends string = string> {
  /** Identifies an announcement. An announcement that stands is recorded once for as long as its cause does. */
  key: string;
  type: "Normal" | "Warning";
  reason: R;
  note: string;
  /** The node, machine or remediation that it is about; undefined: the health check itself. */
  about?: KubeObject | undefined;
}
