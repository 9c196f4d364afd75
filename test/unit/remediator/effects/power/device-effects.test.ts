import type { OrderFacts } from "../../../../../src/remediator/machine/rules/orders/order-obstacle.ts";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BmcError } from "../../../../../src/bmc/interface/errors.ts";
import type { BmcErrorCode } from "../../../../../src/bmc/interface/errors.ts";
import { HeldError, PartlyTakenError } from "../../../../../src/bmc/topology/order-errors.ts";
import type { ResourceType } from "../../../../../src/kube/resource.ts";
import { KubeError } from "../../../../../src/kube/errors.ts";
import type { KubeRuntime } from "../../../../../src/kube/runtime.ts";
import {
  orderPower,
  readPower,
  readWhole,
  setBootOverride,
} from "../../../../../src/remediator/effects/power/devices.ts";
import type { EffectContext } from "../../../../../src/remediator/effects/context/effect-context.ts";
import { acCycle, sendNmi } from "../../../../../src/remediator/effects/power/nmi-and-ac-cycle.ts";
import { runEffect } from "../../../../../src/remediator/effects/run-effect.ts";
import { latenessOf } from "../../../../../src/remediator/machine/rules/orders/power-orders.ts";
import { RemediationSession } from "../../../../../src/remediator/controller/session/session.ts";
import type { SentOrder } from "../../../../../src/remediator/machine/model/facts/observations.ts";
import type { HostPower } from "../../../../../src/remediator/hosts/model/host.ts";
import { sleep } from "../../../../../src/runtime/clock.ts";
import { createLogger } from "../../../../../src/telemetry/logger.ts";
import { seededRandom } from "../../../../lib/seeded-random.ts";
import { oneCluster } from "../../../../lib/workload-clusters.ts";
import { VirtualClock } from "../../../../lib/virtual-clock.ts";
import { NOW, PROVEN, READ_OFF, VERIFIED, know, node } from "../../machine/snapshots.ts";
import { IN_CONTACT } from "../../../../lib/contact.ts";

const SIGNAL = new AbortController().signal;

/** A session with open devices that answer every call with `call`. */
function context(
  call: () => Promise<void>,
  { clock = new VirtualClock(), client }: Partial<Pick<KubeRuntime, "clock" | "client">> = {},
): EffectContext & { closed: () => number } {
  let closed = 0;
  const refuse = (): Promise<never> => Promise.reject(new Error("not part of this test"));
  const power: HostPower = {
    verifyIdentity: refuse,
    readPower: async () => {
      await call();
      return { state: "Off", raw: "Off" };
    },
    readWhole: refuse,
    forceOff: call,
    on: call,
    setBootOverride: refuse,
    readBootOverride: refuse,
    close: async () => {
      closed += 1;
    },
  };
  const runtime: KubeRuntime = {
    // Effects on devices call no API server.
    client: client ?? ({} as KubeRuntime["client"]),
    clock,
    random: seededRandom(1),
    logger: createLogger("silent"),
    contact: () => IN_CONTACT,
    events: { record: () => undefined },
    watch: () => {
      throw new Error("not part of this test");
    },
  };
  const remediation = {
    apiVersion: "ironfence.io/v1alpha1",
    kind: "BareMetalRemediation",
    metadata: { name: "n1", namespace: "ns", uid: "uid", resourceVersion: "1" },
    spec: {},
  };
  const session = new RemediationSession(
    { runtime, clusters: oneCluster(runtime) },
    remediation as RemediationSession["remediation"],
    () => undefined,
  );
  session.power = power;
  return {
    runtime,
    nodeRuntime: runtime,
    session,
    host: {
      ref: { kind: "FencingTarget", namespace: "ns", name: "n1", uid: "target-uid" },
      open: () => Promise.resolve(power),
      ensureOurs: () => Promise.resolve(),
      readMaintenance: () => Promise.resolve(undefined),
      disputeOf: () => Promise.resolve(undefined),
    } as unknown as NonNullable<EffectContext["host"]>,
    node: undefined,
    siblings: [],
    admissions: { ask: () => undefined, withdraw: () => undefined, askToReplace: () => ({ granted: true }) },
    handOver: () => undefined,
    etcdNodes: () => [],
    hasExternalEtcd: false,
    identifyOwnCluster: () => Promise.resolve(),
    orderFacts: () => ALLOWED,
    readStopSwitch: () => Promise.resolve(undefined),
    closed: () => closed,
  };
}

