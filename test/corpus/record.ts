import { writeFileSync } from "node:fs";
import { NHC_TIMED_OUT } from "../../src/api/names/annotations.ts";
import type {
  BareMetalRemediation,
  BareMetalRemediationStatus,
} from "../../src/api/ironfence/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import type { KubeObject } from "../../src/kube/resource.ts";
import { Metal3World } from "../sim/metal3/world.ts";
import { NAMESPACE, World } from "../sim/world.ts";

// Records the statuses that this version writes, one of each kind, in simulated fences that go through every state:
//   node test/corpus/record.ts test/corpus/<version>/statuses.json
// Run it on the commit of a release, and keep the file: every later version reads it in a test.

const KEY = { namespace: NAMESPACE, name: "n1" };
const TIMELINE_KEPT = 2;
/** Virtual time in which each fence ends. */
const PLAY_MS = 20 * 60_000;

const recorded = new Map<string, BareMetalRemediationStatus>();

function record(object: KubeObject): void {
  const { status } = object as BareMetalRemediation;
  if (object.kind !== "BareMetalRemediation" || status?.phase === undefined) return;
  const { phase, attempt, installation, backup, outcome, conditions = [], timeline = [] } = status;
  const reason = conditions.find(({ type }) => type === "Processing")?.reason;
  const { kind, action, sent, done, bootOverride } = attempt ?? {};
  const has = [installation?.step, backup !== undefined, outcome?.verdict];
  const key = JSON.stringify([phase, kind, action, sent, done, bootOverride, reason, ...has]);
  if (!recorded.has(key)) recorded.set(key, { ...status, timeline: timeline.slice(-TIMELINE_KEPT) });
}

/** Plays one fence of n1 in a new world. */
async function play(strategy: Record<string, unknown>, act: (world: World) => Promise<void> | void): Promise<void> {
  const world = await World.start({});
  world.server.onChange(({ object }) => record(object));
  await world.holdPod();
  world.remediate("n1", { retryLimit: 0, ...strategy });
  await act(world);
  await world.clock.advance(PLAY_MS);
  await world.stop();
}

const remediations = (world: World) => world.server.collection(BARE_METAL_REMEDIATIONS);
const free = (world: World): void => world.freePod();

await play({}, async (world) => {
  await world.phase("n1", "Releasing");
  world.remediate("n1", {}, "second");
  await world.clock.advance(10_000);
  free(world);
});
await play({ workloadRelease: "DeleteNode", drainTimeout: "20s" }, free);
await play({ drainTimeout: "5s" }, () => undefined);
await play({ retryLimit: 1, powerOffTimeout: "20s" }, (world) => world.rack.bmc("n1").setReachability("silent"));
await play({}, async (world) => {
  await world.phase("n1", "Releasing");
  remediations(world).delete(KEY);
});
for (const phase of ["PoweringOff", "Rejoining"]) {
  await play({}, async (world) => {
    free(world);
    await world.phase("n1", phase);
    remediations(world).mergePatch(KEY, { metadata: { annotations: { [NHC_TIMED_OUT]: "2026-01-01T00:00:00Z" } } });
  });
}
await play({ type: "Escalate", timeout: "30s", drainTimeout: "5s" }, (world) => {
  free(world);
  world.rack.host("n1").failDisk();
});
await play({}, async (world) => {
  world.pause(true);
  await world.clock.advance(30_000);
  world.pause(false);
  free(world);
});
{
  const world = new Metal3World({});
  world.server.onChange(({ object }) => record(object));
  world.startAgent();
  await world.clock.advance(15_000);
  world.edit({ spec: { consumerRef: null } });
  await world.hang();
  world.remediate("n1", { type: "Reprovision", via: "BareMetalHost", requireReboot: false });
  await world.clock.advance(2 * PLAY_MS);
  await world.stop();
}

const [, , path = ""] = process.argv;
const lines = [...recorded.values()].map((status) => JSON.stringify(status));
writeFileSync(path, `[\n${lines.join(",\n")}\n]\n`);
process.stdout.write(
  `${recorded.size} statuses, of ${new Set([...recorded.values()].map(({ phase }) => phase)).size} phases\n`,
);
