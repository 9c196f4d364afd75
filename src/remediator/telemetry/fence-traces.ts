import { AsyncLocalStorage } from "node:async_hooks";
import { createHash } from "node:crypto";
import type { MeasuredCall } from "../../bmc/devices/measured-device.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Random } from "../../runtime/random.ts";
import type { Span } from "../../telemetry/otlp-exporter.ts";
import type { FenceTracer, TracedFence } from "./fence-tracer.ts";

/**
 * Makes a trace of each fence: a span for the whole, one for each state below it, and one for each call of a device
 * below the state. The trace is named after the UID of the remediation, so that the agent that takes over continues it.
 */
export class FenceTraces implements FenceTracer {
  readonly #deps: { clock: Clock; random: Random; add: (span: Span) => void };
  /** The fence that is being worked on. */
  readonly #current = new AsyncLocalStorage<string>();
  /** The span of the state in which each fence is. */
  readonly #states = new Map<string, string>();

  constructor(deps: { clock: Clock; random: Random; add: (span: Span) => void }) {
    this.#deps = deps;
  }

  within<T>({ uid }: TracedFence, work: () => Promise<T>): Promise<T> {
    return this.#current.run(uid, work);
  }

  left(fence: TracedFence, step: { state: string; to: string; seconds: number; verdict: string | undefined }): void {
    const { uid, name, nodeName = "", createdMs } = fence;
    const { state, to, seconds, verdict } = step;
    const endMs = this.#deps.clock.nowMs();
    const startMs = endMs - seconds * 1_000;
    const attributes = { "ironfence.remediation": name, "k8s.node.name": nodeName };
    const common = { traceId: traceIdOf(uid), kind: "internal" as const, endMs };
    const spanId = this.#stateOf(uid);
    const parentSpanId = rootIdOf(uid);
    this.#deps.add({ ...common, spanId, parentSpanId, name: state, startMs, attributes: { ...attributes, to } });
    this.#states.delete(uid);
    if (verdict === undefined) return;
    const error = to === "Failed" ? verdict : undefined;
    this.#deps.add({
      ...common,
      spanId: parentSpanId,
      name: "fence",
      startMs: createdMs ?? startMs,
      attributes: { ...attributes, result: to, reason: verdict },
      error,
    });
  }

  called({ protocol, operation, result, seconds }: MeasuredCall): void {
    const uid = this.#current.getStore();
    // The call of a probe belongs to no fence.
    if (uid === undefined) return;
    const endMs = this.#deps.clock.nowMs();
    this.#deps.add({
      traceId: traceIdOf(uid),
      spanId: this.#newId(),
      parentSpanId: this.#stateOf(uid),
      name: `bmc ${operation}`,
      kind: "client",
      startMs: endMs - seconds * 1_000,
      endMs,
      attributes: { "ironfence.bmc.protocol": protocol, "ironfence.bmc.result": result },
      error: result === "ok" ? undefined : result,
    });
  }

  ended(uid: string): void {
    this.#states.delete(uid);
  }

  #stateOf(uid: string): string {
    const known = this.#states.get(uid) ?? this.#newId();
    this.#states.set(uid, known);
    return known;
  }

  #newId(): string {
    return Buffer.from(this.#deps.random.bytes(8)).toString("hex");
  }
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

function traceIdOf(uid: string): string {
  return UUID.test(uid) ? uid.replaceAll("-", "") : digest(uid, 32);
}

function rootIdOf(uid: string): string {
  return digest(`root of ${uid}`, 16);
}

function digest(text: string, length: number): string {
  return createHash("sha256").update(text).digest("hex").slice(0, length);
}
