import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { afterEach, describe, test } from "node:test";
import type { RequestRecord } from "../../../../hack/kube-mock/api-server.ts";
import { REFUSED, SERVED_BY } from "../../../../src/api/names/annotations.ts";
import type { BareMetalRemediationStatus } from "../../../../src/api/ironfence/bare-metal-remediation.ts";
import { bareMetalRemediationSpecSchema } from "../../../../src/api/ironfence/bare-metal-remediation.ts";
import { METAL3_REMEDIATION_FINALIZER, readMetal3Remediation } from "../../../../src/api/metal3/metal3-remediation.ts";
import { decideMetal3, REFUSALS } from "../../../../src/remediator/requests/decide-metal3-remediation.ts";
import { beyondRights, readRules } from "../../../lib/rights.ts";
import { Metal3World } from "./metal3-fixture.ts";

const REASON = { status: "False", lastTransitionTime: "2026-01-01T00:00:00Z" } as const;
const FAILED: BareMetalRemediationStatus = {
  phase: "Failed",
  retryCount: 1,
  provenReboots: 2,
  lastRemediated: "2026-01-01T00:10:00Z",
  conditions: [{ ...REASON, type: "Succeeded", reason: "RejoinTimeout", message: "node n did not rejoin" }],
};

let world: Metal3World | undefined;

async function begin(version?: "v1beta1" | "v1beta2"): Promise<Metal3World> {
  world = await Metal3World.create(version);
  return world;
}

/** A request whose child exists. */
async function asked(spec?: unknown, version?: "v1beta1" | "v1beta2"): Promise<Metal3World> {
  const world = await begin(version);
  world.ask(spec);
  await world.clock.advance(1_000);
  return world;
}

/** The annotations that keep the Metal3 provider from choosing the host. */
function unhealthyMarks(world: Metal3World): Record<string, string> {
  const { annotations = {} } = world.host().metadata;
  return Object.fromEntries(Object.entries(annotations).filter(([name]) => name.endsWith("metal3.io/unhealthy")));
}

afterEach(async () => {
  await world?.stop();
  world = undefined;
});

