import assert from "node:assert/strict";
import type { OperatorOptions, BareMetalHostOperator } from "../../../hack/rack/bare-metal-host-operator.ts";
import type { Host } from "../../../hack/rack/host.ts";
import { BARE_METAL_REMEDIATIONS } from "../../../src/api/ironfence/bare-metal-remediation.ts";
import { HOST_OWNER, POWER_OFF_REQUEST } from "../../../src/api/names/annotations.ts";
import { PODS } from "../../../src/api/kubernetes/core-types.ts";
import type { BareMetalHost } from "../../../src/api/metal3/metal3.ts";
import { REBOOT_ANNOTATION_PREFIX } from "../../../src/api/metal3/metal3.ts";
import type { EventNote } from "../../../src/kube/events.ts";
import type { Family } from "../../../src/config/parsers.ts";
import { ownCluster } from "../../../src/clusters/own-cluster.ts";
import { AgentProcess } from "../agent-process.ts";
import { Cluster, NAMESPACE } from "../cluster.ts";
import { INVARIANTS } from "../invariants/all.ts";
import { BareMetalHosts, METAL3, providedHost } from "./bare-metal-hosts.ts";

// A simulated cluster whose hosts are BareMetalHosts. Their operator is a third actor in addition to agent and nodes.

export { METAL3 };

export interface Metal3Options {
  operator?: OperatorOptions;
  /** Annotations of host n1. */
  annotations?: Record<string, string>;
  /** Fields of host n1's spec. */
  spec?: Record<string, unknown>;
  /** Whether the cluster is its own workload cluster, for Machines of Cluster API. */
  ownCluster?: boolean;
  /** Families that are served in addition to BareMetalHosts. */
  families?: readonly Family[];
  /** Names of rules that are expected to be broken, because no agent could keep them. */
  breaks?: readonly string[];
}

export class Metal3World extends Cluster {
  /** Every power order that a host received, from any sender. */
  readonly powerLog: string[] = [];
  readonly phases: string[] = [];
  readonly notes: EventNote[] = [];
  readonly #hosts: BareMetalHosts;
  #agent: AgentProcess | undefined;
  #agents = 0;
  readonly #ownCluster: boolean;
  readonly #families: readonly Family[];

  constructor({ operator = {}, annotations = {}, spec = {}, ownCluster = false, families = [] }: Metal3Options) {
    super({
      hosts: ["n1", "n2"].map(providedHost),
      targets: false,
      controllers: { statefulSets: false, scheduler: false },
      invariants: INVARIANTS,
    });
    this.#ownCluster = ownCluster;
    this.#families = ["bare-metal-host", ...families];
    this.#hosts = new BareMetalHosts(this, { operator });
    this.edit({ metadata: { annotations }, spec });
    const { rack, server } = this;
    rack.subscribe((event) => {
      if (event.type === "ordered" && event.outcome === "Started") this.powerLog.push(`${event.host} ${event.order}`);
    });
    server.onChange(({ object }) => {
      const { phase } = (object as { status?: { phase?: string } }).status ?? {};
      if (object.kind !== "BareMetalRemediation" || phase === undefined || this.phases.at(-1) === phase) return;
      this.phases.push(phase);
    });
  }

  /** Runs `test` on a new world. Afterwards, no rule may be broken and nothing may still run. */
  static async run(options: Metal3Options, test: (world: Metal3World) => Promise<void>): Promise<void> {
    const world = new Metal3World(options);
    world.startAgent();
    await world.clock.advance(15_000);
    try {
      await test(world);
      const broken = world.violations.filter((what) => options.breaks?.includes(what.split(":")[0] ?? "") !== true);
      assert.deepEqual(broken, [], "safety rules");
    } finally {
      await world.stop();
    }
    assert.equal(world.devices.open(), 0, "every device session is closed");
    assert.equal(world.clock.pending, 0, "nothing is left running");
  }

  get operator(): BareMetalHostOperator {
    return this.#hosts.operator;
  }

  get violations(): string[] {
    return this.observer.violations.map(({ invariant, what }) => `${invariant}: ${what}`);
  }

