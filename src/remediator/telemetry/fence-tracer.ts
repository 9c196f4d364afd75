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

/** Traces fences. Tracing never throws and never delays a fence, which matters more than its trace. */
export interface FenceTracer {
  /** Runs work of a fence. Device calls that are reported during the work belong to the fence. */
  within<T>(fence: TracedFence, work: () => Promise<T>): Promise<T>;
  /** The fence has left a state. @param verdict why it has ended, if `to` is final. */
  left(fence: TracedFence, step: { state: string; to: string; seconds: number; verdict: string | undefined }): void;
  called(call: MeasuredCall): void;
  /** This process reports nothing more about the fence. */
  ended(uid: string): void;
}
