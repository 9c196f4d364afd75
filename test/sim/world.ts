import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { Registry } from "prom-client";
import { createApiServer } from "../../hack/kube-mock/api-server.ts";
import type { ApiServer } from "../../hack/kube-mock/api-server.ts";
import { NAMESPACES } from "../../hack/kube-mock/controllers/cluster-types.ts";
import type { ClusterControllerOptions } from "../../hack/kube-mock/controllers/cluster-controllers.ts";
import { startClusterControllers } from "../../hack/kube-mock/controllers/cluster-controllers.ts";
import type { PowerOrderType } from "../../hack/rack/events.ts";
import type { Host } from "../../hack/rack/host.ts";
import { startKubelets } from "../../hack/rack/kubelet.ts";
import { createRack } from "../../hack/rack/rack.ts";
import type { Rack } from "../../hack/rack/rack.ts";
import type { BareMetalRemediation } from "../../src/api/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/bare-metal-remediation.ts";
import { CONFIG_MAPS, NODES, PODS, SECRETS } from "../../src/api/core-types.ts";
import type { Node, Pod } from "../../src/api/core.ts";
import { FENCED_BY } from "../../src/api/annotations.ts";
import type { FencingTarget } from "../../src/api/fencing-target.ts";
import { FENCING_TARGETS } from "../../src/api/fencing-target.ts";
import { OUT_OF_SERVICE, QUARANTINE, sameTaint } from "../../src/api/taints.ts";
import { trimNode } from "../../src/api/trim.ts";
import { createKubeClient } from "../../src/kube/api-client.ts";
import { createKubeRuntime } from "../../src/kube/create-runtime.ts";
import type { EventNote } from "../../src/kube/events.ts";
import type { ResourceType } from "../../src/kube/resource.ts";
import type { Clock } from "../../src/runtime/clock.ts";
import { runRemediator } from "../../src/remediator/remediator.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { seededRandom } from "../lib/seeded-random.ts";
import { VirtualClock } from "../lib/virtual-clock.ts";
import type { BmcFaults } from "./rack-driver.ts";
import { rackDevices } from "./rack-driver.ts";

export const NAMESPACE = "ironfence";
const AGENT = "agent";

export interface WorldOptions {
  hosts?: readonly string[];
  /** Labels that each kubelet registers with. */
  labels?: Record<string, string>;
  controllers?: Partial<ClusterControllerOptions>;
  seed?: number;
  /** How far the agent's wall clock is ahead of everybody else's. */
  agentAheadMs?: number;
}

/**
 * The whole remediator on a simulated cluster: rack, kubelets, an API server in memory with its controllers, all on one virtual
 * clock. The safety rules of docs/remediation.md are checked at every change of the cluster and of the rack.
 */
export class World {
  readonly clock = new VirtualClock();
  readonly server: ApiServer;
  readonly rack: Rack;
  readonly faults: BmcFaults = { password: "correct", losesAnswer: new Set(), refuses: new Set() };
  readonly devices: ReturnType<typeof rackDevices>;
  readonly notes: EventNote[] = [];
  /** Broken rules, as sentences. */
  readonly violations: string[] = [];
  /** Power orders that took effect, as `host order`. */
  readonly powerLog: string[] = [];
  /** What happened to nodes' marks, as `node +taint`. */
  readonly markLog: string[] = [];
  /** Names of states that remediations passed through, in order, by `name`. */
  readonly phases = new Map<string, string[]>();
  readonly #stopWorld = new AbortController();
  readonly #stopControllers: () => void;
  readonly #kubelets: Promise<void>;
  #stopAgent: AbortController | undefined;
  #agent: Promise<void> = Promise.resolve();
  #agents = 0;
  #byOthers = false;
  readonly #agentClock: Clock;

