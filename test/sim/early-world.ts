import assert from "node:assert/strict";
import type { BareMetalRemediation } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import type { LabelSelector } from "../../src/api/schema/meta.ts";
import { OUT_OF_SERVICE } from "../../src/api/kubernetes/taints.ts";
import { createHealthCheck } from "./health-check.ts";
import type { WorldOptions } from "./world.ts";
import { bears, World } from "./world.ts";

// A rack under a health check that remediates hosts before their durations are over if they are proven off.

/** A host that loses power at once, as when its cord is pulled. */
export const INSTANT = { powerOffDelayMs: 0 };
/** Before this time, Kubernetes does not notice that a kubelet has stopped. */
export const BEFORE_UNKNOWN_MS = 45_000;
/** The first probes, which read the hosts On, have ended after this time. */
const SETTLED_MS = 40_000;

export interface EarlyOptions extends WorldOptions {
  strategy?: Record<string, string>;
  /** Annotations of the health check: none by default. */
  annotations?: Record<string, string>;
  /** The nodes that the health check covers: all by default. */
  selector?: LabelSelector;
  /** The kind of its template: ours by default. */
  template?: { apiVersion: string; kind: string };
  minHealthy?: number;
}

/** Runs `test` on a rack after each host was read On in its present boot. */
export function runEarly(given: EarlyOptions, test: (world: World) => Promise<void>): Promise<void> {
  const { strategy = {}, annotations = {}, minHealthy = 0, selector, template: kind, ...options } = given;
  const hosts = options.hosts ?? ["n1", "n2"].map((name) => ({ name, ...INSTANT }));
  const spec = { minHealthy, ...(selector !== undefined && { selector }) };
  return World.run({ detector: true, ...options, hosts }, async (world) => {
    createHealthCheck(world, { strategy }, { annotations, spec, ...(kind !== undefined && { kind }) });
    await world.clock.advance(SETTLED_MS);
    await test(world);
  });
}

/** Cuts the power of a host but not that of its BMC. */
export function cutPower(world: World, host: string): void {
  world.otherClientOrders(host, "ForceOff");
}

/** All remediations. */
export function begun(world: World): BareMetalRemediation[] {
  return [...world.server.collection<BareMetalRemediation>(BARE_METAL_REMEDIATIONS).values()];
}

export function isTainted(world: World, name: string): boolean {
  const node = world.node(name);
  return node !== undefined && bears(node, OUT_OF_SERVICE);
}

/** Power orders that the agent has sent, whatever their effect. */
export function ordersOfAgent(world: World): string[] {
  return world.devices.calls
    .filter(({ call }) => call === "ForceOff" || call === "On")
    .map(({ host, call }) => `${host} ${call}`);
}

/**
 * Cuts the power of 40 hosts of a cluster in which more than half of the nodes must be healthy. Asserts that all of
 * them are released before Kubernetes notices, at most four at a time.
 */
export function releaseRackOf40(hostCount: number): Promise<void> {
  const hosts = Array.from({ length: hostCount }, (_, index) => ({ name: `n${index + 1}`, ...INSTANT }));
  return runEarly({ hosts, minHealthy: Math.floor(hostCount / 2) + 1 }, async (world) => {
    const rack = hosts.slice(0, 40).map(({ name }) => name);
    for (const name of rack) cutPower(world, name);
    const countIn = (...phases: string[]): number =>
      begun(world).filter(({ status }) => phases.includes(status?.phase ?? "")).length;
    let most = 0;
    const isReleased = (): boolean => {
      most = Math.max(most, countIn("Verifying", "PoweringOff", "Releasing"));
      return countIn("PoweringOn", "Rejoining") === rack.length;
    };
    await world.until("the rack is released", isReleased, BEFORE_UNKNOWN_MS);
    assert.ok(most <= 4, `${most} at once`);
  });
}

/**
 * Cuts every node off from the API server while all hosts are on. Asserts that nothing begins early, and that no more
 * than 8 hosts are read before Kubernetes notices.
 */
export function silenceAll(hostCount: number): Promise<void> {
  const hosts = Array.from({ length: hostCount }, (_, index) => ({ name: `n${index + 1}`, ...INSTANT }));
  return runEarly({ hosts }, async (world) => {
    const from = world.devices.calls.length;
    for (const { name } of hosts) world.network.cut.add(name);
    await world.clock.advance(BEFORE_UNKNOWN_MS);
    const read = new Set(world.devices.calls.slice(from).map(({ host }) => host));
    assert.ok(read.size <= 8, `${read.size} hosts`);
    assert.deepEqual([begun(world), ordersOfAgent(world)], [[], []]);
  });
}
