import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { BareMetalRemediation } from "../../../../src/api/ironfence/bare-metal-remediation.ts";
import { bareMetalRemediationSpecSchema } from "../../../../src/api/ironfence/bare-metal-remediation.ts";
import { NODE_AT_CREATION } from "../../../../src/api/names/annotations.ts";
import { formatAttempt } from "../../../../src/remediator/machine/model/decision/state.ts";
import { Admissions } from "../../../../src/remediator/controller/admission/admissions.ts";
import { VirtualClock } from "../../../lib/virtual-clock.ts";
import { attempt } from "../machine/snapshots.ts";

function remediation(name: string, status: BareMetalRemediation["status"] = {}): BareMetalRemediation {
  return {
    apiVersion: "ironfence.io/v1alpha1",
    kind: "BareMetalRemediation",
    metadata: { namespace: "ns", name, uid: `uid-${name}`, resourceVersion: "1" },
    spec: bareMetalRemediationSpecSchema.parse({}),
    status,
  };
}

/** Admissions with a limit of one host at a time. */
function turnsAmong(
  stored: readonly BareMetalRemediation[],
  deps: Partial<ConstructorParameters<typeof Admissions>[0]> = {},
): Admissions {
  return new Admissions({
    clock: new VirtualClock(),
    limits: { hosts: 1, perCluster: Infinity, perZone: Infinity },
    zoneLabel: "zone",
    nodesOf: () => ({ get: () => undefined, values: () => [].values() }),
    hasExternalEtcd: () => false,
    remediations: () => stored,
    wake: () => undefined,
    onWaiting: () => undefined,
    ...deps,
  });
}