describe("a Metal3Remediation", () => {
  test("a Metal3Remediation gets one child, which the Machine and the request own, and is kept until that has gone", async () => {
    const world = await asked({ strategy: { type: "Reboot", retryLimit: 2, timeoutSeconds: 300 } });
    const request = world.request();
    const { metadata, spec } = world.child();
    assert.equal(metadata.name, `machine-0-${request?.metadata.uid.slice(0, 8)}`);
    assert.deepEqual(
      metadata.ownerReferences?.map(({ kind, uid, controller }) => ({ kind, uid, controller })),
      [
        { kind: "Metal3Remediation", uid: request?.metadata.uid, controller: true },
        { kind: "Machine", uid: world.machine().metadata.uid, controller: undefined },
      ],
    );
    assert.equal(spec.strategy.type, "Reboot");
    assert.equal(spec.strategy.retryLimit, 2);
    assert.equal(spec.strategy.timeout, "300s");
    assert.deepEqual(request?.metadata.finalizers, [METAL3_REMEDIATION_FINALIZER]);
    assert.equal(request?.metadata.annotations?.[SERVED_BY], metadata.name);
    assert.equal(world.phase(), "Running");
  });

  test("a Metal3Remediation of v1beta1 says its timeout as a duration", async () => {
    const world = await asked({ strategy: { type: "Reboot", retryLimit: 3, timeout: "5m30s" } }, "v1beta1");
    assert.equal(world.child().spec.strategy.timeout, "330s");
    assert.equal(world.child().spec.strategy.retryLimit, 3);
  });

  test("a Metal3Remediation reports upstream's phases, retries and times as its child goes on", async () => {
    const world = await asked();
    for (const [status, phase] of [
      [{ phase: "PoweringOff" }, "Running"],
      [{ phase: "Releasing" }, "Running"],
      [{ phase: "PoweringOn" }, "Waiting"],
      [{ phase: "Rejoining", lastRemediated: "2026-01-01T00:00:30Z" }, "Waiting"],
      [{ phase: "Verifying", lastRemediated: "2026-01-01T00:00:30Z", retryCount: 1 }, "Running"],
      [{ phase: "Restoring", lastRemediated: "2026-01-01T00:09:30Z", retryCount: 1 }, "Waiting"],
      [{ phase: "Succeeded", lastRemediated: "2026-01-01T00:09:30Z", retryCount: 1 }, "Waiting"],
    ] as const) {
      await world.play(status);
      assert.equal(world.phase(), phase, status.phase);
    }
    assert.equal(world.request()?.status?.["retryCount"], 1);
    assert.equal(world.request()?.status?.["lastRemediated"], "2026-01-01T00:09:30Z");
    assert.deepEqual([...new Set(world.reasons())], ["Running", "Waiting"]);
  });

  test("a Metal3Remediation backs up the labels and annotations of a Node that is deleted as upstream does, until the Node has them again", async () => {
    const world = await asked();
    const backup = { nodeUID: "n", labels: { b: "2", a: "1" }, annotations: { x: "y" } };
    await world.play({ phase: "Releasing", backup });
    const keys = ["remediation.metal3.io/node-labels-backup", "remediation.metal3.io/node-annotations-backup"];
    const present = (): unknown[] => keys.map((key) => world.request()?.metadata.annotations?.[key]);
    assert.deepEqual(present(), ['{"a":"1","b":"2"}', '{"x":"y"}']);
    await world.play({ phase: "Succeeded", backup });
    assert.deepEqual(present(), [undefined, undefined]);
  });

  test("a Metal3Remediation that lingers after its node is back does not power the host off again, also after a restart", async () => {
    const world = await asked();
    await world.play({ phase: "Succeeded", lastRemediated: "2026-01-01T00:00:30Z" });
    const { uid } = world.child().metadata;
    await world.stop();
    world.start();
    await world.clock.advance(3_600_000);
    assert.equal(world.child().metadata.uid, uid);
    assert.equal(world.phase(), "Waiting");
  });

  test("a Metal3Remediation whose reboots are used up hands its Machine to the owner, in both forms of conditions, and marks the host", async () => {
    const world = await asked();
    await world.play(FAILED);
    assert.equal(world.phase(), "Deleting machine");
    const [condition] = (world.machine().status?.["conditions"] ?? []) as Record<string, string>[];
    assert.equal(condition?.["type"], "OwnerRemediated");
    assert.equal(condition?.["status"], "False");
    assert.equal(condition?.["reason"], "WaitingForRemediation");
    assert.match(condition?.["message"] ?? "", /RejoinTimeout/u);
    assert.deepEqual(unhealthyMarks(world), {
      "capi.metal3.io/unhealthy": "capm3/UnhealthyNode",
      "capm3.metal3.io/unhealthy": "capm3/UnhealthyNode",
    });
    assert.ok(world.reasons().includes("DeletingMachine"));
  });

  test("a Metal3Remediation marks no host that its Machine names, but another one has taken", async () => {
    const world = await asked();
    world.changeHost({ spec: { consumerRef: { kind: "Metal3Machine", namespace: "others", name: "machine-0" } } });
    await world.play(FAILED);
    assert.equal(world.phase(), "Deleting machine");
    assert.deepEqual(unhealthyMarks(world), {});
  });

  test("a Metal3Remediation marks no host of a Metal3Machine in another namespace, which its Machine names for its own", async () => {
    const world = await asked(undefined, "v1beta1");
    world.nameForeignInfrastructure("others");
    await world.play(FAILED);
    assert.equal(world.phase(), "Deleting machine");
    assert.deepEqual(unhealthyMarks(world), {});
  });

  test("a Metal3Remediation hands a Machine of v1beta1 over in the form that its Cluster API reads", async () => {
    const world = await asked(undefined, "v1beta1");
    await world.play(FAILED);
    const [condition] = (world.machine().status?.["conditions"] ?? []) as Record<string, string>[];
    assert.deepEqual(
      [condition?.["type"], condition?.["status"], condition?.["severity"]],
      ["OwnerRemediated", "False", "Warning"],
    );
  });

  test("a Metal3Remediation whose host was never proven off has failed, and its Machine is left alone", async () => {
    const world = await asked();
    await world.play({ ...FAILED, provenReboots: 1 });
    assert.equal(world.phase(), "Failed");
    assert.equal(world.machine().status?.["conditions"], undefined);
    assert.deepEqual(unhealthyMarks(world), {});
  });

  test("a Metal3Remediation that is deleted while it runs has its child undone, and goes only after it", async () => {
    const world = await asked();
    await world.play({ phase: "PoweringOff" });
    world.withdraw();
    await world.clock.advance(1_000);
    assert.notEqual(world.child().metadata.deletionTimestamp, undefined);
    await world.clock.advance(60_000);
    assert.notEqual(world.request(), undefined);
    await world.letChildGo();
    assert.deepEqual(world.children(), []);
    assert.equal(world.request(), undefined);
  });

  test("a Metal3Remediation whose finalizer was removed by force leaves no child behind, though the Machine owns it too", async () => {
    const world = await asked();
    await world.play({ phase: "PoweringOff" });
    await world.stop();
    world.change({ metadata: { finalizers: null } });
    world.withdraw();
    world.start();
    await world.clock.advance(1_000);
    assert.notEqual(world.child().metadata.deletionTimestamp, undefined);
  });

  test("a Metal3Remediation that was created again under the same name gets a child of its own", async () => {
    const world = await asked();
    const first = world.child().metadata.name;
    await world.stop();
    world.change({ metadata: { finalizers: null } });
    world.withdraw();
    world.ask();
    world.start();
    await world.clock.advance(2_000);
    assert.notEqual(world.child().metadata.name, first);
  });

  test("a Metal3Remediation whose child a user deleted has failed: the host is not rebooted again", async () => {
    const world = await asked();
    const { namespace = "", name } = world.child().metadata;
    await world.play({ phase: "PoweringOff" });
    const children = world.server.collection({
      group: "ironfence.io",
      version: "v1alpha1",
      kind: "BareMetalRemediation",
      plural: "baremetalremediations",
      namespaced: true,
    });
    children.delete({ namespace, name });
    await world.letChildGo();
    await world.clock.advance(60_000);
    assert.deepEqual(world.children(), []);
    assert.equal(world.phase(), "Failed");
    assert.match(world.request()?.metadata.annotations?.[REFUSED] ?? "", /^RemediationRemoved: /u);
  });
});