const ALLOWED: OrderFacts = {
  isSameHost: true,
  watchedHold: undefined,
  readHold: { found: undefined, failed: false, atMs: 0 },
};
const STOPPED: OrderFacts = { ...ALLOWED, watchedHold: { reason: "Paused", message: "ironfence is paused" } };

async function orderFails(code: BmcErrorCode, previous?: SentOrder): Promise<ReturnType<typeof context>> {
  const made = context(() => Promise.reject(new BmcError(code, "bmc-1: it failed")));
  know(made.session, { identity: VERIFIED, order: previous });
  await orderPower(made, "ForceOff", "a1", SIGNAL);
  return made;
}

describe("a power order", () => {
  it("a power order uses up what was known of power and identity: neither says anything about the time after it", async () => {
    const made = context(() => Promise.resolve());
    know(made.session, { power: PROVEN, identity: VERIFIED });
    await orderPower(made, "ForceOff", "a1", SIGNAL);
    const { power, identity, order } = made.session.observations;
    assert.deepEqual([power.offReads, power.provenAtMs, identity], [0, undefined, undefined]);
    assert.equal(order?.outcome, "Acknowledged");
  });

  it("a power order is not sent if its check of the identity is too old because the process was suspended: everything is read again", async () => {
    for (const identity of [undefined, { check: { verified: true, message: "" }, atMs: -5_001 }] as const) {
      let sent = 0;
      const made = context(() => Promise.resolve(void (sent += 1)));
      know(made.session, { identity });
      await orderPower(made, "ForceOff", "a1", SIGNAL);
      assert.equal(sent, 0);
      assert.equal(made.session.observations.order?.outcome, "Rejected");
      assert.equal(made.session.observations.identity, undefined);
    }
  });

  it("a power-on repeats a check of the identity that is too old, so that a slow API leaves no host off", async () => {
    for (const [check, sentAtAll] of [
      [{ verified: true, message: "" }, 1],
      [{ verified: false, reason: "Mismatch", message: "another host" }, 0],
    ] as const) {
      let sent = 0;
      const made = context(() => Promise.resolve(void (sent += 1)));
      assert.ok(made.session.power !== undefined);
      made.session.power.verifyIdentity = () => Promise.resolve(check);
      know(made.session, { identity: { check: { verified: true, message: "" }, atMs: -5_001 } });
      await orderPower(made, "On", "a1", SIGNAL);
      assert.equal(sent, sentAtAll);
    }
  });

  it("a power-off that a slow API call has made too late is not sent, and the operator learns that the API is too slow", async () => {
    const clock = new VirtualClock();
    let sent = 0;
    const made = context(() => Promise.resolve(void (sent += 1)), { clock });
    assert.ok(made.host !== undefined);
    const host = { ...made.host, ensureOurs: () => new Promise<void>(() => undefined) };
    know(made.session, { identity: { check: { verified: true, message: "" }, atMs: 0 } });
    const ordering = orderPower({ ...made, host }, "ForceOff", "a1", SIGNAL);
    await clock.advance(5_000);
    const { order } = made.session.observations;
    assert.equal(order?.outcome, "Rejected");
    await ordering;
    assert.equal(sent, 0);
    assert.match(latenessOf(order)?.message ?? "", /^the API is too slow/);
  });

  it("a power-off that was stopped during an API call is not sent", async () => {
    let sent = 0;
    let isStopped = false;
    const made = context(() => Promise.resolve(void (sent += 1)));
    assert.ok(made.host !== undefined);
    const host = { ...made.host, ensureOurs: () => Promise.resolve(void (isStopped = true)) };
    know(made.session, { identity: VERIFIED });
    await orderPower({ ...made, host, orderFacts: () => (isStopped ? STOPPED : ALLOWED) }, "ForceOff", "a1", SIGNAL);
    assert.equal(sent, 0);
    assert.equal(made.session.observations.order?.outcome, "Rejected");
    assert.equal(latenessOf(made.session.observations.order), undefined);
  });

  it("a power-on that maintenance stops between two levels is repeated once that is over", async () => {
    const made = context(() => Promise.resolve());
    let isStopped = false;
    const { power } = made.session;
    assert.ok(power !== undefined);
    power.on = (_signal, { obstacle } = {}) => {
      assert.equal(obstacle?.(), undefined);
      isStopped = true;
      return Promise.reject(new HeldError(obstacle?.() ?? ""));
    };
    know(made.session, { identity: VERIFIED });
    const held: OrderFacts = { ...ALLOWED, watchedHold: { reason: "Maintenance", message: "by a test" } };
    await orderPower({ ...made, orderFacts: () => (isStopped ? held : ALLOWED) }, "On", "a1", SIGNAL);
    const { order, device } = made.session.observations;
    assert.deepEqual([order?.outcome, order?.problem, device], ["Rejected", undefined, undefined]);
  });

  it("a power order is not sent if it was stopped while its intent was being stored", async () => {
    let sent = 0;
    const made = { ...context(() => Promise.resolve(void (sent += 1))), orderFacts: () => STOPPED };
    know(made.session, { identity: VERIFIED });
    await orderPower(made, "ForceOff", "a1", SIGNAL);
    assert.equal(sent, 0);
    assert.equal(made.session.observations.order?.outcome, "Rejected");
  });

  for (const [code, outcome] of [
    ["Timeout", "Uncertain"],
    ["BadResponse", "Uncertain"],
    ["Unreachable", "Rejected"],
    ["Busy", "Rejected"],
    ["Refused", "Rejected"],
    ["AuthFailed", "Rejected"],
  ] as const) {
    it(`a power order that ends as ${code} counts as ${outcome}`, async () => {
      assert.equal((await orderFails(code)).session.observations.order?.outcome, outcome);
    });
  }

  it("a power order that one of several devices has taken counts as Uncertain, however the others refused it", async () => {
    const made = context(() => Promise.reject(new PartlyTakenError(new BmcError("Refused", "bmc-2: not now"))));
    know(made.session, { identity: VERIFIED });
    await orderPower(made, "ForceOff", "a1", SIGNAL);
    assert.equal(made.session.observations.order?.outcome, "Uncertain");
  });

  it("a power order whose connection breaks a second time is judged by the host's state", async () => {
    const previous: SentOrder = { attemptId: "a0", action: "ForceOff", outcome: "Rejected", atMs: 0 };
    assert.equal((await orderFails("Unreachable", previous)).session.observations.order?.outcome, "Uncertain");
  });

  const CUT_OFF: SentOrder = {
    attemptId: "a0",
    action: "ForceOff",
    outcome: "Rejected",
    problem: { reason: "BMCUnreachable", message: "the other side closed", final: false },
    atMs: -3_000,
  };
  for (const [what, previous, earlierEffectAtMs] of [
    ["keeps the time of the order before it if the connection of that order broke", CUT_OFF, CUT_OFF.atMs],
    [
      "keeps the time of an earlier order that may still take effect",
      { ...CUT_OFF, problem: undefined, earlierEffectAtMs: -9_000 },
      -9_000,
    ],
    [
      "keeps no time of the order before it if that order was refused",
      { ...CUT_OFF, problem: { ...CUT_OFF.problem, reason: "BMCRefused" } },
      undefined,
    ],
    [
      "keeps the time of the order before it if the BMC acknowledged that order",
      { ...CUT_OFF, outcome: "Acknowledged", problem: undefined },
      CUT_OFF.atMs,
    ],
    [
      "keeps the time of the order before it if the answer to that order was lost",
      { ...CUT_OFF, outcome: "Uncertain", problem: undefined },
      CUT_OFF.atMs,
    ],
    ["keeps no time of the order before it if that was a power-on", { ...CUT_OFF, action: "On" }, undefined],
  ] as const) {
    it(`a power order that is refused ${what}`, async () => {
      const made = await orderFails("Refused", previous as SentOrder);
      assert.equal(made.session.observations.order?.earlierEffectAtMs, earlierEffectAtMs);
    });
  }

  it("a power order that is not sent does not hide that one before it may have been received", async () => {
    const made = { ...context(() => Promise.resolve()), orderFacts: () => STOPPED };
    know(made.session, { identity: VERIFIED, order: CUT_OFF });
    await orderPower(made, "ForceOff", "a1", SIGNAL);
    assert.equal(made.session.observations.order?.earlierEffectAtMs, CUT_OFF.atMs);
  });
});