describe("an admission", () => {
  it("an admission that was granted occupies its slot at once, before its beginning is stored", () => {
    const [a, b] = [remediation("a"), remediation("b")];
    const admissions = turnsAmong([a, b]);
    admissions.ask(a);
    admissions.ask(b);
    assert.deepEqual([admissions.of("uid-a")?.granted, admissions.of("uid-b")?.granted], [true, false]);
  });

  it("an admission that is given up goes to the next one", () => {
    const [a, b] = [remediation("a"), remediation("b")];
    const admissions = turnsAmong([a, b]);
    admissions.ask(a);
    admissions.ask(b);
    admissions.withdraw("uid-a");
    assert.deepEqual([admissions.of("uid-a"), admissions.of("uid-b")?.granted], [undefined, true]);
  });

  it("an admission is refused while the stored status of another remediation shows that it has begun", () => {
    const a = remediation("a");
    const admissions = turnsAmong([a, remediation("b", { phase: "Releasing" })]);
    admissions.ask(a);
    assert.equal(admissions.of("uid-a")?.granted, false);
  });

  it("an admission is not kept for a remediation that no longer waits", () => {
    const [a, b, c] = [remediation("a"), remediation("b"), remediation("c")];
    const admissions = turnsAmong([a, b, c]);
    for (const asking of [a, b, c]) admissions.ask(asking);
    admissions.withdraw("uid-b");
    assert.equal(admissions.of("uid-b"), undefined);
    admissions.withdraw("uid-a");
    assert.deepEqual([admissions.of("uid-b"), admissions.of("uid-c")?.granted], [undefined, true]);
  });

  it("an admission is checked again after a while, because no change reports some causes, and no more often", async () => {
    const clock = new VirtualClock();
    const a = remediation("a");
    const stored = [a, remediation("b", { phase: "Releasing" })];
    const admissions = turnsAmong(stored, { clock });
    admissions.ask(a);
    stored.pop();
    await clock.advance(4_900);
    admissions.reviewIfOld();
    assert.equal(admissions.of("uid-a")?.granted, false);
    await clock.advance(200);
    admissions.reviewIfOld();
    assert.equal(admissions.of("uid-a")?.granted, true);
  });

  it("an admission wakes the remediation that gets it at once, and gives waiting remediations their position once a minute", async () => {
    const clock = new VirtualClock();
    const woken: string[] = [];
    const waiting: number[] = [];
    const [a, b] = [remediation("a"), remediation("b")];
    const admissions = turnsAmong([a, b], {
      clock,
      wake: ({ metadata }) => woken.push(metadata.name),
      onWaiting: (count) => waiting.push(count),
    });
    admissions.ask(a);
    admissions.ask(b);
    admissions.review();
    assert.deepEqual(
      [woken, waiting],
      [
        ["a", "b"],
        [0, 1, 1],
      ],
    );
    await clock.advance(60_000);
    admissions.review();
    assert.deepEqual(woken, ["a", "b", "b"]);
  });

  it("an admission is granted a minute after the slot of another remediation was first seen to lapse, by the monotonic clock", async () => {
    const clock = new VirtualClock();
    const a = remediation("a");
    const late = formatAttempt(attempt({ action: "ForceOff", deadlineMs: clock.nowMs() - 600_000 }));
    const b = remediation("b", { phase: "PoweringOff", attempt: late });
    const admissions = turnsAmong([a, b], { clock });
    admissions.ask(a);
    assert.equal(admissions.of("uid-a")?.granted, false, "not seen yet");
    admissions.observe(b);
    await clock.advance(59_000);
    admissions.observe(b);
    admissions.review();
    assert.equal(admissions.of("uid-a")?.granted, false);
    await clock.advance(2_000);
    admissions.review();
    assert.equal(admissions.of("uid-a")?.granted, true);
  });

  it("an admission counts in the zone that the node had when its remediation asked, although the Node is deleted", () => {
    const nodes = new Map(
      ["a", "b"].map((name) => [
        name,
        {
          apiVersion: "v1",
          kind: "Node",
          metadata: { name, uid: name, resourceVersion: "1", labels: { zone: "z1" } },
          spec: {},
          status: {},
        },
      ]),
    );
    const [a, b] = [remediation("a"), remediation("b")];
    const admissions = turnsAmong([a, b], {
      limits: { hosts: Infinity, perCluster: Infinity, perZone: 1 },
      nodesOf: () => ({ get: ({ name }) => nodes.get(name), values: () => nodes.values() }),
    });
    admissions.ask(a);
    admissions.ask(b);
    nodes.delete("b");
    admissions.review();
    assert.equal(admissions.of("uid-b")?.granted, false);
    admissions.withdraw("uid-a");
    assert.equal(admissions.of("uid-b")?.granted, true);
  });

  it("an admission counts in the zone that is on record, and else in that of the node", () => {
    const labelled = (zone: string) => ({
      apiVersion: "v1",
      kind: "Node",
      metadata: { name: "n", uid: "n", resourceVersion: "1", labels: { zone } },
      spec: {},
      status: {},
    });
    const begun = remediation("a", { phase: "Releasing", node: { name: "a-node", zone: "z1" } });
    const waiting = (name: string) => remediation(name, { node: { name: `${name}-node` } });
    const [b, c] = [waiting("b"), waiting("c")];
    const admissions = turnsAmong([begun, b, c], {
      limits: { hosts: 10, perCluster: Infinity, perZone: 1 },
      nodesOf: () => ({
        get: ({ name }) => labelled(name === "b-node" ? "z1" : "z2"),
        values: () => [].values(),
      }),
    });
    admissions.ask(b);
    admissions.ask(c);
    assert.deepEqual([admissions.of("uid-b")?.granted, admissions.of("uid-c")?.granted], [false, true]);
  });

  it("an admission of a remediation whose Node is gone counts in the zone that its creator recorded, until its own status is stored", () => {
    const recorded = (name: string, zone: string, status?: BareMetalRemediation["status"]): BareMetalRemediation => {
      const { metadata, ...rest } = remediation(name, status);
      const annotations = { [NODE_AT_CREATION]: JSON.stringify({ uid: name, zone }) };
      return { ...rest, metadata: { ...metadata, annotations } };
    };
    const stored = { node: { name: "a-node", wasReady: false } };
    const begun = recorded("a", "z1", { phase: "Releasing", ...stored });
    const all = [begun, recorded("b", "z1"), recorded("c", "z1"), recorded("d", "z2")];
    const admissions = turnsAmong(all, { limits: { hosts: 10, perCluster: Infinity, perZone: 1 } });
    for (const asking of all.slice(1)) admissions.ask(asking);
    assert.deepEqual(
      ["b", "c", "d"].map((name) => admissions.of(`uid-${name}`)?.granted),
      [true, false, true],
    );
  });

  it("an admission goes first to a remediation that may have been left with a host that is off", () => {
    const inherited = formatAttempt(attempt({ action: "Inherited" }));
    const [a, b, heir] = [
      remediation("a"),
      remediation("b"),
      remediation("c", { phase: "Resolving", attempt: inherited }),
    ];
    const admissions = turnsAmong([a, b, heir]);
    for (const asking of [a, b, heir]) admissions.ask(asking);
    admissions.withdraw("uid-a");
    assert.deepEqual([admissions.of("uid-b")?.granted, admissions.of("uid-c")?.granted], [false, true]);
  });

  it("an admission that a thousand remediations ask for at once is reviewed once in 100 ms, and a free slot is taken then", async () => {
    const clock = new VirtualClock();
    const all = Array.from({ length: 1_000 }, (_, index) => remediation(`r-${String(index).padStart(4, "0")}`));
    let reviews = 0;
    const remediations = (): readonly BareMetalRemediation[] => {
      reviews += 1;
      return all;
    };
    const admissions = turnsAmong(all, { clock, remediations });
    const granted = (): string[] =>
      all.flatMap(({ metadata: { uid } }) => (admissions.of(uid)?.granted === true ? [uid] : []));
    for (const asking of all) admissions.ask(asking);
    assert.deepEqual([reviews, granted()], [100, ["uid-r-0000"]], "as soon as asked, while few wait");
    const last = admissions.of("uid-r-0999");
    assert.deepEqual(last, {
      granted: false,
      reason: "WaitingForTurn",
      message: "998 other remediations wait for admission",
    });
    admissions.withdraw("uid-r-0000");
    for (const { metadata } of all.slice(2, 800)) admissions.withdraw(metadata.uid);
    assert.deepEqual([reviews, granted()], [100, []], "postponed");
    await clock.advance(100);
    assert.deepEqual([reviews, granted()], [101, ["uid-r-0001"]]);
    admissions.withdraw("uid-r-0001");
    admissions.close();
    await clock.advance(100);
    assert.deepEqual([reviews, granted()], [101, []], "nothing is reviewed once it is closed");
  });
});