describe("a Metal3Remediation that cannot be served", () => {
  test("a Metal3Remediation that cannot be served because its host is to be off fails with the reason", async () => {
    const world = await begin();
    world.changeHost({ spec: { online: false } });
    world.ask();
    await world.clock.advance(1_000);
    assert.equal(world.phase(), "Failed");
    assert.deepEqual(world.children(), []);
    assert.match(world.request()?.metadata.annotations?.[REFUSED] ?? "", /^HostOffline: .*spec\.online false/u);
    assert.ok(world.reasons().includes("HostOffline"));
  });

  test("a Metal3Remediation that cannot be served because it has no strategy fails with the reason, and nothing breaks", async () => {
    const world = await begin();
    world.ask({});
    await world.clock.advance(1_000);
    assert.equal(world.phase(), "Failed");
    assert.match(world.request()?.metadata.annotations?.[REFUSED] ?? "", /^InvalidStrategy: /u);
    world.ask({ strategy: { type: "Reboot" } }, { name: "another" });
    await world.clock.advance(1_000);
    assert.equal(world.children().length, 1);
  });

  test("a Metal3Remediation that cannot be served because it refers to no Machine fails with the reason", async () => {
    const world = await begin();
    world.ask(undefined, { owned: false });
    await world.clock.advance(1_000);
    assert.match(world.request()?.metadata.annotations?.[REFUSED] ?? "", /^NoMachine: /u);
  });

  test("a Metal3Remediation that cannot be served is served after the operator has removed the refusal", async () => {
    const world = await begin();
    world.changeHost({ spec: { online: false } });
    world.ask();
    await world.clock.advance(1_000);
    world.changeHost({ spec: { online: true } });
    world.change({ status: { phase: null } }, "status");
    world.change({ metadata: { annotations: { [REFUSED]: null } } });
    await world.clock.advance(2_000);
    assert.equal(world.phase(), "Running");
    assert.equal(world.children().length, 1);
  });
});

