import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { NAMESPACE } from "../../hack/demo/objects.ts";
import type { World } from "../../hack/demo/world.ts";
import { startWorld } from "../../hack/demo/world.ts";
import { readForeignCrds } from "../../hack/lib/crds.ts";
import { PROVISIONED_STATUS } from "../../hack/rack/bare-metal-host-status.ts";
import type { BareMetalRemediation } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { NODES, SECRETS } from "../../src/api/kubernetes/core-types.ts";
import type { Node } from "../../src/api/kubernetes/core.ts";
import type { SecretObject } from "../../src/kube/objects/secret-reader.ts";
import type { FencingTarget } from "../../src/api/ironfence/fencing-target.ts";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
import { OUT_OF_SERVICE } from "../../src/api/kubernetes/taints.ts";
import { openDeviceOn } from "../lib/open-device.ts";
import type { TraceCollector } from "../lib/trace-collector.ts";
import { attributeOf, startCollector } from "../lib/trace-collector.ts";
import { runAgent } from "../../src/cli/agent/agent.ts";
import { EXIT_FAILURE, EXIT_REFUSED, EXIT_USAGE } from "../../src/cli/errors/failures.ts";
import { BARE_METAL_HOSTS } from "../../src/remediator/hosts/bare-metal-host/store/host-store.ts";
import { systemMemory } from "../../src/runtime/memory.ts";
import { systemClock, systemRandom } from "../../src/runtime/system.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import type { CliOptions, CliResult } from "./cli-fixture.ts";
import { cli } from "./cli-fixture.ts";

// Commands of a user on a whole cluster with one agent. API server and BMCs use HTTPS.

const DEADLINE_MS = 20_000;
/**
 * A UUID that belongs to no host. The UUID of another host would make two targets ambiguous before the identity is
 * checked.
 */
const NOBODY = { systemUUID: "0d0f9e6e-2f2c-4f0c-9d8a-6a1f6f1f2b3c" };

let folder: string;
let world: World;
let password: string;
/** All that any command of this file has printed. */
let printed = "";

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "ironfence-cli-"));
  world = await startWorld(folder);
  const secret = world.server.collection<SecretObject>(SECRETS).get({ namespace: NAMESPACE, name: "bmc-credentials" });
  password = Buffer.from(secret?.data?.["password"] ?? "", "base64").toString();
  await until("all nodes are Ready", () => [1, 2, 3, 4, 5, 6].every((n) => isReady(`node-${n}`)));
  for (const host of world.rack.hosts) patchTarget(host.name, { identity: { systemUUID: host.spec.systemUUID } });
});

after(async () => {
  assert.ok(password.length > 0);
  assert.ok(!printed.includes(password), "no command has printed the BMCs' password");
  await world.stop();
  await rm(folder, { recursive: true });
});

/**
 * Asserts one trace for each of the two fences, with the states as children of the fence and BMC calls as children of
 * the state.
 */
function assertTraces({ spans, received }: TraceCollector): void {
  const fences = spans.filter(({ name }) => name === "fence");
  const of = (node: string) => fences.find((span) => attributeOf(span, "k8s.node.name") === node);
  const [restored, refused] = [of("node-4"), of("node-5")];
  assert.ok(restored && refused && fences.length === 2);
  assert.equal(attributeOf(restored, "reason"), "NodeRestored");
  assert.deepEqual(refused.status, { code: 2, message: "IdentityMismatch" });
  const states = spans.filter(({ parentSpanId }) => parentSpanId === restored.spanId);
  const names = states.map(({ name }) => name);
  for (const name of ["Resolving", "Verifying", "PoweringOff", "Releasing", "PoweringOn", "Rejoining"])
    assert.ok(names.includes(name), `${name}: ${names.join(" ")}`);
  const off = spans.find(({ name, traceId }) => name === "bmc forceOff" && traceId === restored.traceId);
  assert.equal(states.find(({ spanId }) => spanId === off?.parentSpanId)?.name, "PoweringOff");
  for (const { startTimeUnixNano: start, endTimeUnixNano: end } of spans) assert.ok(BigInt(start) <= BigInt(end));
  assert.ok(!received.includes(password), "a trace has the BMCs' password");
}

