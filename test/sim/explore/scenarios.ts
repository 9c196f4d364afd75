import type { Act, Run } from "./run.ts";

const START = 28_000;
/** A node that fails at the start. The cluster notices this before the remediation is created. */
const DEAD = { when: { atMs: 0 }, do: "hang", host: "n1" } as const;
const ORDERED = { when: { atMs: START }, do: "remediate", node: "n1" } as const;

/** A power loss after the first probe, which has read the host On. */
const CUT = { when: { atMs: 20_000 }, do: "order", host: "n1", order: "ForceOff" } as const;

/** A reprovision without a reboot before it. */
const INSTALL = { type: "Reprovision", via: "BareMetalHost", requireReboot: false, timeout: "300s" } as const;

/** The BMC dies once it has, or may have, a boot override. */
const DEAD_WITH_OVERRIDE: readonly Act[] = [
  DEAD,
  {
    ...ORDERED,
    strategy: {
      type: "Reprovision",
      requireReboot: false,
      retryLimit: 1,
      powerOffTimeout: "30s",
      powerOnTimeout: "60s",
    },
  },
  { when: { on: "Provisioning", afterMs: 35 }, do: "bmc", host: "n1", is: "silent" },
  { when: { atMs: START + 150_000 }, do: "bmc", host: "n1", is: "up" },
];

type Scenario = Pick<Run, "script"> & Partial<Pick<Run, "shape">>;

/**
 * The possible courses of a fence. Each is played without a fault, and every mode of exploration plays them with
 * faults.
 */
