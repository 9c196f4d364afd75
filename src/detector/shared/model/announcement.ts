import type { KubeObject } from "../../../kube/resource.ts";

/** A Kubernetes Event to record. */
export interface Announcement<R extends string = string> {
  /** Identifies the announcement. A standing announcement is recorded once while its cause lasts. */
  key: string;
  type: "Normal" | "Warning";
  reason: R;
  note: string;
  /** The node, Machine or remediation that it is about; undefined for the health check itself. */
  about?: KubeObject | undefined;
}