async function ironfence(command: string, options: CliOptions = {}): Promise<CliResult> {
  const result = await cli([...command.split(" "), "--kubeconfig", world.kubeconfigPath], options);
  printed += result.out + result.err;
  return result;
}

function patchTarget(name: string, spec: object): void {
  world.server.collection<FencingTarget>(FENCING_TARGETS).mergePatch({ namespace: NAMESPACE, name }, { spec });
}

function isReady(name: string): boolean {
  const node = world.server.collection<Node>(NODES).get({ name });
  return node?.status.conditions?.some(({ type, status }) => type === "Ready" && status === "True") ?? false;
}

function orders(name: string): string[] {
  return world.rack.host(name).orders.map(({ type }) => type);
}

function remediations(): BareMetalRemediation[] {
  return [...world.server.collection<BareMetalRemediation>(BARE_METAL_REMEDIATIONS).values()];
}

async function until(what: string, holds: () => boolean): Promise<void> {
  const endMs = performance.now() + DEADLINE_MS;
  while (!holds()) {
    if (performance.now() > endMs) assert.fail(`not in time: ${what}`);
    await wait(20);
  }
}

/** Runs `work` while the target has this spec, then restores it. */
async function whileTarget(name: string, spec: object, back: object, work: () => Promise<void>): Promise<void> {
  patchTarget(name, spec);
  try {
    await work();
  } finally {
    patchTarget(name, back);
  }
}

async function whilePaused(work: () => Promise<void>): Promise<void> {
  assert.equal((await ironfence("pause --reason rewiring")).code, 0);
  try {
    await work();
  } finally {
    assert.equal((await ironfence("resume")).code, 0);
  }
}

