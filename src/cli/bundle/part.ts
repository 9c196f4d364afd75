import type { OpenDevice } from "../../bmc/interface/device-config.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import type { KubeTransport } from "../../kube/transport.ts";
import type { ReadDeps } from "../check/read/read-facts.ts";

/** One file of a bundle, before secrets are removed. */
export type PartFile = { path: string } & (
  | { text: string }
  | { json: unknown }
  /** One JSON object a line. */
  | { objects: readonly unknown[] }
  /** Lines of a log. If not all fit, the last ones are kept. */
  | { log: readonly string[] }
);

/** The result of one part. */
export interface PartResult {
  files: readonly PartFile[];
  /** What could not be read, each as a sentence without its full stop. */
  gaps: readonly string[];
}

/** What the parts read from. */
export interface PartDeps extends ReadDeps {
  /** Only reads, and never a Secret. */
  runtime: KubeRuntime;
  transport: KubeTransport;
  /** For probes of BMCs, which need their Secrets; undefined without `--live`. */
  live: { runtime: KubeRuntime; openDevice: OpenDevice } | undefined;
}

/** One thing to gather. A part that fails is listed in the index, and the bundle is written without it. */
export interface Part {
  name: string;
  timeoutMs: number;
  read: (deps: PartDeps, signal: AbortSignal) => Promise<PartResult>;
}
