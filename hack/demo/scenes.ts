import type { BareMetalRemediation } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { NODE_NAME } from "../../src/api/names/annotations.ts";
import type { Node, Pod } from "../../src/api/kubernetes/core.ts";
import { NODES, PODS } from "../../src/api/kubernetes/core-types.ts";
import type { Chronicle, Step } from "./chronicle.ts";
import { STEPS } from "./chronicle.ts";
import type { World } from "./world.ts";

/** How one scene ended. */
export interface SceneResult {
  scene: string;
  ok: boolean;
  /** Milliseconds from the fault to each step that was seen. */
  stepsMs: Partial<Record<Step, number>>;
  /** What was missing or wrong; empty if the scene ended as expected. */
  problems: string[];
}

/** One outage: what happens, to which host, and what must follow. */
export interface Scene {
  title: string;
  host: string;
  /** Breaks something. */
  start(world: World): void;
  /** Steps that must be seen, in this order. */
  expected: readonly Step[];
  /** Steps that must not be seen for the host. */
  forbidden: readonly Step[];
  timeoutMs: number;
  /** What happens after the expected steps; returns what went wrong. */
  sequel?: (world: World, chronicle: Chronicle) => Promise<string[]>;
}

export const SCENES: readonly Scene[] = [
  {
    title: "a host hangs",
    host: "node-1",
    start: (world) => world.rack.host("node-1").hang(),
    expected: [
      "unknown",
      "remediation",
      "forceOff",
      "off",
      "taint",
      "podGone",
      "quarantine",
      "on",
      "ready",
      "succeeded",
      "healthy",
    ],
    forbidden: ["failed", "networkBoot", "nodeDeleted"],
    timeoutMs: 15_000,
  },
  {
    title: "a disk dies: a reboot does not help",
    host: "node-2",
    start: (world) => world.rack.host("node-2").failDisk(),
    expected: [
      "unknown",
      "remediation",
      "off",
      "taint",
      "podGone",
      "failed",
      "escalated",
      "nodeDeleted",
      "networkBoot",
      "nodeRejoined",
      "succeeded",
      "healthy",
    ],
    forbidden: [],
    timeoutMs: 25_000,
  },
  {
    title: "a dead host whose BMC does not answer; then half the rack goes silent",
    host: "node-3",
    start: (world) => {
      world.rack.bmc("node-3").setReachability("silent");
      world.rack.host("node-3").hang();
    },
    expected: ["unknown", "remediation", "failed", "escalated"],
    forbidden: ["forceOff", "off", "taint", "podGone", "nodeDeleted", "networkBoot", "succeeded"],
    timeoutMs: 20_000,
    sequel: storm,
  },
];

/** Nodes whose leases end together in the third scene: fewer than minHealthy are left, so none may be fenced. */
const STORM_HOSTS: readonly string[] = ["node-4", "node-5", "node-6"];
const STORM_WATCH_MS = 4_500;

async function storm(world: World, chronicle: Chronicle): Promise<string[]> {
  // Waits until the escalation step has failed as well, so that no template is left.
  await chronicle.until(() => remediationsOf(world, "node-3").every((each) => verdict(each) === "False"), 12_000);
  chronicle.note("cluster", `${STORM_HOSTS.join(", ")} fall silent too: no network?`, "fault", "bad");
  for (const name of STORM_HOSTS) world.rack.host(name).hang();
  await chronicle.until(() => STORM_HOSTS.every((name) => chronicle.find(name, "unknown") !== undefined), 6_000);
  // Waits for longer than a fence of each of them would take to begin without the threshold.
  await chronicle.until(() => STORM_HOSTS.some((name) => remediationsOf(world, name).length > 0), STORM_WATCH_MS);
  const guarded = chronicle.entries.some((entry) => entry.scene === chronicle.scene && entry.step === "stormGuard");
  return [
    ...(guarded ? [] : ["the health check never reported that it holds back"]),
    ...STORM_HOSTS.filter((name) => remediationsOf(world, name).length > 0).map(
      (name) => `${name} was remediated in the storm`,
    ),
    ...STORM_HOSTS.filter((name) => world.rack.host(name).power !== "On").map(
      (name) => `${name} was powered off in the storm`,
    ),
  ];
}