describe("ironfence power --target", () => {
  test("ironfence power --target reads the power by the target's own Secret and certificate", async () => {
    const { code, out } = await ironfence("power status --target node-1 -o json");
    assert.equal(code, 0);
    assert.deepEqual(JSON.parse(out), {
      host: `FencingTarget ${NAMESPACE}/node-1 (node node-1)`,
      state: "On",
      raw: "On",
    });
  });

  test("ironfence power --target does not power off a Ready node unless a person agrees", async () => {
    const inScript = await ironfence("power off --target node-1");
    assert.equal(inScript.code, EXIT_REFUSED);
    assert.match(inScript.err, /node node-1 is Ready.*--yes agrees to it/);
    const denied = await ironfence("power off --target node-1", { answers: ["y"] });
    assert.equal(denied.code, EXIT_REFUSED);
    assert.equal(denied.asked.length, 1);
    assert.deepEqual(orders("node-1"), []);
  });

  test("ironfence power --target powers off, proves it, and does not power a node on that is tainted out-of-service", async () => {
    const off = await ironfence("power off --target node-1 -o json", { answers: ["yes"] });
    assert.equal(off.code, 0, off.err);
    const report = JSON.parse(off.out);
    assert.equal(report.proven, true);
    assert.equal(report.orders[0].state, "Off");
    assert.match(off.err, /the BMC reports: PoweringOff/);
    assert.equal(world.rack.host("node-1").power, "Off");

    const nodes = world.server.collection<Node>(NODES);
    nodes.mergePatch({ name: "node-1" }, { spec: { taints: [OUT_OF_SERVICE] } });
    const refused = await ironfence("power on --target node-1 --yes");
    assert.equal(refused.code, EXIT_REFUSED);
    assert.match(refused.err, /out-of-service/);
    nodes.mergePatch({ name: "node-1" }, { spec: { taints: null } });
    const on = await ironfence("power on --target node-1");
    assert.equal(on.code, 0, on.err);
    assert.deepEqual(orders("node-1"), ["ForceOff", "On"]);
    assert.equal(world.bmcs.get("node-1")?.sessionCount, 0);
  });

  test("ironfence power --target sends nothing to a host that is not the target's", async () => {
    const { systemUUID } = world.rack.host("node-2").spec;
    const other = { identity: { systemUUID: world.rack.host("node-3").spec.systemUUID } };
    for (const [spec, words] of [
      [{ identity: NOBODY }, /another host answers/],
      [other, /ambiguous/],
    ] as const) {
      await whileTarget("node-2", spec, { identity: { systemUUID } }, async () => {
        for (const command of ["off", "on", "cycle"]) {
          const { code, err } = await ironfence(`power ${command} --target node-2 --yes`);
          assert.equal(code, EXIT_REFUSED);
          assert.match(err, words);
        }
      });
    }
    assert.deepEqual(orders("node-2"), []);
  });

  test("ironfence power --target sends nothing to a host in maintenance, nor to one that a remediation owns", async () => {
    await whileTarget("node-2", { maintenance: true }, { maintenance: false }, async () => {
      const { code, err } = await ironfence("power on --target node-2 --yes");
      assert.equal(code, EXIT_REFUSED);
      assert.match(err, /in maintenance/);
    });
    const owner = world.server.collection<BareMetalRemediation>(BARE_METAL_REMEDIATIONS).create({
      metadata: { namespace: NAMESPACE, name: "node-2" },
      spec: {},
    });
    const key = { namespace: NAMESPACE, name: "node-2" };
    const { uid } = owner.metadata;
    const status = {
      owner: { uid, kind: owner.kind, namespace: NAMESPACE, name: "node-2", since: "2026-01-01T00:00:00Z" },
    };
    world.server.collection(FENCING_TARGETS).mergePatch(key, { status }, "status");
    const busy = await ironfence("power cycle --target node-2 --yes");
    assert.equal(busy.code, EXIT_REFUSED);
    assert.match(busy.err, /BareMetalRemediation ironfence-system\/node-2 owns the host/);
    const fence = await ironfence("fence --node node-2 --yes");
    assert.equal(fence.code, EXIT_REFUSED);
    assert.match(fence.err, /already remediates it/);
    // The owner is deleted, so it no longer owns the target.
    world.server.collection(BARE_METAL_REMEDIATIONS).delete(key);
    assert.deepEqual(orders("node-2"), []);
    const cycled = await ironfence("power cycle --target node-2 --yes");
    assert.equal(cycled.code, 0, cycled.err);
    assert.deepEqual(orders("node-2"), ["ForceOff", "On"]);
    assert.match(cycled.out, /off: proven by two fresh reads.*\n.*on: read back/);
  });

  test("ironfence power --target asks before it powers a host off while the stop switch is on", async () => {
    await whilePaused(async () => {
      const { code, asked, err } = await ironfence("power off --target node-3", { answers: ["no"] });
      assert.equal(code, EXIT_REFUSED);
      assert.equal(asked.length, 1);
      assert.match(err, /! ironfence is paused .*rewiring/);
    });
    assert.deepEqual(orders("node-3"), []);
  });

  test("ironfence power --target asks during a pause that has an end, though this machine's clock is past it", async () => {
    assert.equal((await ironfence("pause --for 30m --reason rewiring")).code, 0);
    try {
      const { code, err } = await ironfence("power off --target node-3", { answers: ["no"], aheadMs: 2_400_000 });
      assert.equal(code, EXIT_REFUSED);
      assert.match(err, /! ironfence is paused .*rewiring/);
    } finally {
      assert.equal((await ironfence("resume")).code, 0);
    }
    assert.deepEqual(orders("node-3"), []);
  });

  test("ironfence power --target accepts no credentials together with a target, and names what is missing", async () => {
    const { code, err } = await ironfence("power status --target node-1 --username admin");
    assert.equal(code, EXIT_USAGE);
    assert.match(err, /^ironfence: \[CommandLineInvalid\] --username: a --target has credentials/);
    const none = await ironfence("power status --target absent");
    assert.equal(none.code, EXIT_REFUSED);
    assert.match(none.err, /there is no FencingTarget absent in namespace/);
  });
});

