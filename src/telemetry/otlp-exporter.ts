import { Pool } from "undici";
import type { Clock } from "../runtime/clock.ts";
import { sleep } from "../runtime/clock.ts";
import { withDeadline } from "../runtime/deadline.ts";
import { VERSION } from "../runtime/version.ts";
import type { Logger } from "./logger.ts";
import { withoutTrailingSlashes } from "../runtime/text/trailing-slashes.ts";

// OpenTelemetry's protocol for traces over HTTP, in JSON (opentelemetry-proto, "OTLP/HTTP"; encoding of "JSON
// Protobuf").

/** One piece of work in a trace. */
export interface Span {
  /** 32 digits in hex. */
  traceId: string;
  /** 16 digits in hex. */
  spanId: string;
  parentSpanId?: string;
  name: string;
  /** `client` for a call of another system. */
  kind: "internal" | "client";
  startMs: number;
  endMs: number;
  attributes: Readonly<Record<string, string>>;
  /** Why it failed; undefined if it did not. */
  error?: string | undefined;
}

/** The most spans that wait to be sent. If the collector does not answer, further spans are dropped. */
const WAITING_MAX = 2_048;
/** The most spans in one request. */
const BATCH_MAX = 256;
const INTERVAL_MS = 5_000;
const CALL_TIMEOUT_MS = 5_000;
/** How long the agent waits for the last spans when it ends. */
const END_TIMEOUT_MS = 2_000;

export interface OtlpDeps {
  clock: Clock;
  logger: Logger;
  /** Distinguishes this process from the other replicas. */
  instance: string;
}

/** Sends spans to a collector in the background. It never fails a caller: spans that cannot be sent are dropped. */
export class OtlpExporter {
  readonly #url: string;
  readonly #connections: Pool;
  readonly #deps: OtlpDeps;
  #waiting: Span[] = [];
  #dropped = 0;
  #isFailing = false;

  /** @param endpoint as in `OTEL_EXPORTER_OTLP_ENDPOINT`: the path of traces is appended. */
  constructor(endpoint: string, deps: OtlpDeps) {
    this.#url = `${withoutTrailingSlashes(endpoint)}/v1/traces`;
    this.#connections = new Pool(new URL(this.#url).origin);
    this.#deps = deps;
  }

  add(span: Span): void {
    if (this.#waiting.length < WAITING_MAX) this.#waiting.push(span);
    else this.#dropped += 1;
  }

  /** Sends added spans until `signal` aborts, then sends the rest. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    while (!signal.aborted) {
      await sleep(clock, INTERVAL_MS, signal).catch(() => undefined);
      if (!signal.aborted) await this.#sendAll(CALL_TIMEOUT_MS, signal);
    }
    await this.#sendAll(END_TIMEOUT_MS, new AbortController().signal);
    await this.#connections.destroy();
  }

  async #sendAll(timeoutMs: number, signal: AbortSignal): Promise<void> {
    const { clock, logger } = this.#deps;
    const spans = this.#waiting;
    this.#waiting = [];
    try {
      await withDeadline(clock, `sending spans to ${this.#url}`, timeoutMs, signal, async (within) => {
        for (let at = 0; at < spans.length; at += BATCH_MAX) await this.#send(spans.slice(at, at + BATCH_MAX), within);
      });
      if (this.#isFailing && spans.length > 0) {
        logger.info({ dropped: this.#dropped }, "traces are sent again");
        this.#isFailing = false;
        this.#dropped = 0;
      }
    } catch (error) {
      this.#dropped += spans.length;
      if (!this.#isFailing)
        logger.warn({ err: error }, "traces cannot be sent, and are dropped until the collector accepts them");
      this.#isFailing = true;
    }
  }

  async #send(spans: readonly Span[], signal: AbortSignal): Promise<void> {
    const { pathname, search } = new URL(this.#url);
    const { statusCode, body } = await this.#connections.request({
      method: "POST",
      path: pathname + search,
      headers: { "content-type": "application/json" },
      body: JSON.stringify(this.#message(spans)),
      signal,
    });
    await body.dump();
    if (statusCode >= 300) throw new Error(`the collector answered ${statusCode}`);
  }

  #message(spans: readonly Span[]): object {
    const resource = {
      "service.name": "ironfence",
      "service.version": VERSION,
      "service.instance.id": this.#deps.instance,
    };
    return {
      resourceSpans: [
        {
          resource: { attributes: attributesOf(resource) },
          scopeSpans: [{ scope: { name: "ironfence", version: VERSION }, spans: spans.map(spanText) }],
        },
      ],
    };
  }
}

const KINDS = { internal: 1, client: 3 } as const;
const STATUS_ERROR = 2;

function spanText({ startMs, endMs, kind, attributes, error, ...rest }: Span): object {
  return {
    ...rest,
    kind: KINDS[kind],
    startTimeUnixNano: nanoseconds(startMs),
    endTimeUnixNano: nanoseconds(endMs),
    attributes: attributesOf(attributes),
    ...(error !== undefined && { status: { code: STATUS_ERROR, message: error } }),
  };
}

function attributesOf(attributes: Readonly<Record<string, string>>): object[] {
  return Object.entries(attributes).map(([key, value]) => ({ key, value: { stringValue: value } }));
}

/** The encoding writes a 64-bit number as text. A JavaScript number cannot hold nanoseconds since 1970 exactly. */
function nanoseconds(epochMs: number): string {
  return `${Math.round(epochMs * 1_000)}000`;
}