function remediationsOf(world: World, node: string): BareMetalRemediation[] {
  return [...world.server.collection<BareMetalRemediation>(BARE_METAL_REMEDIATIONS).values()].filter(
    ({ metadata }) => (metadata.annotations?.[NODE_NAME] ?? metadata.name) === node,
  );
}

function verdict(remediation: BareMetalRemediation): string | undefined {
  return remediation.status?.conditions?.find((condition) => condition.type === "Succeeded")?.status;
}

/** Plays one scene and judges it. */
export async function play(scene: Scene, number: number, world: World, chronicle: Chronicle): Promise<SceneResult> {
  chronicle.scene = number;
  const { host, expected } = scene;
  const metadataBefore = userMarks(world, host);
  const podsBefore = podsOn(world, host);
  chronicle.note(host, scene.title, "fault", "bad");
  const fault = chronicle.find(host, "fault");
  scene.start(world);
  await chronicle.until(() => expected.every((step) => chronicle.find(host, step) !== undefined), scene.timeoutMs);
  const problems = expected.filter((step) => chronicle.find(host, step) === undefined).map((step) => `no "${step}"`);
  problems.push(...outOfOrder(chronicle, host, expected));
  if (problems.length === 0 && scene.sequel !== undefined) problems.push(...(await scene.sequel(world, chronicle)));
  problems.push(
    ...scene.forbidden.filter((step) => chronicle.find(host, step) !== undefined).map((step) => `unwanted "${step}"`),
  );
  if (expected.includes("succeeded")) {
    await chronicle.until(() => podsBefore.every((pod) => runsElsewhere(world, pod)), 5_000);
    problems.push(
      ...podsBefore.filter((pod) => !runsElsewhere(world, pod)).map((pod) => `pod ${pod} does not run again`),
    );
    if (userMarks(world, host) !== metadataBefore) {
      problems.push(`labels, annotations or taints are not as before: ${metadataBefore} → ${userMarks(world, host)}`);
    }
  }
  const stepsMs: Partial<Record<Step, number>> = {};
  for (const step of STEPS) {
    const entry = chronicle.find(host, step) ?? (step === "stormGuard" ? anywhere(chronicle, step) : undefined);
    if (entry !== undefined && fault !== undefined) stepsMs[step] = entry.atMs - fault.atMs;
  }
  return { scene: scene.title, ok: problems.length === 0, stepsMs, problems };
}

function anywhere(chronicle: Chronicle, step: Step): ReturnType<Chronicle["find"]> {
  return chronicle.entries.find((entry) => entry.scene === chronicle.scene && entry.step === step);
}

function outOfOrder(chronicle: Chronicle, host: string, expected: readonly Step[]): string[] {
  const order = expected.map((step) => chronicle.entries.findIndex((entry) => entry === chronicle.find(host, step)));
  return expected.flatMap((step, index) => {
    const before = index === 0 ? -1 : (order[index - 1] ?? -1);
    const at = order[index] ?? -1;
    return at >= 0 && before >= 0 && at < before ? [`"${step}" came before "${expected[index - 1]}"`] : [];
  });
}

function podsOn(world: World, host: string): string[] {
  return [...world.server.collection<Pod>(PODS).values()]
    .filter((pod) => pod.spec.nodeName === host && pod.metadata.namespace === "default")
    .map((pod) => pod.metadata.name);
}

function runsElsewhere(world: World, name: string): boolean {
  const pod = world.server.collection<Pod>(PODS).get({ namespace: "default", name });
  return pod?.status?.phase === "Running" && pod.metadata.deletionTimestamp === undefined;
}

/** Labels, annotations and taints of a node, as text, without the taints that Kubernetes derives from conditions. */
function userMarks(world: World, name: string): string {
  const node = world.server.collection<Node>(NODES).get({ name });
  const sorted = (record: Record<string, string> | undefined): [string, string][] =>
    Object.entries(record ?? {}).sort(([a], [b]) => a.localeCompare(b));
  const taints = (node?.spec.taints ?? []).filter((taint) => !taint.key.startsWith("node.kubernetes.io/"));
  return JSON.stringify([sorted(node?.metadata.labels), sorted(node?.metadata.annotations), taints]);
}