describe("ironfence probe --target", () => {
  test("ironfence probe --target goes through every check and changes nothing", async () => {
    const { code, out, err } = await ironfence("probe --target node-3 -o json");
    assert.equal(code, 0, err);
    const { ok, checks } = JSON.parse(out);
    assert.equal(ok, true);
    const names = checks.map(({ check }: { check: string }) => check);
    assert.deepEqual(names.slice(0, 2), ["node", "target"]);
    assert.equal(names.at(-1), "identity of level 1");
    assert.ok(
      checks.every(({ result }: { result: string }) => result === "ok"),
      out,
    );
    assert.deepEqual(orders("node-3"), []);
    assert.equal(world.bmcs.get("node-3")?.sessionCount, 0);
  });

  test("ironfence probe --target reports why it refuses: a Secret that is missing, a host of another owner", async () => {
    const [device] =
      world.server.collection<FencingTarget>(FENCING_TARGETS).get({ namespace: NAMESPACE, name: "node-3" })?.spec
        .devices ?? [];
    const missing = { devices: [{ ...device, credentialsSecretRef: { name: "nothing" } }] };
    await whileTarget("node-3", missing, { devices: [device] }, async () => {
      const { code, out } = await ironfence("probe --target node-3");
      assert.equal(code, EXIT_FAILURE);
      assert.match(out, /credentials +failed +Secret ironfence-system\/nothing .* does not exist/);
    });
    const url = world.bmcs.get("node-4")?.url.replace(/^https/, "redfish+https");
    const swapped = { devices: [{ ...device, address: url }] };
    await whileTarget("node-3", swapped, { devices: [device] }, async () => {
      const { code, out } = await ironfence("probe --target node-3");
      assert.equal(code, EXIT_FAILURE);
      assert.match(out, /identity of level 1 +failed +another host answers/);
    });
  });
});

describe("ironfence probe --host", () => {
  const hosts = () => world.server.collection(BARE_METAL_HOSTS);
  const key = { namespace: NAMESPACE, name: "host-3" };

  before(async () => {
    for (const crd of (await readForeignCrds()).filter((text) => text.includes("baremetalhosts.metal3.io"))) {
      world.server.load(crd);
    }
    const address = world.bmcs.get("node-3")?.url.replace(/^https/, "redfish+https");
    const bmc = { address, credentialsName: "bmc-credentials", disableCertificateVerification: true };
    hosts().create({ metadata: key, spec: { online: true, bmc } });
    hosts().mergePatch(key, { status: PROVISIONED_STATUS }, "status");
  });

  test("ironfence probe --host goes through every check of a BareMetalHost by its own Secret, and changes nothing", async () => {
    const { code, out, err } = await ironfence(`probe --host ${NAMESPACE}/host-3 -o json`);
    assert.equal(code, 0, err + out);
    const { checks } = JSON.parse(out) as { checks: { check: string; result: string }[] };
    assert.equal(checks[0]?.check, "host");
    assert.ok(checks.some(({ check, result }) => check === "login" && result === "ok"));
    assert.deepEqual(checks.at(-1)?.check, "identity of the host");
    assert.deepEqual(orders("node-3"), []);
    assert.equal(world.bmcs.get("node-3")?.sessionCount, 0);
  });

  test("ironfence probe --host says why not: switched off, another machine, no Secret, no host", async () => {
    hosts().mergePatch(key, { spec: { online: false } });
    const serial = { hardware: { systemVendor: { serialNumber: "OTHER" } } };
    hosts().mergePatch(key, { status: serial }, "status");
    const { code, out } = await ironfence(`probe --host ${NAMESPACE}/host-3`);
    assert.equal(code, EXIT_FAILURE);
    assert.match(out, /host +failed +BareMetalHost ironfence-system\/host-3 has spec.online: false/);
    assert.match(out, /identity of the host +failed +another host answers/);
    hosts().mergePatch(key, { spec: { bmc: { credentialsName: "nothing" } } });
    assert.match((await ironfence(`probe --host ${NAMESPACE}/host-3`)).out, /credentials +failed +Secret .*nothing/);
    const none = await ironfence(`probe --host ${NAMESPACE}/absent`);
    assert.deepEqual(
      [none.code, none.err],
      [
        EXIT_REFUSED,
        `ironfence: [ObjectNotFound] there is no BareMetalHost ${NAMESPACE}/absent: kubectl get bmh -A lists them (docs/reference/errors.md#objectnotfound)\n`,
      ],
    );
  });

  test("ironfence probe --host refuses what cannot go with it", async () => {
    for (const more of ["https://bmc", "--target node-3", "--username admin"]) {
      assert.equal((await ironfence(`probe --host ${NAMESPACE}/host-3 ${more}`)).code, EXIT_USAGE, more);
    }
    assert.equal((await ironfence("probe --host host-3")).code, EXIT_USAGE);
  });
});

