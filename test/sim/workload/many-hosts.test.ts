import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { PODS, VOLUME_ATTACHMENTS } from "../../../src/api/kubernetes/core-types.ts";
import type { BareMetalRemediation } from "../../../src/api/ironfence/bare-metal-remediation.ts";
import type { Node, Pod } from "../../../src/api/kubernetes/core.ts";
import { OUT_OF_SERVICE } from "../../../src/api/kubernetes/taints.ts";
import { bears } from "../world.ts";
import { WorkloadWorld } from "./world.ts";

const PODS_EACH = 30;
const VOLUMES_EACH = 5;
/** How long the controllers of the cluster take to detach the volumes of a node that is out of service. */
const DETACH_MS = 5_000;
/** How many volumes are attached to other nodes. */
const OTHER_ATTACHMENTS = 2_000;

const hostNames = (count: number): string[] => Array.from({ length: count }, (_, index) => `n${index + 1}`);

function attach(world: WorkloadWorld, nodeName: string, index: number): void {
  const name = `${nodeName}-${index}`;
  const source = { persistentVolumeName: name };
  world.workload.create(VOLUME_ATTACHMENTS, { name }, { spec: { attacher: "csi.example", nodeName, source } });
}

/** Detaches the volumes of these nodes, each some time after it is out of service. */
function detachVolumes(world: WorkloadWorld, names: readonly string[]): void {
  const { server } = world.workload;
  const begun = new Set<string>();
  server.onChange(({ object }) => {
    const { name } = object.metadata;
    if (object.kind !== "Node" || !names.includes(name) || begun.has(name)) return;
    if (!bears(object as Node, OUT_OF_SERVICE)) return;
    begun.add(name);
    world.clock.schedule(DETACH_MS, () => {
      for (let index = 0; index < VOLUMES_EACH; index += 1) {
        server.collection(VOLUME_ATTACHMENTS).delete({ name: `${name}-${index}` });
      }
    });
  });
}

/** Lets all hosts `names` fail at once, and requests their remediations. */
async function failAtOnce(world: WorkloadWorld, names: readonly string[]): Promise<void> {
  for (let index = 0; index < OTHER_ATTACHMENTS; index += 1) attach(world, "other", index);
  for (const name of names) {
    for (let index = 0; index < PODS_EACH; index += 1) world.workload.createPod(name, `${name}-${index}`);
    for (let index = 0; index < VOLUMES_EACH; index += 1) attach(world, name, index);
  }
  detachVolumes(world, names);
  const uids = names.map((name) => world.machine(name, name));
  await world.clock.advance(5_000);
  for (const name of names) world.workload.rack.host(name).hang();
  await world.until("no host is Ready", () => !names.some((name) => world.workload.isReady(name)));
  for (const [index, name] of names.entries()) world.remediateMachine(name, uids[index] ?? assert.fail());
}

/** When a host was proven off after its remediation was requested, in milliseconds. */
async function provenOffMs(world: WorkloadWorld, request: () => BareMetalRemediation | undefined): Promise<number> {
  const isProven = (): boolean =>
    request()?.status?.timeline?.some(({ step }) => step === "PowerOffConfirmed") === true;
  const askedMs = world.clock.nowMs();
  await world.until("the host is proven off", isProven);
  return world.clock.nowMs() - askedMs;
}

/** How long the release of a host took, in milliseconds. */
function releaseMs(world: WorkloadWorld, name: string): number {
  const { timeline = [] } = world.remediation(name)?.status ?? {};
  const at = (step: string): number => Date.parse(timeline.find((entry) => entry.step === step)?.time ?? "");
  return at("Drained") - at("PowerOffConfirmed");
}

const failedPods = (world: WorkloadWorld): number =>
  [...world.workload.server.collection<Pod>(PODS).values()].filter(({ status }) => status?.phase === "Failed").length;

/** How long a call to the workload cluster takes in the last test, in milliseconds. It changes during the test. */
let slowMs = 5;

describe("many hosts of a workload cluster that fail at once", () => {
  for (const [count, callMs] of [
    [25, 30],
    [40, 100],
  ] as const) {
    it(`many hosts of a workload cluster that fail at once, such as ${count} with ${callMs} ms for a call, are released soon after their volumes are detached`, () =>
      WorkloadWorld.run(
        { hosts: hostNames(count), volumes: false, callMs: (place) => (place === "workload" ? callMs : 5) },
        async (world) => {
          const names = hostNames(count);
          await failAtOnce(world, names);
          await world.until("all have ended", () =>
            names.every((name) => ["Succeeded", "Failed"].includes(world.remediation(name)?.status?.phase ?? "")),
          );
          for (const name of names) assert.equal(world.condition("WorkloadsReleased", name), "True Drained", name);
          const slowestMs = Math.max(...names.map((name) => releaseMs(world, name)));
          assert.ok(slowestMs <= DETACH_MS + 15_000, `the slowest release took ${slowestMs} ms`);
          assert.equal(failedPods(world), 0, "no pod is half deleted");
        },
      ));
  }

  it("many hosts of a workload cluster that are released delay no read before the power-off of another host there", () =>
    WorkloadWorld.run(
      { hosts: [...hostNames(25), "late"], volumes: false, callMs: (place) => (place === "workload" ? 100 : 5) },
      async (world) => {
        const names = hostNames(25);
        const uid = world.machine("late", "late");
        world.workload.rack.host("late").hang();
        await failAtOnce(world, names);
        await world.until("all are released", () =>
          names.every((name) => world.remediation(name)?.status?.phase === "Releasing"),
        );
        // By then, the calls that begin the releases have ended.
        await world.clock.advance(1_000);
        const waitsMs: number[] = [];
        let bulk = 0;
        world.onSent = ({ path }, waitedMs) => {
          if (/pods|volumeattachments/u.test(path)) bulk += 1;
          if (/\/(?:nodes|leases)\/late$/u.test(path)) waitsMs.push(waitedMs);
        };
        world.remediateMachine("late", uid);
        await provenOffMs(world, () => world.remediation("late"));
        assert.ok(bulk > 20, `${bulk} calls of releases meanwhile`);
        assert.ok(waitsMs.length >= 2 && Math.max(...waitsMs) <= 300, `reads waited ${waitsMs.join()} ms`);
        await world.clock.advance(DETACH_MS);
      },
    ));

  it("many hosts of a workload cluster that answers too slowly for any call delay no fence in another cluster", () =>
    WorkloadWorld.run(
      { hosts: hostNames(40), volumes: false, callMs: (place) => (place === "workload" ? slowMs : 5) },
      async (world) => {
        slowMs = 5;
        const fenceOwn = async (name: string): Promise<number> => {
          await world.hang("management", name);
          world.management.remediate(name);
          return provenOffMs(world, () => world.management.remediation(name));
        };
        const aloneMs = await fenceOwn("n1");
        await failAtOnce(world, hostNames(40));
        await world.until("all are released", () =>
          hostNames(40).every((name) => world.remediation(name)?.status?.phase === "Releasing"),
        );
        slowMs = 9_900;
        await world.clock.advance(15_000);
        const amidMs = await fenceOwn("n2");
        assert.ok(amidMs <= aloneMs + 500, `${amidMs} ms instead of ${aloneMs} ms`);
        slowMs = 5;
        await world.until("all have ended", () =>
          hostNames(40).every((name) => ["Succeeded", "Failed"].includes(world.remediation(name)?.status?.phase ?? "")),
        );
        assert.equal(failedPods(world), 0, "no pod is half deleted");
      },
    ));
});