describe("a host whose Secret cannot be read", () => {
  for (const [ageMs, isProven] of [
    [4_000, true],
    [5_000, false],
  ] as const) {
    it(`a host whose Secret cannot be read is ${isProven ? "still" : "no longer"} proven off ${ageMs} ms after it was last read Off`, async () => {
      const clock = new VirtualClock();
      const refused = new KubeError("Forbidden", "get Secret ns/bmc: 403");
      const made = context(() => Promise.reject(refused), { clock });
      const atMs = clock.monotonicMs();
      const power = { last: { state: "Off" as const, raw: "Off", atMs }, offReads: 2, offAtMs: atMs, provenAtMs: atMs };
      know(made.session, { power });
      await clock.advance(ageMs);
      await assert.rejects(readPower(made, undefined, SIGNAL), refused);
      assert.equal(made.session.observations.power.provenAtMs !== undefined, isProven);
    });
  }
});

describe("a read before a power-off", () => {
  for (const [what, bmcMs, leaseMs, looks] of [
    ["is not repeated if no answer took long", 900, 900, 1],
    ["is repeated if the BMC took long to answer: the node may have come back", 4_000, 0, 2],
    ["is repeated if the API server took long to answer: the node may have come back", 0, 4_000, 2],
  ] as const) {
    it(`a read before a power-off ${what}`, async () => {
      const clock = new VirtualClock();
      const ready = ["Unknown", "True"];
      let looked = 0;
      const get = async (type: ResourceType): Promise<object> => {
        if (type.kind === "Node") return node({ ready: ready[looked++] ?? "" });
        if (type.kind === "Lease" && looked <= 1) await sleep(clock, leaseMs, SIGNAL);
        return {
          apiVersion: "v1",
          kind: type.kind,
          metadata: { name: "n1", uid: "l", resourceVersion: "1" },
          spec: {},
        };
      };
      const made = context(() => Promise.resolve(), { clock, client: { get } as unknown as KubeRuntime["client"] });
      const power: Partial<HostPower> = {
        verifyIdentity: async () => {
          await sleep(clock, bmcMs, SIGNAL);
          return { verified: true, message: "it is the host" };
        },
      };
      made.session.power = { ...made.session.power, ...power } as HostPower;
      const effect = runEffect(made, { do: "examine" }, SIGNAL);
      await clock.advance(Math.max(bmcMs, leaseMs));
      await clock.advance(bmcMs);
      await effect;
      assert.equal(looked, looks);
      const conditions = made.session.observations.examined?.node?.status.conditions;
      assert.equal(conditions?.[0]?.status, ready[looks - 1]);
      assert.equal(made.session.observations.identity?.check.verified, true);
    });
  }

  it("a read before a power-off leaves nothing that an order could rest on if it could not be repeated", async () => {
    const clock = new VirtualClock();
    let looked = 0;
    const get = (type: ResourceType): Promise<object> => {
      const lease = {
        apiVersion: "v1",
        kind: type.kind,
        metadata: { name: "n1", uid: "l", resourceVersion: "1" },
        spec: {},
      };
      if (type.kind !== "Node") return Promise.resolve(lease);
      looked += 1;
      return looked === 1 ? Promise.resolve(node()) : Promise.reject(new KubeError("Unavailable", "away"));
    };
    const made = context(() => Promise.resolve(), { clock, client: { get } as unknown as KubeRuntime["client"] });
    const power: Partial<HostPower> = {
      verifyIdentity: async () => {
        await sleep(clock, 4_000, SIGNAL);
        return { verified: true, message: "it is the host" };
      },
    };
    made.session.power = { ...made.session.power, ...power } as HostPower;
    const effect = assert.rejects(runEffect(made, { do: "examine" }, SIGNAL), /away/);
    await clock.advance(4_000);
    await effect;
    assert.deepEqual([made.session.observations.examined, made.session.observations.identity], [undefined, undefined]);
  });
});