describe("ironfence fence", () => {
  test("ironfence fence shows with --dry-run what would be done, and creates nothing", async () => {
    const { code, out, err } = await ironfence("fence --node node-4 --dry-run -o json");
    assert.equal(code, 0, err);
    const plan = JSON.parse(out);
    assert.equal(plan.wouldFence, true);
    assert.deepEqual(plan.node, { name: "node-4", ready: true, controlPlane: false });
    assert.match(plan.identity, /as spec identity says/);
    assert.match(plan.power, /^On /);
    assert.deepEqual(plan.concerns, ["node node-4 is Ready: its pods run, and end without a graceful shutdown"]);
    assert.match((await ironfence("fence --node node-4 --dry-run")).out, /result +would be fenced/);
    await whileTarget("node-4", { maintenance: true }, { maintenance: false }, async () => {
      const refused = await ironfence("fence --node node-4 --dry-run");
      assert.equal(refused.code, EXIT_REFUSED);
      assert.match(refused.out, /in the way +the target is in maintenance/);
    });
    assert.deepEqual(remediations(), []);
    assert.deepEqual(orders("node-4"), []);
  });

  test("ironfence fence creates nothing while paused, for a node that is not there, or that a person has not given up", async () => {
    await whilePaused(async () => {
      const { code, err } = await ironfence("fence --node node-4 --yes");
      assert.equal(code, EXIT_REFUSED);
      assert.match(err, /paused .*rewiring.*Nothing was created/);
    });
    assert.match((await ironfence("fence --node absent --yes")).err, /there is no node absent/);
    assert.equal((await ironfence("fence --node node-4")).code, EXIT_REFUSED);
    assert.equal((await ironfence("fence --node node-4", { answers: ["nope"] })).code, EXIT_REFUSED);
    assert.equal((await ironfence("fence")).code, EXIT_USAGE);
    assert.deepEqual(remediations(), []);
  });

  test("ironfence fence makes the agent fence the host, reports each step, and reports how it ended", async (t) => {
    const stop = new AbortController();
    const log = join(folder, "decisions.jsonl");
    const collector = await startCollector();
    t.after(() => collector.stop());
    const agent = runAgent(
      {
        kubeconfig: world.kubeconfigPath,
        context: undefined,
        namespace: NAMESPACE,
        components: new Set(["remediator"]),
        families: new Set(),
        observe: false,
        leaderElect: false,
        ownCluster: undefined,
        recordDecisions: log,
        otlpEndpoint: collector.endpoint,
        allowLocalWorkloadClusters: false,
        leaseName: "ironfence",
        nodeLeaseNamespace: "medik8s-leases",
        maxHosts: 10,
        maxHostsPerCluster: 10,
        maxHostsPerZone: 10,
        zoneLabel: "topology.kubernetes.io/zone",
        externalEtcd: new Set<string>(),
        nodeName: undefined,
        metricsBindAddress: "off",
        metricsCertPath: undefined,
        statusBindAddress: "off",
        statusCertPath: "",
        healthProbeBindAddress: "off",
        kdumpBindAddress: "off",
        logLevel: "error",
        instance: "test",
      },
      {
        clock: systemClock,
        random: systemRandom,
        logger: createLogger("silent"),
        openDevice: openDeviceOn(systemClock),
        memory: systemMemory(),
      },
      stop.signal,
    );
    t.after(async () => {
      stop.abort(new Error("the test is over"));
      await agent;
    });

    world.rack.host("node-4").hang();
    await until("node-4 is not Ready", () => !isReady("node-4"));
    // There is no objection, so the command does not ask the user.
    const back = await ironfence("fence --node node-4 --timeout 30s -o json");
    assert.equal(back.code, 0, back.err);
    const report = JSON.parse(back.out);
    assert.equal(report.succeeded, true);
    assert.equal(report.reason, "NodeRestored");
    assert.match(back.err, /PoweringOff: .*\n/);
    assert.ok(report.timeline.length > 5);
    assert.deepEqual(orders("node-4"), ["ForceOff", "On"]);
    await until("the finished remediation is gone", () => remediations().length === 0);

    // The agent also checks the identity of the host.
    const { systemUUID } = world.rack.host("node-5").spec;
    await whileTarget("node-5", { identity: NOBODY }, { identity: { systemUUID } }, async () => {
      const failed = await ironfence("fence --node node-5 --timeout 30s", { answers: ["yes"] });
      assert.equal(failed.code, EXIT_FAILURE);
      assert.match(failed.err, /node node-5: IdentityMismatch.*is kept so that you can read it/);
    });
    assert.equal(remediations().length, 1);
    assert.deepEqual(orders("node-5"), []);

    // The decisions of the agent can be replayed from its log.
    stop.abort(new Error("the agent is asked to stop"));
    await agent;
    assertTraces(collector);
    const replayed = await cli(["replay", log]);
    assert.equal(replayed.code, 0, replayed.err);
    assert.match(replayed.out, /^\d{2,} decisions from \d{2,} events, in \d+ sessions\nevery decision is the same\n$/);
    const recorded = await readFile(log, "utf8");
    const secret = world.server
      .collection<SecretObject>(SECRETS)
      .get({ namespace: NAMESPACE, name: "bmc-credentials" });
    const passwords = Object.values(secret?.data ?? {}).map((value) => Buffer.from(value, "base64").toString());
    assert.ok(passwords.length > 0);
    for (const password of passwords) assert.ok(!recorded.includes(password), "the log holds a secret");
    const changed = recorded.replace('"do":"forceOff"', '"do":"powerOn"');
    await writeFile(log, changed);
    const different = await cli(["replay", log]);
    assert.equal(different.code, EXIT_FAILURE);
    assert.match(different.err, /line \d+, BareMetalRemediation .*decides differently/);
  });

  test("ironfence fence leaves the remediation in progress if the user ends the wait", async () => {
    const stop = new AbortController();
    const left = ironfence("fence --node node-6 --yes", {
      signal: stop.signal,
      onNote: (line) => {
        if (line.includes("is created")) stop.abort(new Error("stopped by SIGINT"));
      },
    });
    const { code, err } = await left;
    assert.equal(code, EXIT_FAILURE);
    assert.match(err, /continues; delete it to have it undone/);
    assert.ok(remediations().some(({ metadata }) => metadata.name.startsWith("node-6-by-hand-")));
  });
});

