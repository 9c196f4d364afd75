import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { BareMetalRemediationStatus } from "../../../../../src/api/ironfence/bare-metal-remediation.ts";
import { isKubeError, KubeError } from "../../../../../src/kube/errors.ts";
import type { KubeRuntime } from "../../../../../src/kube/runtime.ts";
import type { EffectContext } from "../../../../../src/remediator/effects/context/effect-context.ts";
import { checkSuccessor, claimHost, isWaiting } from "../../../../../src/remediator/effects/power/claim-host.ts";
import type { Observations } from "../../../../../src/remediator/machine/model/facts/observations.ts";
import { RemediationSession } from "../../../../../src/remediator/controller/session/session.ts";
import { formatAttempt } from "../../../../../src/remediator/machine/model/decision/state.ts";
import type { FencedHost } from "../../../../../src/remediator/hosts/model/host.ts";
import { createLogger } from "../../../../../src/telemetry/logger.ts";
import { seededRandom } from "../../../../lib/seeded-random.ts";
import { VirtualClock } from "../../../../lib/virtual-clock.ts";
import { oneCluster } from "../../../../lib/workload-clusters.ts";
import { attempt, know } from "../../machine/snapshots.ts";
import { IN_CONTACT } from "../../../../lib/contact.ts";
import type { HostOwner } from "../../../../../src/remediator/machine/model/facts/host-facts.ts";

// Ownership of a host: a host has one owner, and an owner that does not come back does not block others.

const SIGNAL = new AbortController().signal;
const OTHER: HostOwner = { kind: "BareMetalRemediation", uid: "uid-b", namespace: "ns", name: "b" };
const INHERITED = formatAttempt(attempt({ action: "Inherited" }));
const WAITING: BareMetalRemediationStatus = { phase: "Resolving", attempt: INHERITED };

interface Stored {
  uid?: string;
  status?: BareMetalRemediationStatus;
  deletionTimestamp?: string;
}

function object(name: string, { uid = `uid-${name}`, status = {}, deletionTimestamp }: Stored = {}) {
  const metadata = {
    namespace: "ns",
    name,
    uid,
    resourceVersion: "1",
    ...(deletionTimestamp && { deletionTimestamp }),
  };
  return { apiVersion: "ironfence.io/v1alpha1", kind: "BareMetalRemediation", metadata, spec: {}, status };
}

/**
 * Remediation `a`, a host that `owner` owns, and other remediations on the API server.
 *
 * @param record the stored status of `a`, and the owner of the host in the watch.
 */
function world(
  owner: HostOwner | undefined,
  stored: Record<string, Stored | KubeError>,
  record: { status?: BareMetalRemediationStatus; watched?: HostOwner; target?: KubeError } = {},
) {
  const asked: string[] = [];
  let owns = owner;
  const get = (_type: unknown, { name }: { name: string }): Promise<object> => {
    asked.push(`get ${name}`);
    const found = stored[name];
    if (found instanceof KubeError) return Promise.reject(found);
    return found === undefined ? Promise.reject(new KubeError("NotFound", name)) : Promise.resolve(object(name, found));
  };
  const host: Partial<FencedHost> = {
    ref: { kind: "FencingTarget", namespace: "ironfence", name: "t", uid: "target-uid" },
    owner: record.watched,
    readMaintenance: async () => {
      if (record.target !== undefined) throw record.target;
      return undefined;
    },
    claim: async (by) => {
      asked.push(`claim for ${by.name}`);
      if (record.target !== undefined) throw record.target;
      owns ??= by;
      return owns.uid === by.uid ? { owned: true } : { owned: false, by: owns };
    },
    release: async (by, { asItIs }) => {
      asked.push(`release of ${by.name}${asItIs ? " as it is" : ""}`);
      if (owns?.uid === by.uid) owns = undefined;
    },
  };
  const runtime: KubeRuntime = {
    client: { get } as unknown as KubeRuntime["client"],
    clock: new VirtualClock(),
    random: seededRandom(1),
    logger: createLogger("silent"),
    contact: () => IN_CONTACT,
    events: { record: () => undefined },
    watch: () => {
      throw new Error("not part of this test");
    },
  };
  const { status } = record;
  const remediation = object("a", { ...(status && { status }) }) as unknown as RemediationSession["remediation"];
  const session = new RemediationSession({ runtime, clusters: oneCluster(runtime) }, remediation, () => undefined);
  const context = { runtime, session, host, siblings: [] } as unknown as EffectContext;
  return { asked, session, context };
}

