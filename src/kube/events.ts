import type { KubeObject } from "./resource.ts";

/** One Kubernetes Event about an object (`events.k8s.io/v1`). */
export interface EventNote {
  /** The object that the Event is about. */
  regarding: KubeObject;
  /** A second object, for example the node of a remediation. */
  related?: KubeObject;
  type: "Normal" | "Warning";
  /** Machine-readable, UpperCamelCase, at most 128 characters. */
  reason: string;
  /** The action that the Event reports, UpperCamelCase. */
  action: string;
  /** Text. It is cut to 1,024 bytes. */
  note: string;
}

/**
 * Sends Kubernetes Events in the background. It never blocks and never throws. Repeats of one Event become a series. If
 * the queue is full, the oldest Event is dropped and counted.
 */
export interface EventRecorder {
  record(note: EventNote): void;
}