describe("ironfence bmc reset --target", () => {
  const key = { namespace: NAMESPACE, name: "node-2" };
  const restartedMs = (): number => world.rack.bmc("node-2").lastRestartMs;
  let beforeMs: number;

  before(() => {
    beforeMs = restartedMs();
  });

  async function assertRefused(words: RegExp, options: CliOptions = {}, yes = " --yes"): Promise<void> {
    const { code, out, err } = await ironfence(`bmc reset --target node-2${yes}`, options);
    assert.equal(code, EXIT_REFUSED, err);
    assert.match(err, words);
    assert.equal(out, "");
    assert.equal(restartedMs(), beforeMs, "nothing was sent");
    assert.equal(world.bmcs.get("node-2")?.sessionCount, 0);
  }

  test("ironfence bmc reset --target sends nothing unless a person agrees", async () => {
    await assertRefused(/restart the BMC of FencingTarget .*--yes agrees to it/s, {}, "");
    await assertRefused(/the BMC does not answer for some minutes/, { answers: ["y"] }, "");
  });

  test("ironfence bmc reset --target sends nothing to a BMC whose host is not the target's, or is another target's as well", async () => {
    const { systemUUID } = world.rack.host("node-2").spec;
    const shared = { identity: { systemUUID: world.rack.host("node-3").spec.systemUUID } };
    for (const [spec, words] of [
      [{ identity: NOBODY }, /nothing is sent: another host answers/],
      [shared, /nothing is sent, since the target is ambiguous/],
    ] as const) {
      await whileTarget("node-2", spec, { identity: { systemUUID } }, () => assertRefused(words));
    }
  });

  test("ironfence bmc reset --target sends nothing to a host in maintenance, nor to one that a remediation owns", async () => {
    await whileTarget("node-2", { maintenance: true }, { maintenance: false }, () => assertRefused(/in maintenance/));
    const { kind, metadata } = world.server
      .collection<BareMetalRemediation>(BARE_METAL_REMEDIATIONS)
      .create({ metadata: key, spec: {} });
    const owner = { uid: metadata.uid, kind, ...key, since: "2026-01-01T00:00:00Z" };
    world.server.collection(FENCING_TARGETS).mergePatch(key, { status: { owner } }, "status");
    await assertRefused(/BareMetalRemediation ironfence-system\/node-2 owns the host/);
    world.server.collection(BARE_METAL_REMEDIATIONS).delete(key);
  });

  test("ironfence bmc reset --target looks again after the person has answered", async () => {
    await whileTarget("node-2", { maintenance: false }, { maintenance: false }, () =>
      assertRefused(
        /in maintenance/,
        {
          answers: ["yes"],
          onNote: (line) => {
            if (line.includes("for some minutes")) patchTarget("node-2", { maintenance: true });
          },
        },
        "",
      ),
    );
  });

  test("ironfence bmc reset --target accepts one host selection, no credentials together with a target, and only a target that exists", async () => {
    for (const [inputs, expected, words] of [
      ["", EXIT_USAGE, /give either the ADDRESS of a BMC or --target NAME/],
      ["https://bmc --target node-2", EXIT_USAGE, /give either the ADDRESS of a BMC or --target NAME/],
      ["--target node-2 --username admin", EXIT_USAGE, /--username: a --target has credentials/],
      ["--target absent", EXIT_REFUSED, /there is no FencingTarget absent in namespace/],
    ] as const) {
      const { code, err } = await ironfence(`bmc reset --yes ${inputs}`.trimEnd());
      assert.equal(code, expected, inputs);
      assert.match(err, words);
    }
    assert.equal(restartedMs(), beforeMs);
  });

  test("ironfence bmc reset --target sends nothing while ironfence is paused: a host that is being fenced may depend on that BMC", async () => {
    await whilePaused(() =>
      assertRefused(/nothing is sent, since ironfence is paused .*rewiring.*: end the pause with ironfence resume/s),
    );
  });

  test("ironfence bmc reset --target restarts the BMC of the target's own host by the target's Secret, and leaves the host on", async () => {
    const sent = orders("node-2").length;
    const { code, out, err } = await ironfence("bmc reset --target node-2", { answers: ["yes"] });
    assert.equal(code, 0, err);
    assert.match(out, /the restart was ordered/);
    assert.ok(restartedMs() > beforeMs);
    assert.equal(world.rack.host("node-2").power, "On");
    assert.equal(orders("node-2").length, sent);
  });
});
