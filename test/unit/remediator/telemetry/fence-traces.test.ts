import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { FenceTraces } from "../../../../src/remediator/telemetry/fence-traces.ts";
import type { Span } from "../../../../src/telemetry/otlp-exporter.ts";
import { seededRandom } from "../../../lib/seeded-random.ts";
import { VirtualClock } from "../../../lib/virtual-clock.ts";

const UID = "0d0f9e6e-2f2c-4f0c-9d8a-6a1f6f1f2b3c";
const CALL = { protocol: "redfish", operation: "forceOff", result: "ok", seconds: 0.5 } as const;

function start(seed = 1): { traces: FenceTraces; spans: Span[]; clock: VirtualClock } {
  const clock = new VirtualClock();
  const spans: Span[] = [];
  return {
    traces: new FenceTraces({ clock, random: seededRandom(seed), add: (span) => spans.push(span) }),
    spans,
    clock,
  };
}

const fence = { uid: UID, name: "ns/r", nodeName: "n1", createdMs: 5 };
const step = (state: string, to: string, verdict?: string) => ({ state, to, seconds: 2, verdict });

describe("the traces of fences", () => {
  it("the traces of fences have calls below their state, and states below the fence", async () => {
    const { traces, spans, clock } = start();
    await clock.advance(10_000);
    await traces.within(fence, async () => {
      await Promise.resolve();
      traces.called(CALL);
    });
    traces.left(fence, step("PoweringOff", "Releasing"));
    traces.left(fence, step("Releasing", "Succeeded", "NodeRestored"));
    const [call, first, second, whole] = spans;
    assert.ok(call && first && second && whole);
    assert.deepEqual(
      spans.map(({ name }) => name),
      ["bmc forceOff", "PoweringOff", "Releasing", "fence"],
    );
    assert.equal(call.parentSpanId, first.spanId);
    assert.equal(first.parentSpanId, whole.spanId);
    assert.equal(second.parentSpanId, whole.spanId);
    assert.notEqual(first.spanId, second.spanId);
    assert.equal(whole.parentSpanId, undefined);
    for (const { traceId } of spans) assert.equal(traceId, UID.replaceAll("-", ""));
    assert.equal(call.endMs - call.startMs, 500);
    assert.equal(first.endMs - first.startMs, 2_000);
    assert.equal(whole.startMs, 5);
    assert.equal(whole.error, undefined);
  });

  it("the traces of fences are one trace for a fence that another agent goes on with", () => {
    const [one, other] = [start(1), start(2)];
    one.traces.left(fence, step("PoweringOff", "Releasing"));
    other.traces.left(fence, step("Releasing", "Failed", "DrainTimeout"));
    const whole = other.spans.at(-1);
    assert.equal(one.spans[0]?.traceId, whole?.traceId);
    assert.equal(one.spans[0]?.parentSpanId, whole?.spanId);
    assert.equal(whole?.error, "DrainTimeout");
  });

  it("the traces of fences have no call that is of no fence, such as that of a probe", () => {
    const { traces, spans } = start();
    traces.called(CALL);
    assert.deepEqual(spans, []);
  });

  it("the traces of fences say why a call failed", () => {
    const { traces, spans } = start();
    void traces.within(fence, () => Promise.resolve(traces.called({ ...CALL, result: "timeout" })));
    assert.equal(spans[0]?.error, "timeout");
    assert.equal(spans[0]?.kind, "client");
  });
});