describe("a device that fails", () => {
  it("a device that fails is called again after a growing time, and opened again then", async () => {
    const made = await orderFails("Busy");
    const { device } = made.session.observations;
    assert.equal(device?.reason, "BMCBusy");
    assert.ok(device.retryAtMs >= 500 && device.retryAtMs <= 1_000);
    assert.deepEqual([made.closed(), made.session.power], [1, undefined]);
  });

  it("a device that fails by refusing the password is left alone for minutes: more tries lock the account", async () => {
    const made = context(() => Promise.reject(new BmcError("AuthFailed", "bmc-1: it failed")));
    made.session.power = undefined;
    await readPower(made, undefined, SIGNAL);
    const { device } = made.session.observations;
    assert.deepEqual([device?.final, device?.retryAtMs], [true, 300_000]);
  });

  it("a device that refuses a password which was read a while ago is tried again with the present one of the Secret", async () => {
    const made = await orderFails("AuthFailed");
    assert.equal(made.session.observations.device?.final, false);
    await readPower(made, undefined, SIGNAL);
    assert.deepEqual([made.session.observations.device?.final, made.session.observations.device?.failures], [true, 1]);
  });

  it("a device that fails counts as working again after the next success", async () => {
    const made = context(() => Promise.resolve());
    const device = { reason: "BMCBusy", message: "", final: false, failures: 3, retryAtMs: 0 } as const;
    know(made.session, { device });
    await readPower(made, undefined, SIGNAL);
    assert.equal(made.session.observations.device, undefined);
  });

  it("a device that fails in no time that a reading is given ends as a time-out", async () => {
    const made = context(() => new Promise(() => undefined));
    const clock = made.runtime.clock as VirtualClock;
    const reading = readPower(made, 1_000, SIGNAL);
    await clock.advance(1_000);
    await reading;
    assert.equal(made.session.observations.device?.reason, "BMCTimeout");
  });
});