  /** @param families the families that the agent serves. */
  startAgent(families = this.#families): void {
    this.#agents += 1;
    this.#agent = new AgentProcess(this, {
      name: "agent",
      seed: 200 + this.#agents,
      families,
      ...(this.#ownCluster && { clusters: ({ runtime, nodes }, signal) => ownCluster(runtime, nodes, signal) }),
      onNote: (note) => this.notes.push(note),
      onEnd: (why) => this.observer.report("-", `the agent ended: ${why.message}`),
    });
  }

  /** Kills the agent. */
  async killAgent(): Promise<void> {
    await this.#agent?.stop();
  }

  async stop(): Promise<void> {
    await this.killAgent();
    await this.#hosts.stop();
    await this.stopCluster();
  }

  bmh(name = "n1"): BareMetalHost {
    return this.#hosts.get(name) ?? assert.fail(`BareMetalHost ${name}`);
  }

  /** Changes a host with a merge patch of the whole object or of its status. */
  edit(patch: Record<string, unknown>, subresource?: "status", name = "n1"): void {
    this.#hosts.edit(name, patch, subresource);
  }

  annotate(annotations: Record<string, string | null>): void {
    this.edit({ metadata: { annotations } });
  }

  /** Our off requests on host n1. */
  offRequests(): string[] {
    const keys = Object.keys(this.bmh().metadata.annotations ?? {});
    return keys.filter((key) => key.startsWith(`${REBOOT_ANNOTATION_PREFIX}ironfence-`));
  }

  condition(type: string, name = "n1"): { status: string; reason: string; message: string } {
    const found = this.remediation(name)?.status?.conditions?.find((known) => known.type === type);
    assert.ok(found, `condition ${type} of ${name}`);
    return found;
  }

  async until(what: string, holds: () => boolean, withinMs = 900_000): Promise<void> {
    const endMs = this.clock.nowMs() + withinMs;
    while (!holds()) {
      if (this.clock.nowMs() >= endMs) assert.fail(`not within ${withinMs} ms: ${what}\n${this.story()}`);
      await this.clock.advance(50);
    }
  }

  async phase(phase: string, name = "n1"): Promise<void> {
    await this.until(`${name} is ${phase}`, () => this.remediation(name)?.status?.phase === phase);
  }

  /** Hangs a host, and waits until the cluster notices. */
  async hang(name = "n1"): Promise<Host> {
    const host = this.rack.host(name);
    host.hang();
    await this.until(`${name} is not Ready`, () => !this.isReady(name));
    return host;
  }

  /** The same for n1 with the pod db on it. */
  async hangWithPod(): Promise<void> {
    this.createPod("n1", "db");
    await this.clock.advance(3_000);
    await this.hang();
  }

  /** The same, and the pod stays until `freePod`. */
  async hangWithHeldPod(): Promise<void> {
    await this.hangWithPod();
    this.holdPod();
  }

  /** Keeps the pod db on its node, so that a remediation stays in Releasing. */
  holdPod(): void {
    this.#finalizers(["test/held"]);
  }

  freePod(): void {
    this.#finalizers(null);
  }

  #finalizers(finalizers: readonly string[] | null): void {
    const pods = this.server.collection(PODS);
    const key = { namespace: "default", name: "db" };
    if (pods.get(key) !== undefined) pods.mergePatch(key, { metadata: { finalizers } });
  }

  abort(name = "n1"): void {
    this.server.collection(BARE_METAL_REMEDIATIONS).delete({ namespace: NAMESPACE, name });
  }

  /** Removes the finalizers of the remediation, as an impatient user does. */
  dropFinalizers(name = "n1"): void {
    const patch = { metadata: { finalizers: null } };
    this.server.collection(BARE_METAL_REMEDIATIONS).mergePatch({ namespace: NAMESPACE, name }, patch);
  }

  /** Asserts that ironfence has left only the record of the reboot on host n1. */
  assertClean(): void {
    const keys = Object.keys(this.bmh().metadata.annotations ?? {});
    assert.deepEqual(this.offRequests(), []);
    assert.ok(!keys.includes(HOST_OWNER) && !keys.includes(POWER_OFF_REQUEST), keys.join(", "));
  }

  story(): string {
    const { status } = this.remediation("n1") ?? {};
    const steps = (status?.timeline ?? []).map(({ step, time, message }) => `  ${time} ${step}: ${message}`);
    return [...steps, `power: ${this.powerLog.join(", ")}`, JSON.stringify(this.bmh(), null, 1)].join("\n");
  }
}
