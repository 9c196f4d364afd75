import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { PODS, VOLUME_ATTACHMENTS } from "../../../src/api/kubernetes/core-types.ts";
import type { Node, Pod } from "../../../src/api/kubernetes/core.ts";
import { OUT_OF_SERVICE } from "../../../src/api/kubernetes/taints.ts";
import { bears } from "../world.ts";
import { WorkloadWorld } from "./world.ts";

const PODS_EACH = 30;
const VOLUMES_EACH = 5;
/** How long the controllers of the cluster take to detach the volumes of a node that is out of service. */
const DETACH_MS = 5_000;
/** The attachments of the other nodes. */
const OTHER_ATTACHMENTS = 2_000;

const hostNames = (count: number): string[] => Array.from({ length: count }, (_, index) => `n${index + 1}`);

function attach(world: WorkloadWorld, nodeName: string, index: number): void {
  const name = `${nodeName}-${index}`;
  const source = { persistentVolumeName: name };
  world.workload.create(VOLUME_ATTACHMENTS, { name }, { spec: { attacher: "csi.example", nodeName, source } });
}

/** Detaches the volumes of each node some time after it is out of service. */
function detachVolumes(world: WorkloadWorld): void {
  const { server } = world.workload;
  const begun = new Set<string>();
  server.onChange(({ object }) => {
    const { name } = object.metadata;
    if (object.kind !== "Node" || begun.has(name) || !bears(object as Node, OUT_OF_SERVICE)) return;
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
  detachVolumes(world);
  const uids = names.map((name) => world.machine(name, name));
  await world.clock.advance(5_000);
  for (const name of names) world.workload.rack.host(name).hang();
  await world.until("no host is Ready", () => !names.some((name) => world.workload.isReady(name)));
  for (const [index, name] of names.entries()) world.remediateMachine(name, uids[index] ?? assert.fail());
}

/** How long the release of a host took, in milliseconds. */
function releaseMs(world: WorkloadWorld, name: string): number {
  const { timeline = [] } = world.remediation(name)?.status ?? {};
  const at = (step: string): number => Date.parse(timeline.find((entry) => entry.step === step)?.time ?? "");
  return at("Drained") - at("PowerOffConfirmed");
}

const failedPods = (world: WorkloadWorld): number =>
  [...world.workload.server.collection<Pod>(PODS).values()].filter(({ status }) => status?.phase === "Failed").length;

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
});
