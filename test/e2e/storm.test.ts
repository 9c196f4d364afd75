import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { createHealthCheck, startRackWorld } from "../../hack/e2e/rack-world.ts";
import type { RackWorld } from "../../hack/e2e/rack-world.ts";
import { OUT_OF_SERVICE, QUARANTINE } from "../../hack/e2e/chronicle.ts";
import { HEALTH_CHECK, TARGETS, REMEDIATION_TIMEOUT_MS, explain } from "../../hack/e2e/scenario.ts";
import type { HealthCheckView, TargetView } from "../../hack/e2e/scenario.ts";

const ZONE_LABEL = "topology.kubernetes.io/zone";
const ZONES = ["a", "b", "c", "d", "e"];
const HOSTS_PER_ZONE = 11;
const DEAD_PER_ZONE = 10;
const HOSTS_MAX = 18;
const ZONE_MAX = 4;
/** With fewer healthy nodes, no remediation starts. */
const HEALTHY_MIN = 40;
/** The agent is killed when this many hosts have been ordered off. */
const ORDERED_BEFORE_KILL = 20;
/** How long nothing may start while too few nodes are healthy. */
const STORM_MS = 2_000;
const FLAGS = ["--leader-elect=false", `--max-hosts=${HOSTS_MAX}`, `--max-hosts-per-zone=${ZONE_MAX}`];

const HOSTS = ZONES.flatMap((zone) =>
  Array.from({ length: HOSTS_PER_ZONE }, (_, index) => ({ name: `${zone}-${index}`, labels: { [ZONE_LABEL]: zone } })),
);
const isDoomed = (name: string): boolean => Number(name.split("-")[1]) < DEAD_PER_ZONE;
const DEAD = HOSTS.map(({ name }) => name).filter(isDoomed);

/** Follows the hosts that are really being power-cycled: from the power-off order until the OS runs again. */
function watchCycles({ rack }: RackWorld) {
  const down = new Set<string>();
  const most = { hosts: 0, ofZone: 0 };
  rack.subscribe(({ host, ...event }) => {
    if (event.type === "ordered" && event.order === "ForceOff") down.add(host);
    if (event.type === "booted") down.delete(host);
    const zones = ZONES.map((zone) => [...down].filter((name) => name.startsWith(`${zone}-`)).length);
    most.hosts = Math.max(most.hosts, down.size);
    most.ofZone = Math.max(most.ofZone, ...zones);
  });
  return { down, most };
}

const ordersOf = ({ rack }: RackWorld, name: string): string[] => rack.host(name).orders.map(({ type }) => type);
const orderedOff = (world: RackWorld): string[] => DEAD.filter((name) => ordersOf(world, name).includes("ForceOff"));

void describe("fifty of fifty-five nodes that die at once", () => {
  let world: RackWorld;
  before(async () => {
    const delays = { powerOffDelayMs: 300, powerOnDelayMs: 100, bootMs: 300 };
    world = await startRackWorld(HOSTS.map((host) => ({ ...host, ...delays })));
    await createHealthCheck(world, { timeout: "60s" }, { minHealthy: HEALTHY_MIN, stormCooldownDuration: "1s" });
  });
  after(() => world?.stop());

  const healthCheck = (): Promise<HealthCheckView> => world.api.get<HealthCheckView>(HEALTH_CHECK);
  const wait = <T>(what: string, ask: () => Promise<T | undefined | false>): Promise<T> =>
    explain({ world, agents: world.agents }, what, REMEDIATION_TIMEOUT_MS, ask);

  const uids = async (): Promise<Set<string>> =>
    new Set((await world.remediations()).map(({ metadata }) => metadata.uid));

  void test("fifty of fifty-five nodes that die at once are left alone until the threshold is lowered, and then come back, never more of them off at once than the limits", async () => {
    const { api, rack } = world;
    const cycles = watchCycles(world);
    const first = await world.startAgent(FLAGS);
    await wait("the health check sees all", async () => (await healthCheck()).status?.healthyNodes === HOSTS.length);

    for (const name of DEAD) rack.host(name).hang();
    await wait("the storm is reported", async () =>
      (await healthCheck()).status?.conditions?.some(({ type, status }) => type === "StormActive" && status === "True"),
    );
    await wait(
      "all of them are seen",
      async () => (await healthCheck()).status?.unhealthyNodes?.length === DEAD.length,
    );
    // Remediations of the nodes that Kubernetes noticed first may have begun. No others may begin.
    const begun = await uids();
    assert.ok(begun.size <= HOSTS.length - HEALTHY_MIN, `${begun.size} had begun`);
    await new Promise((resolve) => setTimeout(resolve, STORM_MS));
    assert.deepEqual(
      [...(await uids())].filter((uid) => !begun.has(uid)),
      [],
    );

    await api.mergePatch(HEALTH_CHECK, { spec: { minHealthy: 0 } });
    await wait("those that wait say so", async () => {
      const waiting = (await world.remediations()).flatMap(({ status }) =>
        (status?.conditions ?? []).filter(({ reason }) => reason === "WaitingForTurn"),
      );
      return waiting.some(({ message }) =>
        /hosts .*are being remediated: .*; position \d+ of \d+ in the queue/.test(message),
      );
    });
    await wait("the cycles are under way", () => Promise.resolve(orderedOff(world).length >= ORDERED_BEFORE_KILL));
    await first.kill();
    assert.ok(orderedOff(world).length < DEAD.length, "killed in the middle");
    assert.ok(cycles.down.size > 0, "killed while hosts are off");
    await world.startAgent(FLAGS);

    await wait("every node is back, and every remediation gone", async () => {
      const { status } = await healthCheck();
      const isClean = status?.healthyNodes === HOSTS.length && (status.unhealthyNodes ?? []).length === 0;
      return isClean && (await world.remediations()).length === 0;
    });
    assert.ok(cycles.most.hosts <= HOSTS_MAX && cycles.most.ofZone <= ZONE_MAX, JSON.stringify(cycles.most));
    // The test proves something only if the number of hosts comes close to the limit.
    assert.ok(cycles.most.hosts > HOSTS_MAX / 2, JSON.stringify(cycles.most));
    for (const { name } of HOSTS) {
      const { power, orders } = rack.host(name);
      const started = orders.filter(({ outcome }) => outcome === "Started").map(({ type }) => type);
      assert.deepEqual([name, power, started], [name, "On", isDoomed(name) ? ["ForceOff", "On"] : []]);
      const { spec } = await world.node(name);
      const marks = (spec.taints ?? []).filter(({ key }) => key === OUT_OF_SERVICE || key === QUARANTINE);
      assert.deepEqual(marks, [], name);
    }
    const targets = await api.list<TargetView>(TARGETS);
    assert.ok(
      targets.every(({ status }) => status?.owner === undefined),
      "every host is given up",
    );
  });
});
