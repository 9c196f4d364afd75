import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { OtlpExporter } from "../../../src/telemetry/otlp-exporter.ts";
import type { Span } from "../../../src/telemetry/otlp-exporter.ts";
import type { TraceCollector } from "../../lib/trace-collector.ts";
import { startCollector } from "../../lib/trace-collector.ts";
import { VirtualClock } from "../../lib/virtual-clock.ts";

const SPAN: Span = {
  traceId: "0123456789abcdef0123456789abcdef",
  spanId: "0123456789abcdef",
  name: "PoweringOff",
  kind: "internal",
  startMs: 1_800_000_000_000.25,
  endMs: 1_800_000_001_000,
  attributes: { "k8s.node.name": "n1" },
  error: "it failed",
};

async function withExporter(
  work: (parts: {
    exporter: OtlpExporter;
    collector: TraceCollector;
    lines: string[];
    /** Lets an interval pass, and waits for real sockets. */
    pass: () => Promise<void>;
    end: () => Promise<void>;
  }) => Promise<void>,
): Promise<void> {
  const collector = await startCollector();
  const clock = new VirtualClock();
  const lines: string[] = [];
  const logger = createLogger("info", { write: (line) => void lines.push(line) });
  const exporter = new OtlpExporter(collector.endpoint, { clock, logger, instance: "agent-1" });
  const stop = new AbortController();
  const running = exporter.run(stop.signal);
  const end = async (): Promise<void> => {
    stop.abort(new Error("the agent ends"));
    await running;
  };
  const pass = async (): Promise<void> => {
    const { requests } = collector;
    await clock.advance(5_000);
    for (let i = 0; i < 200 && collector.requests === requests; i += 1) await wait(5);
    await wait(20);
  };
  try {
    await work({ exporter, collector, lines, pass, end });
  } finally {
    await end();
    await collector.stop();
  }
}

describe("the exporter of traces", () => {
  it("the exporter of traces sends spans as OTLP in JSON: ids in hex, times in nanoseconds as texts, a status for a failure", () =>
    withExporter(async ({ exporter, collector, pass }) => {
      exporter.add(SPAN);
      await pass();
      assert.deepEqual(collector.spans, [
        {
          traceId: "0123456789abcdef0123456789abcdef",
          spanId: "0123456789abcdef",
          name: "PoweringOff",
          kind: 1,
          startTimeUnixNano: "1800000000000250000",
          endTimeUnixNano: "1800000001000000000",
          attributes: [{ key: "k8s.node.name", value: { stringValue: "n1" } }],
          status: { code: 2, message: "it failed" },
        },
      ]);
      assert.match(collector.received, /"service.instance.id","value":{"stringValue":"agent-1"}/);
    }));

  it("the exporter of traces drops what cannot be sent, reports that once, and continues when the collector answers again", () =>
    withExporter(async ({ exporter, collector, lines, pass }) => {
      collector.status = 503;
      exporter.add(SPAN);
      await pass();
      exporter.add(SPAN);
      await pass();
      assert.equal(lines.length, 1);
      assert.match(lines[0] ?? "", /traces cannot be sent.*503|503.*traces cannot be sent/);
      collector.status = 200;
      exporter.add(SPAN);
      await pass();
      assert.equal(collector.spans.length, 1);
      assert.match(lines[1] ?? "", /"dropped":2/);
    }));

  it("the exporter of traces holds a bounded number of spans, and sends them in bounded requests", () =>
    withExporter(async ({ exporter, collector, end }) => {
      for (let i = 0; i < 3_000; i += 1) exporter.add(SPAN);
      await end();
      assert.equal(collector.spans.length, 2_048);
      assert.equal(collector.requests, 8);
    }));

  it("the exporter of traces sends the last spans at its end", () =>
    withExporter(async ({ exporter, collector, end }) => {
      exporter.add(SPAN);
      await end();
      assert.equal(collector.spans.length, 1);
    }));
});
