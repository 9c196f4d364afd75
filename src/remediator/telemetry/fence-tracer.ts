import type { MeasuredCall } from "../../bmc/devices/measured-device.ts";

/** A remediation, as its trace names it. */
export interface TracedFence {
  uid: string;
  /** `namespace/name` */
  name: string;
  nodeName: string | undefined;
  /** When the remediation was created. */
  createdMs: number | undefined;
}

/** Follows fences for tracing. Nothing of it throws or waits: a fence matters more than its trace. */
export interface FenceTracer {
  /** Does work of a fence. Calls of devices that are reported within it belong to the fence. */
  within<T>(fence: TracedFence, work: () => Promise<T>): Promise<T>;
  /** The fence has left a state. @param verdict why it has ended, if `to` is final. */
  left(fence: TracedFence, step: { state: string; to: string; seconds: number; verdict: string | undefined }): void;
  called(call: MeasuredCall): void;
  /** Nothing more is reported of the fence by this process. */
  ended(uid: string): void;
}