  constructor(options: WorldOptions) {
    const { clock } = this;
    const aheadMs = options.agentAheadMs ?? 0;
    this.#agentClock = {
      nowMs: () => clock.nowMs() + aheadMs,
      monotonicMs: () => clock.monotonicMs(),
      schedule: (delayMs, callback) => clock.schedule(delayMs, callback),
    };
    const random = seededRandom(options.seed ?? 1);
    this.server = createApiServer({ clock, random });
    for (const crd of ["baremetalremediations", "baremetalremediationtemplates", "fencingtargets"]) {
      const file = new URL(`../../deploy/crds/ironfence.io_${crd}.yaml`, import.meta.url);
      this.server.load(readFileSync(file, "utf8"));
    }
    const hosts = (options.hosts ?? ["n1", "n2"]).map((name) => ({
      name,
      ...(options.labels !== undefined && { labels: options.labels }),
    }));
    this.rack = createRack({ clock, random, hosts });
    this.devices = rackDevices(this.rack, clock, this.faults);
    for (const name of [NAMESPACE, "kube-node-lease"]) {
      if (this.server.collection(NAMESPACES).get({ name }) === undefined) this.create(NAMESPACES, { name }, {});
    }
    this.create(
      SECRETS,
      { namespace: NAMESPACE, name: "bmc" },
      { data: { username: base64("admin"), password: base64(this.faults.password) } },
    );
    for (const { name, spec } of this.rack.hosts) this.createTarget(name, spec.systemUUID);
    this.#stopControllers = startClusterControllers(
      { server: this.server, clock },
      { statefulSets: false, scheduler: false, ...options.controllers },
    );
    const logger = createLogger("silent");
    const client = createKubeClient({ transport: this.server.transport({ client: "kubelet" }), clock, random });
    this.#kubelets = startKubelets({ rack: this.rack, client, clock, logger }, {}, this.#stopWorld.signal);
    this.#watchRules();
  }

  /** A cluster whose nodes are Ready, with the agent running. */
  static async start(options: WorldOptions = {}): Promise<World> {
    const world = new World(options);
    world.startAgent();
    await world.clock.advance(15_000);
    return world;
  }

  /** Runs `test` on a world of its own; afterwards no rule may be broken and nothing may be left running. */
  static async run(options: WorldOptions, test: (world: World) => Promise<void>): Promise<void> {
    const world = await World.start(options);
    try {
      await test(world);
      assert.deepEqual(world.violations, [], "safety rules");
    } finally {
      await world.stop();
    }
    assert.equal(world.devices.open(), 0, "every device session is closed");
    assert.equal(world.clock.pending, 0, "nothing is left running");
  }

  startAgent(): void {
    this.#agents += 1;
    const stop = new AbortController();
    this.#stopAgent = stop;
    const runtime = createKubeRuntime({
      transport: this.server.transport({ client: AGENT }),
      clock: this.#agentClock,
      random: seededRandom(100 + this.#agents),
      logger: createLogger(process.env["SIM_LOG"] === undefined ? "silent" : "debug"),
      controllerName: "ironfence.io/agent",
      instance: `agent-${this.#agents}`,
    });
    const events = { record: (note: EventNote) => void this.notes.push(note) };
    const nodes = runtime.watch<Node>({ type: NODES, trim: trimNode }, stop.signal);
    const targets = runtime.watch<FencingTarget>(
      { type: FENCING_TARGETS, namespace: NAMESPACE, trim: (raw) => raw as FencingTarget },
      stop.signal,
    );
    this.#agent = runRemediator(
      {
        runtime: { ...runtime, events },
        nodes,
        targets,
        namespace: NAMESPACE,
        openDevice: this.devices.openDevice,
        registry: new Registry(),
        options: { concurrency: 50 },
      },
      stop.signal,
    );
    this.#agent.catch((error: unknown) => this.violations.push(`the remediator ended: ${String(error)}`));
  }

  /** Kills the agent as if its process ended: nothing of it runs afterwards. */
  async killAgent(): Promise<void> {
    this.#stopAgent?.abort(new Error("killed"));
    await this.clock.advance(0);
    await this.#agent.catch(() => undefined);
  }

  async stop(): Promise<void> {
    await this.killAgent();
    this.#stopWorld.abort();
    await this.clock.advance(0);
    await this.#kubelets;
    this.#stopControllers();
    this.server.close();
    this.rack.stop();
    await this.clock.advance(0);
  }

  create(type: ResourceType, metadata: Record<string, unknown>, body: object): void {
    this.server.collection(type).create({ metadata, ...body });
  }

  createTarget(host: string, systemUUID: string, nodeName = host): void {
    this.create(
      FENCING_TARGETS,
      { namespace: NAMESPACE, name: host },
      {
        spec: {
          nodeName,
          identity: { systemUUID },
          devices: [{ address: `redfish://${host}`, credentialsSecretRef: { name: "bmc" }, timeouts: { call: "2s" } }],
        },
      },
    );
  }

  /** Kills node n1 with a pod on it that a finalizer holds, so that a walk stays in Releasing. */
  async holdPod(): Promise<void> {
    this.createPod("n1", "db");
    await this.clock.advance(3_000);
    await this.hang("n1");
    this.server
      .collection(PODS)
      .mergePatch({ namespace: "default", name: "db" }, { metadata: { finalizers: ["test/held"] } });
  }

  freePod(): void {
    this.server.collection(PODS).mergePatch({ namespace: "default", name: "db" }, { metadata: { finalizers: null } });
  }

  /** Orders a remediation of `node`; named like it unless `name` says otherwise. */
  remediate(node: string, strategy: Record<string, unknown> = {}, name = node): void {
    this.create(
      BARE_METAL_REMEDIATIONS,
      { namespace: NAMESPACE, name, annotations: { "remediation.medik8s.io/node-name": node } },
      { spec: { strategy } },
    );
  }

  createPod(node: string, name: string, spec: Partial<Pod["spec"]> = {}): void {
    this.create(
      PODS,
      { namespace: "default", name },
      { spec: { nodeName: node, containers: [{ name: "main", image: "none" }], ...spec } },
    );
  }

  remediation(name: string): BareMetalRemediation | undefined {
    return this.server.collection<BareMetalRemediation>(BARE_METAL_REMEDIATIONS).get({ namespace: NAMESPACE, name });
  }

  condition(name: string, type: string): string | undefined {
    const condition = this.remediation(name)?.status?.conditions?.find((known) => known.type === type);
    return condition === undefined ? undefined : `${condition.status} ${condition.reason}`;
  }

  node(name: string): Node | undefined {
    return this.server.collection<Node>(NODES).get({ name });
  }

  target(name: string): FencingTarget | undefined {
    return this.server.collection<FencingTarget>(FENCING_TARGETS).get({ namespace: NAMESPACE, name });
  }

  pods(node: string): Pod[] {
    return [...this.server.collection<Pod>(PODS).values()].filter((pod) => pod.spec.nodeName === node);
  }

  isReady(name: string): boolean {
    return (
      this.node(name)?.status.conditions?.some(({ type, status }) => type === "Ready" && status === "True") === true
    );
  }

  /** Lets time pass until `holds`, looking each 50 ms. Fails after `withinMs`. */
  async until(what: string, holds: () => boolean, withinMs = 600_000): Promise<void> {
    const endMs = this.clock.nowMs() + withinMs;
    while (!holds()) {
      if (this.clock.nowMs() >= endMs) assert.fail(`not within ${withinMs} ms: ${what}\n${this.story()}`);
      await this.clock.advance(50);
    }
  }

  /** Until the remediation is in `phase`. */
  async phase(name: string, phase: string, withinMs?: number): Promise<void> {
    await this.until(`${name} is ${phase}`, () => this.remediation(name)?.status?.phase === phase, withinMs);
  }

  /** Calls `act` once, right after the write that brings the remediation into `phase`, before its answer is heard. */
  onPhase(name: string, phase: string, act: () => void): void {
    const stop = this.server.onChange(({ object }) => {
      if (object.kind !== "BareMetalRemediation" || object.metadata.name !== name) return;
      if ((object as BareMetalRemediation).status?.phase !== phase) return;
      stop();
      queueMicrotask(act);
    });
  }

  /** A dead node, seen as such by the cluster. */
  async hang(name: string): Promise<Host> {
    const host = this.rack.host(name);
    host.hang();
    await this.until(`${name} is not Ready`, () => !this.isReady(name));
    return host;
  }

  /** A power order that does not come from the agent. */
  somebodyOrders(host: string, order: PowerOrderType): void {
    this.#byOthers = true;
    this.rack.host(host).order(order);
    this.#byOthers = false;
  }

  pause(paused: boolean): void {
    const maps = this.server.collection(CONFIG_MAPS);
    const key = { namespace: NAMESPACE, name: "ironfence-pause" };
    const data = { paused: String(paused), reason: "a test" };
    if (maps.get(key) === undefined) maps.create({ metadata: key, data });
    else maps.mergePatch(key, { data });
  }

  /** What happened so far, for failures. */
  story(): string {
    const timelines = [...this.server.collection<BareMetalRemediation>(BARE_METAL_REMEDIATIONS).values()].map(
      ({ metadata, status }) =>
        [
          metadata.name,
          ...(status?.timeline ?? []).map(({ step, time, message }) => `  ${time} ${step}: ${message}`),
        ].join("\n"),
    );
    return [...timelines, `power: ${this.powerLog.join(", ")}`, `marks: ${this.markLog.join(", ")}`].join("\n");
  }

  /** Nothing of ours is on any node, and nobody owns a host. */
  assertClean(): void {
    for (const node of this.server.collection<Node>(NODES).values()) {
      const { annotations = {} } = node.metadata;
      const ours = Object.keys(annotations).filter((key) => key.startsWith("ironfence.io/"));
      assert.deepEqual(ours, [], `annotations of ${node.metadata.name}`);
      assert.equal(bears(node, QUARANTINE), false, `quarantine of ${node.metadata.name}`);
    }
    for (const target of this.server.collection<FencingTarget>(FENCING_TARGETS).values()) {
      assert.equal(target.status?.owner, undefined, `owner of ${target.metadata.name}`);
    }
    for (const host of this.rack.hosts) {
      assert.equal(host.bootSetting.enabled, "Disabled", `boot override of ${host.name}`);
    }
  }

  #watchRules(): void {
    this.server.onChange(({ type, object, previous }) => {
      if (object.kind === "Node") this.#checkNode(type, object as Node, previous as Node | undefined);
      if (object.kind === "BareMetalRemediation") this.#checkRemediation(object as BareMetalRemediation);
    });
    this.server.onRequest(({ client, method, path, status }) => {
      if (client !== AGENT || method !== "DELETE" || status === undefined || status >= 300) return;
      if (path.startsWith("/api/v1/nodes/")) this.#mustBeOff(path.split("/")[4] ?? "", "its Node was deleted");
    });
    this.server.collection<Pod>(PODS).subscribe(({ type, object }) => {
      const failed = object.status?.conditions?.some((condition) => condition.reason === "NodeFenced") === true;
      if (type === "MODIFIED" && failed)
        this.#mustBeOff(object.spec.nodeName ?? "", `pod ${object.metadata.name} was failed`);
    });
    this.rack.subscribe((event) => {
      if (event.type !== "ordered" || event.outcome !== "Started") return;
      this.powerLog.push(`${event.host} ${event.order}`);
      const node = this.node(event.host);
      const signed = node?.metadata.annotations?.[FENCED_BY] !== undefined;
      if (event.order === "On" && !this.#byOthers && signed) {
        this.violations.push(`${event.host} was ordered on with the out-of-service taint on`);
      }
    });
  }

  #mustBeOff(hostName: string, what: string): void {
    const host = this.rack.hosts.find(({ name }) => name === hostName);
    if (host !== undefined && host.power !== "Off") this.violations.push(`${what} while ${hostName} is ${host.power}`);
  }

  #checkNode(type: string, node: Node, previous: Node | undefined): void {
    const { name } = node.metadata;
    for (const [mark, taint] of [
      ["taint", OUT_OF_SERVICE],
      ["quarantine", QUARANTINE],
    ] as const) {
      const before = previous !== undefined && bears(previous, taint);
      const after = type !== "DELETED" && bears(node, taint);
      if (before === after) continue;
      this.markLog.push(`${name} ${after ? "+" : "-"}${mark}`);
      if (mark === "taint" && after && node.metadata.annotations?.[FENCED_BY] !== undefined) {
        this.#mustBeOff(name, "the out-of-service taint was put on");
      }
    }
  }

  #checkRemediation(remediation: BareMetalRemediation): void {
    const phase = remediation.status?.phase;
    if (phase === undefined) return;
    const { name } = remediation.metadata;
    const seen = this.phases.get(name) ?? [];
    if (seen.at(-1) !== phase) this.phases.set(name, [...seen, phase]);
  }
}

export function bears(node: Node, taint: { key: string; effect: string }): boolean {
  return (node.spec.taints ?? []).some((present) => sameTaint(present, taint));
}

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}