describe("a reading that fails", () => {
  const failing = (): ReturnType<typeof context> =>
    context(() => Promise.reject(new BmcError("Unreachable", "bmc-1: away")));

  it("a reading that fails breaks the series of Off readings that was to prove the host off", async () => {
    const made = failing();
    know(made.session, { power: { ...READ_OFF, offAtMs: NOW.monotonicMs } });
    await readPower(made, undefined, SIGNAL);
    assert.equal(made.session.observations.power.offReads, 0);
  });

  it("a reading that fails leaves the power of a host unknown", async () => {
    const made = failing();
    assert.ok(made.session.power !== undefined);
    made.session.power.readWhole = () => Promise.reject(new BmcError("Unreachable", "bmc-1: away"));
    await readWhole(made, SIGNAL);
    const { last } = made.session.observations.power;
    assert.deepEqual([last?.state, last?.runs], ["Unknown", false]);
  });
});

describe("a boot override", () => {
  it("a boot override is set once it is read back, and no sooner: some BMCs take it and do nothing", async () => {
    for (const [present, known] of [
      ["None", undefined],
      ["NetworkOnce", "NetworkOnce"],
    ] as const) {
      const made = context(() => Promise.resolve());
      assert.ok(made.session.power !== undefined);
      made.session.power.setBootOverride = () => Promise.resolve();
      made.session.power.readBootOverride = () => Promise.resolve(present);
      await setBootOverride(made, "NetworkOnce", SIGNAL);
      assert.equal(made.session.observations.override, known);
      assert.equal(made.session.observations.device?.reason, known === undefined ? "BMCRefused" : undefined);
    }
  });
});