describe("a Metal3Remediation that the Metal3 provider's controller serves as well", () => {
  const refusal = (world: Metal3World): string => world.request()?.metadata.annotations?.[REFUSED] ?? "";

  test("a Metal3Remediation that the Metal3 provider's controller serves as well is left to it if it has begun already", async () => {
    const world = await begin();
    await world.stop();
    world.ask();
    world.change({ status: { phase: "Running", lastRemediated: "2026-01-01T00:00:00Z" } }, "status");
    world.start();
    await world.clock.advance(5_000);
    assert.deepEqual(world.children(), []);
    assert.match(refusal(world), /^ConflictingController: status\.phase is Running/u);
    assert.equal(world.phase(), "Running");
    assert.deepEqual(world.reasons(), ["ConflictingController"]);
  });

  test("a Metal3Remediation that the Metal3 provider's controller serves as well loses its child as soon as its key is seen on the host", async () => {
    const world = await asked();
    await world.play({ phase: "PoweringOff" });
    const uid = world.request()?.metadata.uid;
    world.changeHost({
      metadata: { annotations: { [`reboot.metal3.io/metal3-remediation-${uid}`]: '{"mode":"hard"}' } },
    });
    await world.clock.advance(7_000);
    assert.match(refusal(world), /^ConflictingController: BareMetalHost metal3\/host-0/u);
    assert.notEqual(world.child().metadata.deletionTimestamp, undefined);
  });

  test("a Metal3Remediation that the Metal3 provider's controller serves as well loses its child when the status is ahead of it", async () => {
    const world = await asked();
    await world.play({ phase: "PoweringOff" });
    world.change({ status: { lastRemediated: "2026-01-01T00:00:05Z" } }, "status");
    await world.clock.advance(1_000);
    assert.match(refusal(world), /^ConflictingController: status\.lastRemediated/u);
    assert.notEqual(world.child().metadata.deletionTimestamp, undefined);
  });

  test("a Metal3Remediation that the Metal3 provider's controller serves as well keeps its finalizer when it is deleted: the other controller needs it", async () => {
    const world = await asked();
    world.change({ status: { lastRemediated: "2026-01-01T00:00:05Z" } }, "status");
    await world.clock.advance(1_000);
    world.withdraw();
    await world.clock.advance(10_000);
    assert.deepEqual(world.request()?.metadata.finalizers, [METAL3_REMEDIATION_FINALIZER]);
  });
});

describe("a Metal3Remediation that says Waiting before its host was powered on", () => {
  const attempt = {
    id: "a",
    kind: "Reboot",
    action: "ForceOff",
    actionAt: "2026-01-01T00:00:10Z",
    startedAt: "2026-01-01T00:00:10Z",
    deadline: "2026-01-01T00:05:00Z",
    sent: true,
    done: true,
    bootOverride: false,
  } as const;
  const proven = { ...attempt, offConfirmedAt: "2026-01-01T00:00:20Z" };

  test("a Metal3Remediation that shows Waiting before its host was powered on still belongs to ironfence if its power-on was due, and goes when it is withdrawn", async () => {
    const world = await asked();
    await world.play({ phase: "PoweringOn", provenReboots: 1, attempt: proven });
    assert.equal(world.phase(), "Waiting");
    await world.play({ phase: "Undoing", provenReboots: 1, attempt: proven });
    assert.equal(world.request()?.metadata.annotations?.[REFUSED], undefined);
    assert.equal(world.phase(), "Waiting");
    world.withdraw();
    await world.clock.advance(1_000);
    await world.letChildGo();
    assert.equal(world.request(), undefined);
  });

  test("a Metal3Remediation that is Waiting before its host was powered on stays ours if its node came back by itself and left again", async () => {
    const world = await asked();
    const untouched = { ...attempt, action: "None" } as const;
    await world.play({ phase: "Restoring", attempt: untouched });
    assert.equal(world.phase(), "Waiting");
    await world.play({ phase: "Undoing", attempt: untouched });
    assert.equal(world.request()?.metadata.annotations?.[REFUSED], undefined);
  });

  for (const [what, status] of [
    ["undone before its host was proven off", { phase: "Undoing", attempt }],
    ["still at the release of its workloads", { phase: "Releasing", attempt: proven }],
  ] as const) {
    test(`a Metal3Remediation that reports Waiting before its host was powered on counts as that of another controller if its child is ${what}`, async () => {
      const world = await asked();
      await world.play({ phase: "PoweringOff", attempt });
      await world.play(status);
      world.change({ status: { phase: "Waiting" } }, "status");
      await world.clock.advance(1_000);
      assert.match(world.request()?.metadata.annotations?.[REFUSED] ?? "", /^ConflictingController: .*Waiting/u);
    });
  }
});

