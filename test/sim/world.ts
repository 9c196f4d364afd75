import assert from "node:assert/strict";
import type { ClusterControllerOptions } from "../../hack/kube-mock/controllers/cluster-controllers.ts";
import type { Host } from "../../hack/rack/host.ts";
import type { KubeletOptions } from "../../hack/rack/kubelet.ts";
import type { BareMetalRemediation } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { NODES, PODS } from "../../src/api/kubernetes/core-types.ts";
import type { Node } from "../../src/api/kubernetes/core.ts";
import type { FencingTarget } from "../../src/api/ironfence/fencing-target.ts";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
import { FENCED, OUT_OF_SERVICE, QUARANTINE, sameTaint } from "../../src/api/kubernetes/taints.ts";
import type { EventNote } from "../../src/kube/events.ts";
import { AgentProcess } from "./agent-process.ts";
import type { Interference } from "./agent-process.ts";
import type { ClusterOptions } from "./cluster.ts";
import { Cluster, NAMESPACE } from "./cluster.ts";
import type { AdmissionLimits } from "../../src/remediator/machine/rules/admission/admission.ts";
import { INVARIANTS } from "./invariants/all.ts";

export { NAMESPACE };

export interface WorldOptions {
  hosts?: NonNullable<ClusterOptions["hosts"]>;
  driven?: NonNullable<ClusterOptions["driven"]>;
  /** Labels with which each kubelet registers its node. */
  labels?: Record<string, string>;
  controllers?: Partial<ClusterControllerOptions>;
  kubelets?: KubeletOptions;
  seed?: number;
  /** By how many milliseconds the agent's wall clock is ahead of all other clocks. */
  agentAheadMs?: number;
  /** How many hosts may be remediated at once: any number by default. */
  limits?: Partial<AdmissionLimits>;
  externalEtcd?: ReadonlySet<string>;
  /** The node that the agent runs on. */
  agentOn?: string;
  /** The name of the Lease under which the agent leads; it leads without one by default. */
  installation?: string;
  /** Faults between the agent and the cluster. */
  interference?: Interference;
  /** Whether the agent runs the detector too. */
  detector?: boolean;
  /** Whether the agent receives messages of crash kernels. */
  kdump?: boolean;
  /** Receives the lines of the agent's log of decisions. By default nothing is recorded. */
  record?: (line: string) => void;
}

/**
 * A cluster with one agent that runs the whole remediator, and helpers for tests. The safety rules are checked at every
 * step.
 */
export class World extends Cluster {
  readonly notes: EventNote[] = [];
  /** Power orders that took effect, as `host order`. */
  readonly powerLog: string[] = [];
  /** Changes of marks on nodes, as `node +taint`. */
  readonly markLog: string[] = [];
  /** By name of a remediation, its states in order. */
  readonly phases = new Map<string, string[]>();
  /** The reasons for which the agent wanted to hand its lease over. */
  readonly handedOver: string[] = [];
  readonly #agentOptions: Pick<WorldOptions, "limits" | "agentOn" | "installation" | "externalEtcd">;
  readonly #aheadMs: number;
  readonly #interference: Interference | undefined;
  readonly #detector: boolean;
  readonly #kdump: boolean;
  readonly #record: WorldOptions["record"];
  readonly #kdumpListeners = new Set<(datagram: Buffer, from: string) => void>();
  #agent: AgentProcess | undefined;
  #agents = 0;

