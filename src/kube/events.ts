import type { KubeObject } from "./resource.ts";

/** One Kubernetes Event about an object (`events.k8s.io/v1`). */
export interface EventNote {
  /** What it is about. */
  regarding: KubeObject;
  /** A second object, for example the node of a remediation. */
  related?: KubeObject;
  type: "Normal" | "Warning";
  /** Machine-readable, UpperCamelCase, at most 128 characters. */
  reason: string;
  /** What was being done, UpperCamelCase. */
  action: string;
  /** Text, at most 1,024 characters; longer ones are cut. */
  note: string;
}

/**
 * Sends events in the background: it never blocks, never throws, repeats of one event become a series, and a full queue
 * drops the oldest and counts it.
 */
export interface EventRecorder {
  record(note: EventNote): void;
}