async function claim(owner: HostOwner | undefined, stored: Record<string, Stored | KubeError> = {}) {
  const made = world(owner, stored);
  await claimHost(made.context, SIGNAL);
  return { asked: made.asked, claim: made.session.observations.claim };
}

describe("a host", () => {
  it("a host whose target is not read in time is tried again as after any failure of the API", async () => {
    const watched = { ...OTHER, uid: "uid-a", name: "a" };
    const target = { kind: "FencingTarget", namespace: "ironfence", name: "t", uid: "target-uid" };
    const made = world(watched, {}, { watched, status: { target } });
    const { host } = made.context;
    assert.ok(host !== undefined);
    const hung = { ...host, claim: () => new Promise<never>(() => undefined) };
    const claiming = assert.rejects(claimHost({ ...made.context, host: hung }, SIGNAL), (error) =>
      isKubeError(error, "Timeout"),
    );
    await (made.context.runtime.clock as VirtualClock).advance(5_000);
    await claiming;
  });

  it("a host without an owner is claimed", async () => {
    assert.deepEqual(await claim(undefined), {
      asked: ["claim for a"],
      claim: { owned: true, targetUid: "target-uid" },
    });
  });

  it("a host that is claimed again was not given up", async () => {
    for (const [owner, hostReleased] of [
      [undefined, false],
      [OTHER, true],
    ] as const) {
      const made = world(owner, { b: {} });
      know(made.session, { hostReleased: true });
      await claimHost(made.context, SIGNAL);
      assert.equal(made.session.observations.hostReleased, hostReleased);
    }
  });

  it("a host is left to a remediation that lives, and it is known whether that remediation undoes what it did", async () => {
    for (const [phase, undoing] of [
      ["PoweringOff", false],
      ["Undoing", true],
    ] as const) {
      const { asked, claim: observations } = await claim(OTHER, { b: { status: { phase } } });
      assert.deepEqual(asked, ["claim for a", "get b"]);
      assert.deepEqual(observations?.owned === false && [observations.by, observations.undoing], [OTHER, undoing]);
    }
  });

  for (const [what, stored] of [
    ["is gone", {}],
    ["was created again under its name", { b: { uid: "uid-of-another" } }],
  ] as const) {
    it(`a host is taken as it is from a remediation that ${what}`, async () => {
      const { asked, claim: observations } = await claim(OTHER, stored);
      assert.deepEqual(asked, ["claim for a", "get b", "release of b as it is", "claim for a"]);
      assert.equal(observations?.owned, true);
    });
  }

  it("a host is left to an owner that is not a remediation if it is unknown whether the owner lives", async () => {
    const stranger = { ...OTHER, kind: "SomebodyElses" };
    const { asked, claim: observations } = await claim(stranger);
    assert.deepEqual([asked, observations?.owned], [["claim for a"], false]);
  });

  it("a host is not taken from an owner if the API server does not say whether the owner lives", async () => {
    await assert.rejects(claim(OTHER, { b: new KubeError("Unavailable", "away") }), /away/u);
  });

  describe("a host that is the remediation's by what is stored", () => {
    const A: HostOwner = { ...OTHER, uid: "uid-a", name: "a" };
    const target = { kind: "FencingTarget", namespace: "ironfence", name: "t", uid: "target-uid" };
    const record = { status: { phase: "Releasing", target }, watched: A, target: new KubeError("Unavailable", "away") };

    it("a host that the stored status gives to a remediation belongs to it although its target cannot be read", async () => {
      const { context, session } = world(A, {}, record);
      await claimHost(context, SIGNAL);
      assert.deepEqual(session.observations.claim, { owned: true, targetUid: "target-uid" });
    });

    for (const [what, more] of [
      ["the watch shows that it belongs to another one", { watched: OTHER }],
      ["another target was on record", { status: { phase: "Releasing", target: { ...target, uid: "of another" } } }],
      ["its target is gone", { target: new KubeError("NotFound", "away") }],
    ] as const) {
      it(`a host that the stored status gives to a remediation does not belong to it if ${what}`, async () => {
        const { context, session } = world(A, {}, { ...record, ...more });
        await assert.rejects(claimHost(context, SIGNAL), /away/u);
        assert.equal(session.observations.claim, undefined);
      });
    }

    it("a host that the stored status gives to a remediation does not belong to it once it was released", async () => {
      const { context, session } = world(A, {}, record);
      know(session, { hostReleased: true });
      await assert.rejects(claimHost(context, SIGNAL), /away/u);
    });

    it("a host is not released if its target names another owner and it is unknown whether that one lives", async () => {
      const { target: _away, ...readable } = record;
      const { context, session } = world(OTHER, { b: new KubeError("Unavailable", "away") }, readable);
      await assert.rejects(claimHost(context, SIGNAL), /away/u);
      assert.equal(session.observations.claim, undefined);
    });
  });

  it("a host whose target is gone is not claimed", async () => {
    const { context, session } = world(undefined, {});
    await claimHost({ ...context, host: undefined }, SIGNAL);
    assert.equal(session.observations.claim, undefined);
  });
});