  constructor({
    agentAheadMs = 0,
    interference,
    detector = false,
    kdump = false,
    record,
    controllers,
    limits,
    externalEtcd,
    agentOn,
    installation,
    ...options
  }: WorldOptions) {
    super({
      ...options,
      controllers: { statefulSets: false, scheduler: false, ...controllers },
      invariants: INVARIANTS,
    });
    this.#aheadMs = agentAheadMs;
    this.#agentOptions = {
      ...(limits && { limits }),
      ...(agentOn !== undefined && { agentOn }),
      ...(installation !== undefined && { installation }),
      ...(externalEtcd && { externalEtcd }),
    };
    this.#interference = interference;
    this.#detector = detector;
    this.#kdump = kdump;
    this.#record = record;
    const { hosts = Infinity, perZone = Infinity } = limits ?? {};
    this.observer.limit({ hosts, perZone });
    if (externalEtcd?.has("") === true) this.observer.useExternalEtcd();
    if (agentAheadMs !== 0) this.observer.doubtClocks();
    this.#keepLogs();
  }

  /** Starts a cluster with an agent, and waits until the nodes are Ready. */
  static async start(options: WorldOptions = {}): Promise<World> {
    const world = new World(options);
    world.startAgent();
    await world.clock.advance(15_000);
    return world;
  }

  /** Runs `test` on a new world. Afterwards, no rule may be broken and nothing may still run. */
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

  /** The lines of a metric on the agent's metrics page. */
  async metrics(name: string): Promise<string> {
    return (await this.#agent?.registry.getSingleMetricAsString(name)) ?? "";
  }

  /** The value of a metric without labels. */
  async metric(name: string): Promise<string | undefined> {
    return (await this.metrics(name)).split("\n").at(-1)?.split(" ").at(-1);
  }

  /** Broken rules, as sentences. */
  get violations(): string[] {
    return this.observer.violations.map(({ invariant, what }) => `${invariant}: ${what}`);
  }

  /** @param aheadMs by how many milliseconds its clock is ahead; by default as for every agent of this world. */
  startAgent(aheadMs = this.#aheadMs): void {
    if (aheadMs !== this.#aheadMs) this.observer.doubtClocks();
    this.#agents += 1;
    this.#agent = new AgentProcess(this, {
      name: "agent",
      clock: { aheadMs },
      seed: 100 + this.#agents,
      ...(this.#agentOptions.limits !== undefined && { limits: this.#agentOptions.limits }),
      ...(this.#agentOptions.externalEtcd && { externalEtcd: this.#agentOptions.externalEtcd }),
      ownNode: this.#agentOptions.agentOn,
      installation: this.#agentOptions.installation,
      onHandOver: (why) => this.handedOver.push(why),
      ...(this.#record && { record: this.#record }),
      ...(this.#kdump && {
        kdump: (listener) => {
          this.#kdumpListeners.add(listener);
          return () => void this.#kdumpListeners.delete(listener);
        },
      }),
      families: this.#detector ? ["node-health-check"] : [],
      ...(this.#interference !== undefined && { interference: this.#interference }),
      onNote: (note) => this.notes.push(note),
      onEnd: (why) => this.observer.report("-", `the agent ended: ${why.message}`),
    });
  }

  /** Sends a datagram to the fence_kdump port of the agent. */
  sendKdump(datagram: Buffer, from: string): void {
    for (const listener of this.#kdumpListeners) listener(datagram, from);
  }

  /** Moves the agent's wall clock, as a time service does. */
  jumpAgentClock(byMs: number): void {
    this.observer.doubtClocks();
    this.#agent?.clock.jump(byMs);
  }

  /** Stops the agent, and waits until nothing of it runs. */
  async killAgent(): Promise<void> {
    await this.#agent?.stop();
  }

  async stop(): Promise<void> {
    await this.killAgent();
    await this.stopCluster();
  }

  /** Hangs n1 with a pod that a finalizer holds, so that a remediation stays in Releasing. */
  async holdPod(): Promise<void> {
    this.createPod("n1", "db");
    await this.clock.advance(3_000);
    await this.hang("n1");
    this.holdPods();
  }

  /** Adds a finalizer to the pod `db`, so that it does not leave before `freePod`. */
  holdPods(): void {
    this.server
      .collection(PODS)
      .mergePatch({ namespace: "default", name: "db" }, { metadata: { finalizers: ["test/held"] } });
  }

  freePod(): void {
    this.server.collection(PODS).mergePatch({ namespace: "default", name: "db" }, { metadata: { finalizers: null } });
  }

  condition(name: string, type: string): string | undefined {
    const condition = this.remediation(name)?.status?.conditions?.find((known) => known.type === type);
    return condition === undefined ? undefined : `${condition.status} ${condition.reason}`;
  }

  /** Lets time pass until `holds` returns true, and checks every 50 ms. Fails after `withinMs`. */
  async until(what: string, holds: () => boolean, withinMs = 600_000): Promise<void> {
    const endMs = this.clock.nowMs() + withinMs;
    while (!holds()) {
      if (this.clock.nowMs() >= endMs) assert.fail(`not within ${withinMs} ms: ${what}\n${this.story()}`);
      await this.clock.advance(50);
    }
  }

  /** Waits until the remediation is in `phase`. */
  async phase(name: string, phase: string, withinMs?: number): Promise<void> {
    await this.until(`${name} is ${phase}`, () => this.remediation(name)?.status?.phase === phase, withinMs);
  }

  /**
   * Calls `act` once, right after the write that brings the remediation into `phase`, before its answer is received.
   */
  onPhase(name: string, phase: string, act: () => void): void {
    const stop = this.server.onChange(({ object }) => {
      if (object.kind !== "BareMetalRemediation" || object.metadata.name !== name) return;
      if ((object as BareMetalRemediation).status?.phase !== phase) return;
      stop();
      queueMicrotask(act);
    });
  }

  /** Hangs a host, and waits until the cluster notices. */
  async hang(name: string): Promise<Host> {
    const host = this.rack.host(name);
    host.hang();
    await this.until(`${name} is not Ready`, () => !this.isReady(name));
    return host;
  }

  /** The story so far, for messages of failed tests. */
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

  /** Asserts that no node has a mark of ironfence and no remediation owns a host. */
  assertClean(): void {
    for (const node of this.server.collection<Node>(NODES).values()) {
      const { annotations = {} } = node.metadata;
      const ours = Object.keys(annotations).filter((key) => key.startsWith("ironfence.io/"));
      assert.deepEqual(ours, [], `annotations of ${node.metadata.name}`);
      assert.equal(bears(node, QUARANTINE), false, `quarantine of ${node.metadata.name}`);
      assert.equal(bears(node, FENCED), false, `word of a fence on ${node.metadata.name}`);
    }
    for (const target of this.server.collection<FencingTarget>(FENCING_TARGETS).values()) {
      assert.equal(target.status?.owner, undefined, `owner of ${target.metadata.name}`);
    }
    for (const host of this.rack.hosts) {
      assert.equal(host.bootSetting.enabled, "Disabled", `boot override of ${host.name}`);
    }
  }

  #keepLogs(): void {
    this.server.onChange(({ type, object, previous }) => {
      if (object.kind === "Node") this.#logMarks(type, object as Node, previous as Node | undefined);
      if (object.kind === "BareMetalRemediation") this.#logPhase(object as BareMetalRemediation);
    });
    this.rack.subscribe((event) => {
      if (event.type === "ordered" && event.outcome === "Started") this.powerLog.push(`${event.host} ${event.order}`);
    });
  }

  #logMarks(type: string, node: Node, previous: Node | undefined): void {
    for (const [mark, taint] of [
      ["taint", OUT_OF_SERVICE],
      ["quarantine", QUARANTINE],
    ] as const) {
      const before = previous !== undefined && bears(previous, taint);
      const after = type !== "DELETED" && bears(node, taint);
      if (before !== after) this.markLog.push(`${node.metadata.name} ${after ? "+" : "-"}${mark}`);
    }
  }

  #logPhase({ metadata, status }: BareMetalRemediation): void {
    const seen = this.phases.get(metadata.name) ?? [];
    if (status?.phase !== undefined && seen.at(-1) !== status.phase) {
      this.phases.set(metadata.name, [...seen, status.phase]);
    }
  }
}

export function bears(node: Node, taint: { key: string; effect: string }): boolean {
  return (node.spec.taints ?? []).some((present) => sameTaint(present, taint));
}