describe("an NMI of a remediation", () => {
  const DIAGNOSTICS = { orderedAt: "2026-01-01T12:00:00Z", endsAt: "2026-01-01T12:01:00Z" };

  /** The observation of an NMI after the effect, and the number of NMIs that devices received. */
  async function nmiOf(
    options: { isStored?: boolean; facts?: () => OrderFacts; ageMs?: number; call?: () => Promise<void> } = {},
  ): Promise<[outcome: string | undefined, sent: number]> {
    const { isStored = true, facts = () => ALLOWED, ageMs = 0, call = () => Promise.resolve() } = options;
    let sent = 0;
    const made = context(() => Promise.resolve());
    assert.ok(made.session.power !== undefined);
    made.session.power.sendNmi = async () => {
      sent += 1;
      await call();
      return { outcome: "Sent", message: "it was taken" };
    };
    const { remediation } = made.session;
    made.session.learn({ ...remediation, status: isStored ? { diagnostics: DIAGNOSTICS } : {} });
    know(made.session, { identity: { check: { verified: true, message: "" }, atMs: -ageMs } });
    await sendNmi({ ...made, orderFacts: facts }, 10_000, SIGNAL);
    return [made.session.observations.nmi?.outcome, sent];
  }

  it("an NMI of a remediation is sent if its status was stored and the power-off may be sent", async () => {
    assert.deepEqual(await nmiOf(), ["Sent", 1]);
  });

  it("an NMI of a remediation is not sent if the API server has dropped the field that records it, since a restart would send another", async () => {
    assert.deepEqual(await nmiOf({ isStored: false }), ["NotSent", 0]);
  });

  it("an NMI of a remediation is not sent while the power-off is held, or if the identity was checked too long ago", async () => {
    assert.deepEqual(await nmiOf({ facts: () => STOPPED }), ["NotSent", 0]);
    assert.deepEqual(await nmiOf({ ageMs: 5_001 }), ["NotSent", 0]);
  });

  it("an NMI of a remediation that a device fails to answer counts as sent, and says nothing about the device", async () => {
    const call = (): Promise<void> => Promise.reject(new BmcError("Timeout", "bmc-1: no answer"));
    assert.deepEqual(await nmiOf({ call }), ["Uncertain", 1]);
  });
});

describe("an AC cycle of a remediation", () => {
  const CYCLE = { attemptID: "a1", orderedAt: "2026-01-01T12:00:00Z", endsAt: "2026-01-01T12:05:00Z" };

  for (const [attemptID, outcome, count] of [
    ["a1", "Sent", 1],
    ["a0", "NotSent", 0],
  ] as const) {
    it(`an AC cycle of a remediation is ${outcome} if the one of power cycle ${attemptID} was stored and a1 orders it`, async () => {
      let sent = 0;
      const made = context(() => Promise.resolve());
      assert.ok(made.session.power !== undefined);
      made.session.power.acCycle = () => {
        sent += 1;
        return Promise.resolve({ outcome: "Sent", message: "it was taken" });
      };
      const { remediation } = made.session;
      made.session.learn({ ...remediation, status: { acCycle: { ...CYCLE, attemptID } } });
      know(made.session, { identity: VERIFIED, power: PROVEN });
      await acCycle(made, "a1", 10_000, SIGNAL);
      const { observations } = made.session;
      assert.deepEqual([observations.acCycle?.outcome, sent], [outcome, count]);
      assert.equal(observations.power.last, undefined, "what was read before says nothing any more");
    });
  }
});