describe("a Metal3Remediation of an OKD Machine", () => {
  const machine = { apiVersion: "machine.openshift.io/v1beta1", kind: "Machine", name: "m", uid: "m" };
  const request = (status: Record<string, unknown>): ReturnType<typeof readMetal3Remediation> => {
    const raw = {
      apiVersion: "infrastructure.cluster.x-k8s.io/v1beta1",
      kind: "Metal3Remediation",
      metadata: {
        name: "m",
        namespace: "openshift-machine-api",
        uid: "12345678-0000",
        resourceVersion: "1",
        annotations: { [SERVED_BY]: "m-12345678" },
        finalizers: [METAL3_REMEDIATION_FINALIZER],
        ownerReferences: [machine],
      },
      spec: { strategy: { type: "Reboot", retryLimit: 1, timeout: "300s" } },
      status,
    };
    return readMetal3Remediation(raw);
  };
  const child = (status: BareMetalRemediationStatus) => ({
    apiVersion: "ironfence.io/v1alpha1",
    kind: "BareMetalRemediation",
    metadata: { name: "m-12345678", uid: "c", resourceVersion: "1" },
    spec: bareMetalRemediationSpecSchema.parse({}),
    status,
  });
  const REPLACING: BareMetalRemediationStatus = {
    phase: "Provisioning",
    lastRemediated: "2026-01-01T00:10:00Z",
    attempt: {
      id: "a",
      kind: "Reprovision",
      action: "None",
      actionAt: "2026-01-01T00:10:00Z",
      startedAt: "2026-01-01T00:10:00Z",
      deadline: "2026-01-01T00:20:00Z",
      sent: true,
      done: true,
      bootOverride: false,
    },
    replacement: { owner: { ...machine, kind: "MachineSet" }, deletedAt: "2026-01-01T00:12:00Z" },
  };

  test("a Metal3Remediation of an OKD Machine has the Machine deleted in the end: OKD has no condition that would ask its owner to", () => {
    const step = decideMetal3({ request: request({}), child: undefined, host: undefined });
    assert.ok(step.do === "create");
    assert.deepEqual(
      [step.spec.strategy.type, step.spec.strategy.via, step.spec.strategy.retryLimit],
      ["Escalate", "MachineDeletion", 1],
    );
  });

  test("a Metal3Remediation of an OKD Machine reports that the Machine is deleted once it is, which no other controller has written", () => {
    const waiting = request({ phase: "Waiting", lastRemediated: "2026-01-01T00:10:00Z" });
    const step = decideMetal3({ request: waiting, child: child(REPLACING), host: undefined });
    assert.ok(step.do === "escalate");
    assert.equal(step.mirror.phase, "Deleting machine");
    const told = request({ phase: "Deleting machine", lastRemediated: "2026-01-01T00:10:00Z" });
    assert.deepEqual(decideMetal3({ request: told, child: child(REPLACING), host: undefined }), { do: "wait" });
  });

  test("a Metal3Remediation of an OKD Machine does not report the deletion of the Machine before it happens", () => {
    const { replacement: _, ...before } = REPLACING;
    const waiting = request({ phase: "Waiting", lastRemediated: "2026-01-01T00:10:00Z" });
    const step = decideMetal3({ request: waiting, child: child(before), host: undefined });
    assert.ok(step.do === "mirror");
    assert.equal(step.mirror.phase, "Running");
  });
});

describe("the family's permissions", () => {
  test("the family's permissions are enough from the first read to the last write, and allow nothing else", async () => {
    const world = await begin();
    const records: RequestRecord[] = [];
    world.server.onRequest((record) => void records.push(record));
    await world.stop();
    world.start();
    world.ask();
    await world.clock.advance(1_000);
    await world.play(FAILED);
    world.withdraw();
    await world.clock.advance(1_000);
    await world.letChildGo();
    assert.equal(world.request(), undefined);
    const rules = readRules("deploy/families/metal3-remediation/role-metal3-remediation.yaml");
    assert.deepEqual(beyondRights(records, rules), []);
    // Rules for Machines of OKD are not used here.
    const used = (rule: (typeof rules)[number]): boolean =>
      beyondRights(
        records,
        rules.filter((other) => other !== rule),
      ).length > 0;
    assert.deepEqual(
      rules.filter((rule) => !used(rule)),
      [],
    );
  });
});

describe("docs/reference/metal3.md", () => {
  test("docs/reference/metal3.md lists every reason for which a request is not served", () => {
    const text = readFileSync(new URL("../../../../docs/reference/metal3.md", import.meta.url), "utf8");
    for (const reason of REFUSALS) assert.ok(text.includes(`\n| ${reason} |`), reason);
  });
});