const SCENARIOS: Readonly<Record<string, Scenario>> = {
  reboot: { script: [DEAD, ORDERED] },
  alive: { script: [{ ...ORDERED, when: { atMs: 0 } }] },
  retry: {
    script: [
      { when: { atMs: 0 }, do: "failDisk", host: "n1" },
      { ...ORDERED, strategy: { retryLimit: 1, timeout: "20s" } },
    ],
  },
  escalate: {
    script: [
      { when: { atMs: 0 }, do: "failDisk", host: "n1" },
      { ...ORDERED, strategy: { type: "Escalate", timeout: "30s" } },
    ],
  },
  reprovision: {
    script: [
      { when: { atMs: 0 }, do: "failDisk", host: "n1" },
      { ...ORDERED, name: "first", strategy: { timeout: "20s" } },
      {
        when: { on: "Failed", name: "first" },
        do: "remediate",
        node: "n1",
        name: "second",
        strategy: { type: "Reprovision" },
      },
    ],
  },
  deleteNode: {
    script: [
      { when: { atMs: 0 }, do: "label", node: "n1" },
      { when: { atMs: 0 }, do: "annotate", node: "n1" },
      { when: { atMs: 0 }, do: "taint", node: "n1" },
      DEAD,
      { ...ORDERED, strategy: { workloadRelease: "DeleteNode" } },
    ],
  },
  garbageCollector: {
    script: [DEAD, { ...ORDERED, strategy: { podRelease: "GarbageCollector", drainTimeout: "60s" } }],
  },
  crashDump: { script: [DEAD, { ...ORDERED, strategy: { diagnostics: "NMI", diagnosticsTimeout: "10s" } }] },
  acCycle: { script: [DEAD, { ...ORDERED, strategy: { powerOn: "ACCycle", acCycleTimeout: "90s" } }] },
  acCycleDeleted: {
    script: [
      DEAD,
      { ...ORDERED, strategy: { powerOn: "ACCycle", acCycleTimeout: "90s" } },
      { when: { on: "PoweringOn", afterMs: 500 }, do: "delete", name: "n1" },
    ],
  },
  deleted: { script: [DEAD, ORDERED, { when: { on: "Releasing" }, do: "delete", name: "n1" }] },
  givenUp: { script: [DEAD, ORDERED, { when: { on: "PoweringOff", afterMs: 500 }, do: "timeOut", name: "n1" }] },
  handOver: {
    script: [
      DEAD,
      ORDERED,
      { when: { on: "PoweringOff" }, do: "remediate", node: "n1", name: "second" },
      { when: { on: "Releasing" }, do: "timeOut", name: "n1" },
    ],
  },
  bmcAway: {
    script: [
      DEAD,
      { when: { atMs: START - 1_000 }, do: "bmc", host: "n1", is: "silent" },
      ORDERED,
      { when: { atMs: START + 20_000 }, do: "bmc", host: "n1", is: "up" },
    ],
  },
  turnedOn: {
    script: [
      DEAD,
      { when: { atMs: START - 1_000 }, do: "holdPod" },
      ORDERED,
      { when: { on: "Releasing", afterMs: 3_000 }, do: "order", host: "n1", order: "On" },
      { when: { atMs: START + 19_000 }, do: "freePod" },
    ],
  },
  drainTimeout: { script: [DEAD, { when: { atMs: START - 1_000 }, do: "holdPod" }, ORDERED] },
  paused: {
    script: [
      DEAD,
      ORDERED,
      { when: { on: "PoweringOff" }, do: "pause", on: true },
      { when: { atMs: START + 15_000 }, do: "pause", on: false },
    ],
  },
  // The taint is added as soon as the host is off. Earlier it would move the pods of a host that is on.
  foreignTaint: {
    script: [DEAD, ORDERED, { when: { on: "PoweringOff", afterMs: 2_030 }, do: "outOfService", node: "n1" }],
  },
  lateOff: {
    script: [DEAD, { when: { atMs: START - 1_000 }, do: "delayOrders", host: "n1", forMs: 5_000 }, ORDERED],
  },
  // The first order takes effect when the node is back, long after a second one.
  veryLateOff: {
    script: [
      DEAD,
      { when: { atMs: START - 1_000 }, do: "delayOrders", host: "n1", forMs: 90_000 },
      ORDERED,
      { when: { on: "PoweringOff", afterMs: 1_000 }, do: "delayOrders", host: "n1", forMs: 0 },
    ],
  },
  unprovenReboots: {
    script: [
      { when: { atMs: 0 }, do: "failDisk", host: "n1" },
      { when: { atMs: START - 1_000 }, do: "bmc", host: "n1", is: "silent" },
      { ...ORDERED, strategy: { type: "Escalate", powerOffTimeout: "20s", timeout: "20s" } },
      { when: { atMs: START + 23_000 }, do: "bmc", host: "n1", is: "up" },
    ],
  },
  reprovisionGivenUp: {
    script: [
      DEAD,
      { ...ORDERED, strategy: { type: "Reprovision", requireReboot: false } },
      { when: { on: "Provisioning", afterMs: 45 }, do: "timeOut", name: "n1" },
    ],
  },
  otherHost: {
    script: [
      { when: { atMs: 0 }, do: "rewire", host: "n1", to: "n2" },
      { ...ORDERED, when: { atMs: 1_000 } },
    ],
  },
  // The node is alive, which finally shows that another host was powered off.
  wrongHost: {
    script: [
      { when: { atMs: 0 }, do: "rewire", host: "n1", to: "n2", lies: true },
      { ...ORDERED, when: { atMs: 1_000 } },
    ],
  },
  targetRemade: {
    script: [
      DEAD,
      ORDERED,
      { when: { on: "Releasing" }, do: "dropTarget", host: "n1" },
      { when: { on: "Undoing", afterMs: 5_000 }, do: "remakeTarget", host: "n1" },
    ],
  },
  twoNodes: {
    script: [
      DEAD,
      { when: { atMs: 0 }, do: "hang", host: "n2" },
      ORDERED,
      { when: { atMs: START }, do: "remediate", node: "n2" },
    ],
  },
  // A whole zone fails, and the leader is killed meanwhile. The next leader must not exceed either limit.
  zones: {
    shape: { hosts: 6, zones: 2, maxHosts: 3, maxHostsPerZone: 2, agents: [{}, {}] },
    script: [
      ...(["n1", "n3", "n5", "n2"] as const).flatMap((host): Act[] => [
        { when: { atMs: 0 }, do: "hang", host },
        { ...ORDERED, node: host },
      ]),
      { when: { on: "Releasing" }, do: "crash", agent: 0 },
      { when: { on: "Releasing" }, do: "crash", agent: 1 },
      { when: { on: "Rejoining" }, do: "compact" },
    ],
  },
  // etcd with five members has lost two, whose Nodes were deleted. Then a third one fails and another agent leads.
  membersDeleted: {
    shape: { hosts: 5, controlPlane: true, agents: [{}, {}] },
    script: [
      ...(["n4", "n5"] as const).flatMap((host): Act[] => [
        { when: { atMs: 0 }, do: "hang", host },
        { when: { atMs: 10_000 }, do: "deleteNode", node: host },
      ]),
      { when: { atMs: 11_000 }, do: "crash", agent: 0 },
      { when: { atMs: 11_000 }, do: "crash", agent: 1 },
      { when: { atMs: START + 8_000 }, do: "hang", host: "n3" },
      { when: { atMs: 2 * START + 8_000 }, do: "remediate", node: "n3", strategy: { powerOffTimeout: "20s" } },
    ],
  },
  // From here on the operator of BareMetalHosts powers hosts, and changes of annotations count as orders.
  operatorReboot: {
    shape: { bareMetalHosts: "used" },
    script: [DEAD, ORDERED, { when: { on: "PoweringOff", afterMs: 1_000 }, do: "operator", is: "restarted" }],
  },
  operatorUndone: {
    shape: { bareMetalHosts: "used" },
    script: [
      DEAD,
      { when: { atMs: START - 1_000 }, do: "holdPod" },
      ORDERED,
      { when: { on: "Releasing" }, do: "delete", name: "n1" },
      { when: { on: "Undoing" }, do: "operator", is: "away" },
      { when: { on: "Undoing", afterMs: 10_000 }, do: "operator", is: "back" },
    ],
  },
  hostInstalled: { shape: { bareMetalHosts: "free" }, script: [DEAD, { ...ORDERED, strategy: INSTALL }] },
  hostInstallGivenUp: {
    shape: { bareMetalHosts: "free" },
    script: [
      DEAD,
      { ...ORDERED, strategy: INSTALL },
      { when: { on: "Provisioning", afterMs: 1_000 }, do: "timeOut", name: "n1" },
    ],
  },
  // OKD Machines instead of remediations that a user creates.
  okdAsked: { shape: { okd: "asked" }, script: [DEAD, { when: { atMs: START }, do: "ask", node: "n1" }] },
  okdWithdrawn: {
    shape: { okd: "asked" },
    script: [
      DEAD,
      { when: { atMs: START }, do: "ask", node: "n1" },
      { when: { on: "Releasing" }, do: "withdraw", node: "n1" },
    ],
  },
  okdChecked: { shape: { okd: "checked" }, script: [DEAD] },
  // Reboots do not bring a node back. Its Machine is deleted, and a replacement is created on a spare host.
  machineReplaced: {
    shape: { hosts: 4, okd: "replaced" },
    script: [
      { when: { atMs: 0 }, do: "failDisk", host: "n1" },
      { ...ORDERED, strategy: { type: "Escalate", via: "MachineDeletion", timeout: "20s" } },
    ],
  },
  metal3Asked: {
    shape: { bareMetalHosts: "used", metal3: "asked" },
    script: [
      DEAD,
      { when: { atMs: START }, do: "ask", node: "n1" },
      { when: { on: "Succeeded", afterMs: 1_000 }, do: "withdraw", node: "n1" },
    ],
  },
  metal3Withdrawn: {
    shape: { bareMetalHosts: "used", metal3: "asked" },
    script: [
      DEAD,
      { when: { atMs: START }, do: "ask", node: "n1" },
      { when: { on: "Releasing" }, do: "withdraw", node: "n1" },
    ],
  },
  metal3Checked: { shape: { bareMetalHosts: "used", metal3: "checked" }, script: [DEAD] },
  detected: { shape: { hosts: 4, detector: true }, script: [DEAD] },
  // A host loses power while its node is still Ready. It stays off, or comes on again by itself.
  early: { shape: { hosts: 4, detector: true, skips: true }, script: [CUT] },
  earlyReturned: {
    shape: { hosts: 4, detector: true, skips: true },
    script: [CUT, { when: { on: "Releasing", afterMs: 20 }, do: "order", host: "n1", order: "On" }],
  },
  earlyCycled: {
    shape: { hosts: 4, detector: true, skips: true },
    script: [CUT, { when: { atMs: 33_500 }, do: "order", host: "n1", order: "On" }],
  },
  // The BMC has lost power with its host. The outlets then power the host off and on.
  outlets: {
    shape: { outlets: true },
    script: [DEAD, { when: { atMs: START - 1_000 }, do: "bmc", host: "n1", is: "silent" }, ORDERED],
  },
  // After a crash dump the BMC fails, so outlets power the host off. For the AC cycle the BMC is back.
  outletsAfterDump: {
    shape: { outlets: true },
    script: [
      DEAD,
      {
        ...ORDERED,
        strategy: { diagnostics: "NMI", diagnosticsTimeout: "10s", powerOn: "ACCycle", acCycleTimeout: "90s" },
      },
      { when: { atMs: START + 6_000 }, do: "bmc", host: "n1", is: "silent" },
      { when: { on: "PoweringOn", afterMs: 500 }, do: "bmc", host: "n1", is: "up" },
    ],
  },
  // The BMC dies with a boot override, and outlets then switch the host off.
  outletsReprovision: { shape: { outlets: true }, script: DEAD_WITH_OVERRIDE },
  outletsReprovisionDeleted: {
    shape: { outlets: true },
    script: [...DEAD_WITH_OVERRIDE, { when: { atMs: START + 60_000 }, do: "delete", name: "n1" }],
  },
  massOutage: {
    shape: { hosts: 4, detector: true },
    script: [
      DEAD,
      { when: { atMs: 100 }, do: "hang", host: "n2" },
      { when: { atMs: 200 }, do: "hang", host: "n3" },
      { when: { atMs: 60_000 }, do: "resume", host: "n2" },
    ],
  },
};

export const SCENARIO_NAMES: readonly string[] = Object.keys(SCENARIOS);

/** @throws Error if there is no scenario of this name. */
export function scenario(name: string, seed = 1): Run {
  const found = SCENARIOS[name];
  if (found === undefined) throw new Error(`no scenario is named ${name}: there are ${SCENARIO_NAMES.join(", ")}`);
  return { name, seed, shape: found.shape ?? {}, script: found.script, faults: [] };
}
