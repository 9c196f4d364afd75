import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import type { BareMetalRemediation } from "../../../src/api/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../../../src/api/bare-metal-remediation.ts";
import { createKubeRuntime } from "../../../src/kube/create-runtime.ts";
import type { KubeObject, ResourceType } from "../../../src/kube/resource.ts";
import { serveMetal3Remediations } from "../../../src/remediator/requests/metal3-remediation.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { seededRandom } from "../../lib/seeded-random.ts";
import { METAL3, Metal3World } from "./world.ts";

// Metal3Remediations through their whole story: request, child, state machine, BareMetalHost, its operator, node.

const kind = (group: string, version: string, name: string): ResourceType => ({
  group,
  version,
  kind: name,
  plural: `${name.toLowerCase()}s`,
  namespaced: true,
});
const MACHINES = kind("cluster.x-k8s.io", "v1beta2", "Machine");
const METAL3_MACHINES = kind("infrastructure.cluster.x-k8s.io", "v1beta1", "Metal3Machine");
const REQUESTS = kind("infrastructure.cluster.x-k8s.io", "v1beta2", "Metal3Remediation");
const CLUSTER_API = readFileSync(new URL("../../../hack/foreign-crds/cluster.x-k8s.io.yaml", import.meta.url), "utf8");
const KEY = { namespace: METAL3, name: "m1" };

interface Request extends KubeObject {
  status?: { phase?: string; retryCount?: number; lastRemediated?: string };
}

class Story {
  readonly world: Metal3World;
  readonly phases: string[] = [];
  readonly #machineUid: string;

  /** Machine m1 is node n1 on host n1. */
  constructor(world: Metal3World) {
    this.world = world;
    const { server } = world;
    server.load(CLUSTER_API);
    const infrastructureRef = { apiGroup: METAL3_MACHINES.group, kind: "Metal3Machine", name: "n1-machine" };
    const made = server.collection(MACHINES).create({
      metadata: KEY,
      spec: { clusterName: "c", bootstrap: { dataSecretName: "b" }, infrastructureRef },
    });
    this.#machineUid = made.metadata.uid;
    server.collection(MACHINES).mergePatch(KEY, { status: { nodeRef: { name: "n1" } } }, "status");
    const ownerReferences = [this.#owner];
    server
      .collection(METAL3_MACHINES)
      .mergePatch({ namespace: METAL3, name: "n1-machine" }, { metadata: { ownerReferences } });
    server.onChange(({ object }) => {
      const { phase } = (object as Request).status ?? {};
      if (object.kind === REQUESTS.kind && phase !== undefined && this.phases.at(-1) !== phase) this.phases.push(phase);
    });
  }

  get #owner(): Record<string, unknown> {
    return { apiVersion: "cluster.x-k8s.io/v1beta2", kind: "Machine", name: "m1", uid: this.#machineUid };
  }

  /** Runs `test` with Metal3Remediations served. */
  static run(test: (story: Story, world: Metal3World) => Promise<void>): Promise<void> {
    return Metal3World.run({ ownCluster: true }, async (world) => {
      const stop = new AbortController();
      const story = new Story(world);
      const runtime = createKubeRuntime({
        transport: world.server.transport({ client: "requests" }),
        clock: world.clock,
        random: seededRandom(5),
        logger: createLogger("silent"),
        controllerName: "ironfence.io/agent",
        instance: "requests",
      });
      const serving = serveMetal3Remediations({ ...runtime, events: { record: () => undefined } }, stop.signal);
      const ended = serving.catch((error: unknown) => {
        if (!stop.signal.aborted) throw error;
      });
      await world.clock.advance(1_000);
      try {
        await test(story, world);
      } finally {
        stop.abort(new Error("the test has ended"));
        await world.clock.advance(0);
        await ended;
      }
    });
  }

  /** What a health check of Cluster API does. */
  ask(strategy: Record<string, unknown> = {}): void {
    this.world.server.collection(REQUESTS).create({
      metadata: { ...KEY, ownerReferences: [this.#owner] },
      spec: { strategy: { type: "Reboot", timeoutSeconds: 100, ...strategy } },
    });
  }

  get request(): Request | undefined {
    return this.world.server.collection<Request>(REQUESTS).get(KEY);
  }

  get child(): BareMetalRemediation | undefined {
    return [...this.world.server.collection<BareMetalRemediation>(BARE_METAL_REMEDIATIONS).values()][0];
  }

  withdraw(): void {
    this.world.server.collection(REQUESTS).delete(KEY);
  }

  machine(): string {
    return JSON.stringify(this.world.server.collection(MACHINES).get(KEY));
  }

  async until(what: string, holds: () => boolean): Promise<void> {
    await this.world.until(`${what}; child: ${JSON.stringify(this.child?.status?.timeline)}`, holds);
  }
}

describe("a Metal3Remediation", () => {
  it("brings its node back by one power cycle, and goes with its child when the health check takes it back", () =>
    Story.run(async (story, world) => {
      await world.hang();
      story.ask();
      await story.until("the node is back", () => story.child?.status?.phase === "Succeeded");
      assert.deepEqual(story.phases, ["Running", "Waiting"]);
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
      assert.equal(story.child?.status?.machine?.name, "m1");
      story.withdraw();
      await story.until("request and child are gone", () => story.request === undefined && story.child === undefined);
      world.assertClean();
    }));

  it("tries again, then hands its Machine to the owner and marks the host", () =>
    Story.run(async (story, world) => {
      world.rack.host("n1").failDisk();
      await world.until("the node is not Ready", () => !world.isReady("n1"));
      story.ask({ retryLimit: 1 });
      await story.until("the request has ended", () => story.phases.at(-1) === "Deleting machine");
      assert.deepEqual(story.phases, ["Running", "Waiting", "Running", "Waiting", "Deleting machine"]);
      assert.equal(story.request?.status?.retryCount, 1);
      assert.match(story.machine(), /"OwnerRemediated","status":"False"/u);
      assert.equal(world.bmh().metadata.annotations?.["capm3.metal3.io/unhealthy"], "capm3/UnhealthyNode");
      assert.equal(world.powerLog.filter((order) => order === "n1 ForceOff").length, 2);
    }));

  it("that is taken back in mid-fence leaves its host on, and nothing of ours", () =>
    Story.run(async (story, world) => {
      await world.hang();
      story.ask();
      await story.until(
        "the host is off",
        () => story.child?.status?.phase === "PoweringOff" && world.holds().length > 0,
      );
      story.withdraw();
      await story.until("request and child are gone", () => story.request === undefined && story.child === undefined);
      await world.until("the node is back", () => world.isReady("n1"));
      world.assertClean();
    }));

  it("steps back where the Metal3 provider's controller powers the host as well", () =>
    Story.run(async (story, world) => {
      await world.hang();
      story.ask();
      await story.until("the host is held off", () => world.holds().length > 0);
      const key = `reboot.metal3.io/metal3-remediation-${story.request?.metadata.uid ?? ""}`;
      world.annotate({ [key]: '{"mode":"hard"}' });
      await story.until("our hold is off", () => world.holds().length === 0);
      await world.clock.advance(60_000);
      assert.equal(world.rack.host("n1").power, "Off", "the other one's hold is not ours to take off");
      assert.match(story.request?.metadata.annotations?.["ironfence.io/refused"] ?? "", /^ConflictingController: /u);
      world.annotate({ [key]: null });
      await world.until("the node is back", () => world.isReady("n1"));
      await story.until("the child is gone", () => story.child === undefined);
      world.assertClean();
    }));
});
