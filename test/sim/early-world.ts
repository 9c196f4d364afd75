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
