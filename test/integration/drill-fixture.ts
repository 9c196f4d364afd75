import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startWorld } from "../../hack/demo/world.ts";
import type { World } from "../../hack/demo/world.ts";
import { startAgent } from "../../hack/lib/agent-process.ts";
import type { Child } from "../../hack/lib/processes.ts";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
import type { FencingTarget } from "../../src/api/ironfence/fencing-target.ts";
import { NODES, PODS } from "../../src/api/kubernetes/core-types.ts";
import type { Node, Pod } from "../../src/api/kubernetes/core.ts";
import { until } from "./child-agent.ts";
import type { CliOptions, CliResult } from "./cli-fixture.ts";
import { cli } from "./cli-fixture.ts";

// A small cluster with one agent for `ironfence drill`. API server and BMCs use HTTPS.

const OWNER = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "web", uid: "web", controller: true };

export interface DrillFixture {
  readonly world: World;
  readonly agent: Child;
  drill(flags: string, options?: CliOptions): Promise<CliResult>;
  node(name: string): Node;
  isReady(name: string): boolean;
  /** Power orders that the BMC of a node has received. */
  orders(name: string): string[];
  /** The number of remediations. */
  remediations(): number;
  /** @param ownerReferences a controller by default. */
  createPod(name: string, nodeName: string, ownerReferences?: object[]): void;
  hasPod(name: string): boolean;
  /** Refuses evictions, as a PodDisruptionBudget does. @param name of one pod; every pod by default. */
  refuseEvictions(name?: string): void;
  stop(): Promise<void>;
}

export async function startDrillFixture(): Promise<DrillFixture> {
  const folder = await mkdtemp(join(tmpdir(), "ironfence-drill-"));
  const world = await startWorld(folder);
  const kubeconfig = world.kubeconfigPath;
  const agent = startAgent({ kubeconfig, logFile: join(folder, "agent.log"), flags: ["--components", "remediator"] });
  const node = (name: string): Node => world.server.collection<Node>(NODES).get({ name }) ?? assert.fail(name);
  const isReady = (name: string): boolean =>
    node(name).status.conditions?.some(({ type, status }) => type === "Ready" && status === "True") === true;
  await until(agent, "every target is Ready", () => {
    const targets = [...world.server.collection<FencingTarget>(FENCING_TARGETS).values()];
    return targets.every(({ status }) =>
      status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True"),
    );
  });
  await until(agent, "every node is Ready", () => ["node-4", "node-5", "node-6"].every(isReady));
  return {
    world,
    agent,
    node,
    isReady,
    drill: (flags, options = {}) => cli(["drill", ...flags.split(" "), "--kubeconfig", kubeconfig], options),
    orders: (name) => world.rack.host(name).orders.map(({ type }) => type),
    remediations: () => [...world.server.collection(BARE_METAL_REMEDIATIONS).values()].length,
    createPod: (name, nodeName, ownerReferences = [OWNER]) => {
      world.server.collection<Pod>(PODS).create({
        metadata: { namespace: "default", name, ownerReferences },
        spec: { nodeName, containers: [{ name: "main", image: "none" }] },
      });
    },
    hasPod: (name) => world.server.collection(PODS).get({ namespace: "default", name }) !== undefined,
    refuseEvictions: (name = "") => {
      const match = { method: "POST" as const, pathPrefix: `/api/v1/namespaces/default/pods/${name}` };
      world.server.faults.inject({ match, times: Infinity, action: { kind: "status", status: 429 } });
    },
    stop: async () => {
      await agent.stop();
      await world.stop();
      await rm(folder, { recursive: true });
    },
  };
}