describe("who waits for a host", () => {
  const sibling = (name: string, waiting: boolean): EffectContext["siblings"][number] => ({
    uid: `uid-${name}`,
    namespace: "ns",
    name,
    waiting,
    succeeded: false,
    offConfirmedAt: undefined,
  });
  async function look(siblings: EffectContext["siblings"], stored: Record<string, Stored>) {
    const { context, session, asked } = world(undefined, stored);
    await checkSuccessor({ ...context, siblings }, SIGNAL);
    return { asked, waiting: (session.observations as Pick<Observations, "successor">).successor?.waiting };
  }

  it("the next remediation for a host is read from the API server, among those that the watch shows to wait, until one is found", async () => {
    const siblings = [sibling("x", false), sibling("y", true), sibling("z", true), sibling("w", true)];
    const stored = { y: {}, z: { status: WAITING }, w: { status: WAITING } };
    assert.deepEqual(await look(siblings, stored), { asked: ["get y", "get z"], waiting: true });
  });

  it("no successor is found if no remediation waits for the host any more", async () => {
    const siblings = [sibling("x", true), sibling("y", true)];
    assert.deepEqual(await look(siblings, { y: { uid: "uid-of-another", status: WAITING } }), {
      asked: ["get x", "get y"],
      waiting: false,
    });
    assert.deepEqual(await look([], {}), { asked: [], waiting: false });
  });

  for (const [what, stored, waits] of [
    ["reports that it waits for the host", { status: WAITING }, true],
    ["has the host now", { status: { ...WAITING, phase: "Verifying" } }, false],
    ["has no status that names another owner", { status: { phase: "Resolving" } }, false],
    ["waits for something else", { status: { ...WAITING, attempt: { ...INHERITED, action: "None" } } }, false],
    ["is being deleted", { status: WAITING, deletionTimestamp: "2026-01-01T00:00:00Z" }, false],
  ] as const) {
    it(`a remediation that ${what} ${waits ? "counts" : "does not count"} as waiting for the host`, () => {
      assert.equal(isWaiting(object("b", stored) as unknown as Parameters<typeof isWaiting>[0]), waits);
    });
  }
});
