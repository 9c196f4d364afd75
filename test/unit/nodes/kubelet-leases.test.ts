import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { EarlyProver } from "../../../src/remediator/early/early-prover.ts";
import type { EarlyProverDeps } from "../../../src/remediator/early/early-prover.ts";
import { KubeletLeases } from "../../../src/nodes/leases/kubelet-leases.ts";
import type { LeaseRecord } from "../../../src/nodes/leases/lease-record.ts";
import type { KubeRuntime } from "../../../src/kube/runtime.ts";
import type { Change } from "../../../src/kube/watched.ts";
import { VirtualClock } from "../../lib/virtual-clock.ts";

/** Node leases that a test renews, and a clock that counts its timers. */
function setUp() {
  const clock = new VirtualClock();
  const counted = { timers: 0 };
  const schedule = clock.schedule.bind(clock);
  clock.schedule = (delayMs, callback) => {
    counted.timers += 1;
    return schedule(delayMs, callback);
  };
  let tell: (change: Change<LeaseRecord>) => void = () => undefined;
  const view = {
    synced: true,
    rewinds: 0,
    subscribe: (listener: typeof tell) => {
      tell = listener;
      return () => undefined;
    },
  };
  const runtime = { clock, watch: () => view } as unknown as KubeRuntime;
  const leases = new KubeletLeases(runtime);
  const end = new AbortController();
  leases.start(end.signal);
  let version = 0;
  const renew = (name: string, durationMs = 40_000, renewTimeMs?: number): void => {
    version += 1;
    const metadata = { name, uid: name, resourceVersion: String(version) };
    tell({ type: "added", object: { apiVersion: "", kind: "", metadata, durationMs, renewTimeMs } });
  };
  return { clock, counted, runtime, leases, renew, end };
}

describe("leases of nodes", () => {
  it("a lease of a node is overdue by its own silence, also if another lease was renewed later", async () => {
    const { clock, leases, renew } = setUp();
    for (const name of ["a", "b", "long"]) renew(name, name === "long" ? 80_000 : 40_000);
    await clock.advance(10_000);
    renew("a");
    assert.deepEqual([...leases.overdue()], []);
    assert.equal(Math.round(leases.nextOverdueInMs), 2_400);
    await clock.advance(2_401);
    assert.deepEqual([...leases.overdue()], ["b"]);
    assert.equal(leases.nextOverdueInMs, 0);
    await clock.advance(10_400);
    assert.deepEqual([...leases.overdue()], ["b", "long", "a"]);
  });

  it("leases of nodes have the time between two renewals remembered, also of renewals that a watch that lags delivers at once", async () => {
    const { clock, leases, renew } = setUp();
    renew("a", 40_000, 1_000);
    assert.deepEqual(leases.of("a")?.gapsMs, []);
    await clock.advance(30_000);
    renew("a", 40_000, 31_000);
    await clock.advance(60_000);
    renew("a", 40_000, 61_000);
    renew("a", 40_000, 91_000);
    renew("a", 40_000, 121_000);
    assert.deepEqual(leases.of("a")?.gapsMs, [30_000, 60_000, 30_000, 30_000]);
  });

  it("leases of nodes that another client changes are not renewed by that, but their silence begins again", async () => {
    const { clock, leases, renew } = setUp();
    renew("a", 40_000, 0);
    await clock.advance(30_000);
    renew("a", 40_000, 30_000);
    await clock.advance(1_000);
    renew("a", 40_000, 30_000);
    assert.deepEqual(leases.of("a")?.gapsMs, [30_000]);
    assert.equal(leases.of("a")?.sinceMs, clock.monotonicMs());
    await clock.advance(29_000);
    renew("a", 40_000, 60_000);
    assert.deepEqual(leases.of("a")?.gapsMs, [30_000, 30_000]);
  });

  it("leases of nodes that are renewed in time wake the agent every few seconds, or never if no health check asks for proofs", async () => {
    const { clock, counted, runtime, leases, renew, end } = setUp();
    let isWanted = false;
    let onWanted = (): void => undefined;
    const deps = {
      runtime,
      leases,
      nodes: { synced: true },
      targets: { synced: true },
      remediations: () => [],
      proofs: {
        whenEarlyWanted: () => (isWanted ? Promise.resolve() : new Promise<void>((resolve) => (onWanted = resolve))),
        isEarlyWantedFor: () => true,
      },
    } as unknown as EarlyProverDeps;
    const running = new EarlyProver(deps).run(end.signal);
    await clock.advance(60_000);
    assert.equal(counted.timers, 0);
    isWanted = true;
    onWanted();
    const names = Array.from({ length: 10 }, (_, index) => `node-${index}`);
    for (let second = 0; second < 60; second++) {
      renew(names[second % names.length] ?? "");
      await clock.advance(1_000);
    }
    assert.ok(counted.timers <= 30, `${counted.timers} timers in a minute`);
    end.abort();
    await running;
  });
});
