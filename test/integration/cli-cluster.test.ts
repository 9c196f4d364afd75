import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { NAMESPACES } from "../../hack/kube-mock/controllers/cluster-types.ts";
import { startKubeMock } from "../../hack/kube-mock/kube-mock.ts";
import type { KubeMock } from "../../hack/kube-mock/kube-mock.ts";
import { readCrds } from "../../hack/lib/crds.ts";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { CONFIG_MAPS, NODES } from "../../src/api/kubernetes/core-types.ts";
import type { ConfigMap } from "../../src/api/kubernetes/core.ts";
import type { LeaderLease } from "../../src/kube/lease/lease-record.ts";
import { LEASE } from "../../src/kube/lease/lease-record.ts";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
import { folderOf } from "../../src/api/ironfence/kinds.ts";
import { systemClock, systemRandom } from "../../src/runtime/system.ts";
import { cli } from "./cli-fixture.ts";
import type { CliResult } from "./cli-fixture.ts";

// The commands that read a cluster or use its stop switch, over HTTPS as users run them.

const NAMESPACE = "ironfence-system";

describe("a command on a cluster", () => {
  let folder: string;
  let kube: KubeMock;
  let kubeconfig: string;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "ironfence-cli-"));
    kube = await startKubeMock({ clock: systemClock, random: systemRandom, tls: true, token: "let-me-in" });
    kube.server.collection(NAMESPACES).create({ metadata: { name: NAMESPACE } });
    kubeconfig = join(folder, "kubeconfig");
    writeFileSync(kubeconfig, kube.kubeconfig);
  });
  after(async () => {
    await kube.close();
    rmSync(folder, { recursive: true });
  });

  const ironfence = (...inputs: string[]): Promise<CliResult> => cli([...inputs, "--kubeconfig", kubeconfig]);
  const stopSwitch = (): Record<string, string> | undefined =>
    kube.server.collection<ConfigMap>(CONFIG_MAPS).get({ namespace: NAMESPACE, name: "ironfence-pause" })?.data;

  it("a command on a cluster names the kinds that the cluster does not serve, instead of failing", async () => {
    const { out, code } = await ironfence("status");
    assert.equal(code, 0);
    for (const kind of ["NodeHealthCheck", "BareMetalRemediation", "FencingTarget"]) {
      assert.match(out, new RegExp(`^${kind}: not served by this cluster; install ${folderOf({ kind })}$`, "m"));
    }
    for (const crd of await readCrds()) kube.server.load(crd);
    assert.match((await ironfence("status")).out, /^FencingTarget: none$/m);
  });

  it("a command on a cluster says what to do if the agent's namespace is not there", async () => {
    const { err, code } = await ironfence("pause", "--namespace", "elsewhere");
    assert.equal(code, 1);
    assert.match(
      err,
      /^ironfence: \[APINotFound\] create ConfigMap elsewhere\/.*not found: apply your installation .*, or .*--namespace \(docs[^)]+\)\n$/,
    );
  });

  it("a command on a cluster ends the agent with a code and the next step if it cannot serve its pages", async () => {
    const pages = ["--metrics-bind-address", "127.0.0.1:0", "--health-probe-bind-address", "127.0.0.1:0"];
    const taken = kube.url.replace("https://", "");
    const listening = await ironfence("run", ...pages.with(1, taken));
    assert.equal(listening.code, 1);
    assert.match(
      listening.err,
      /^ironfence: \[ListenFailed\] cannot listen on .*: choose a free address .* \(docs[^)]+#listenfailed\)$/m,
    );
    const held = createSocket("udp4").bind(0, "127.0.0.1");
    await once(held, "listening");
    const kdump = await ironfence("run", ...pages, "--kdump-bind-address", `127.0.0.1:${held.address().port}`);
    held.close();
    assert.match(kdump.err, /^ironfence: \[ListenFailed\] cannot listen on .*: choose a free address /m);
    const secure = await ironfence("run", ...pages, "--metrics-secure", "--metrics-cert-path", join(folder, "none"));
    assert.match(secure.err, /^ironfence: \[CertificateUnusable\] cannot use tls\.crt and tls\.key in .*: mount /m);
    assert.doesNotMatch(listening.err + secure.err, /^ +at /m, "no stack");
  });

  it("a command on a cluster pauses with a reason, which status shows, and resumes, also if another client created the switch", async () => {
    const paused = await ironfence("pause", "--reason", "rack 4 is being rewired");
    assert.equal(paused.code, 0, paused.err);
    assert.match(paused.out, /^no new power-off is sent: paused by .* since .*rack 4 is being rewired\n/);
    assert.match(paused.out, /^a host that is off already is still powered on\n/m);
    const { since, ...rest } = stopSwitch() ?? {};
    assert.deepEqual(rest, { paused: "true", reason: "rack 4 is being rewired", by: "an unknown user" });
    assert.ok(Math.abs(Date.parse(since ?? "") - Date.now()) < 10_000, since);
    assert.match(
      (await ironfence("status")).out,
      /^PAUSED: no new power-off is sent: paused by an unknown user since .*: rack 4 is being rewired$/m,
    );

    assert.equal((await ironfence("resume")).code, 0);
    assert.deepEqual(stopSwitch(), { paused: "false" }, "the reason of the last pause is gone with it");
    assert.doesNotMatch((await ironfence("status")).out, /PAUSED/);

    assert.equal((await ironfence("pause")).code, 0);
    assert.equal(stopSwitch()?.["paused"], "true");
    kube.server.collection(CONFIG_MAPS).delete({ namespace: NAMESPACE, name: "ironfence-pause" });
    assert.equal((await ironfence("resume")).code, 0);
    assert.equal(stopSwitch()?.["paused"], "false");
  });

  it("a command on a cluster pauses for a time, with the name of the user of this machine, and refuses what is not a duration", async () => {
    const paused = await cli(["pause", "--for", "2h", "--kubeconfig", kubeconfig], { env: { USER: "ann" } });
    assert.match(paused.out, /^no new power-off is sent: paused by ann since .* until .*\n/);
    assert.match(paused.out, /^end it sooner with: ironfence resume\n/m);
    const { since = "", until = "" } = stopSwitch() ?? {};
    assert.equal(Date.parse(until) - Date.parse(since), 7_200_000);
    for (const wrong of ["2", "two hours", "-1h", "0s"]) {
      const { code, err, out } = await ironfence("pause", `--for=${wrong}`);
      assert.deepEqual([code, out], [2, ""], wrong);
      assert.match(err, /--for: must be a duration above zero, such as 90s or 5m \(got /);
    }
    await ironfence("resume");
  });

  for (const [aheadMs, where] of [
    [-2_400_000, "behind"],
    [2_400_000, "ahead of"],
  ] as const) {
    it(`a command on a cluster pauses by the API server's clock on a machine that is 40 minutes ${where} it`, async () => {
      const { out, code, err } = await cli(["pause", "--for", "30m", "--kubeconfig", kubeconfig], { aheadMs });
      assert.equal(code, 0, err);
      const { since = "", until = "" } = stopSwitch() ?? {};
      assert.ok(Math.abs(Date.parse(until) - Date.now() - 1_800_000) < 10_000, until);
      assert.ok(Math.abs(Date.parse(since) - Date.now()) < 10_000, since);
      assert.match(out, new RegExp(`^no new power-off is sent: paused by .* until ${until} `));
      const shown = await cli(["status", "--kubeconfig", kubeconfig], { aheadMs });
      assert.match(shown.out, /^PAUSED: no new power-off is sent: /m, "so does status");
      await ironfence("resume");
    });
  }

  it("a command on a cluster fails if the pause has ended before it was written", async () => {
    const match = { method: "PATCH", pathPrefix: `/api/v1/namespaces/${NAMESPACE}/configmaps` };
    kube.server.faults.inject({ match, times: 1, action: { kind: "delay", delayMs: 4_000 } });
    const { out, code, err } = await ironfence("pause", "--for", "1s");
    assert.equal(out, "");
    assert.match(
      err,
      /^ironfence: \[PauseExpired\] the pause has ended already, so power-offs are sent: choose a longer --for \(docs[^)]+\)\n$/,
    );
    assert.equal(code, 1);
    await ironfence("resume");
  });

  it("a command on a cluster pauses although another client writes the ConfigMap at the same moment", async () => {
    kube.server.faults.inject({
      match: { method: "PATCH", pathPrefix: `/api/v1/namespaces/${NAMESPACE}/configmaps` },
      times: 1,
      action: { kind: "status", status: 409 },
    });
    const { code, err } = await ironfence("pause");
    assert.equal(code, 0, err);
    assert.equal(stopSwitch()?.["paused"], "true");
  });

  it("a command on a cluster says in one line that it could not pause, and does not claim that it did", async () => {
    kube.server.faults.inject({ match: { method: "PATCH" }, times: 1, action: { kind: "status", status: 403 } });
    const { code, out, err } = await ironfence("pause");
    assert.equal(code, 1);
    assert.equal(out, "");
    assert.match(err, /^ironfence: \[APIForbidden\] patch ConfigMap [^\n]*403[^\n]*\n$/);
    await ironfence("resume");
  });

  it("a command on a cluster shows a remediation's node, phase and reason, and a target's power, as tables and as JSON", async () => {
    kube.server.collection(FENCING_TARGETS).create({
      metadata: { namespace: NAMESPACE, name: "n1" },
      spec: { nodeName: "n1", devices: [{ address: "redfish://bmc", credentialsSecretRef: { name: "s" } }] },
    });
    kube.server
      .collection(BARE_METAL_REMEDIATIONS)
      .create({ metadata: { namespace: NAMESPACE, name: "n1" }, spec: {} });
    const lastTransitionTime = "2026-01-01T00:00:00Z";
    const condition = (type: string, status: string, reason: string, message: string): object => ({
      type,
      status,
      reason,
      message,
      lastTransitionTime,
    });
    kube.server.collection(FENCING_TARGETS).mergePatch(
      { namespace: NAMESPACE, name: "n1" },
      {
        status: {
          powerState: "On",
          conditions: [condition("Ready", "False", "AuthenticationFailed", "correct the Secret")],
        },
      },
      "status",
    );
    kube.server.collection(BARE_METAL_REMEDIATIONS).mergePatch(
      { namespace: NAMESPACE, name: "n1" },
      {
        status: {
          phase: "Verifying",
          node: { name: "n1" },
          conditions: [
            condition("Processing", "True", "BMCUnreachable", "no answer from the BMC"),
            condition("Succeeded", "Unknown", "Processing", ""),
          ],
        },
      },
      "status",
    );
    const { out } = await ironfence("status");
    assert.match(out, /n1 +n1 +Verifying +Unknown +BMCUnreachable +no answer from the BMC/);
    assert.match(out, /n1 +n1 +On +False +AuthenticationFailed +correct the Secret/);
    const overview = JSON.parse((await ironfence("status", "-o", "json")).out) as {
      stopSwitch: object;
      remediations: { status: { phase: string } }[];
      page: { now: { node: string; reason: string; plug: { safe: boolean } }[]; could: { yes: number } };
    };
    assert.deepEqual(overview.stopSwitch, { paused: false });
    assert.equal(overview.remediations[0]?.status.phase, "Verifying");
    const { now, could } = overview.page;
    assert.deepEqual([now[0]?.node, now[0]?.reason, now[0]?.plug.safe], ["n1", "BMCUnreachable", false]);
    assert.equal(could.yes, 0);
  });

  it("a command on a cluster names each problem, what to do first, and exits with 1 if it is asked to", async () => {
    kube.server.collection(FENCING_TARGETS).create({
      metadata: { namespace: "default", name: "stray" },
      spec: { nodeName: "n2", devices: [{ address: "redfish://bmc", credentialsSecretRef: { name: "s" } }] },
    });
    const { out, code, err } = await ironfence("status", "--problems", "--exit-code");
    assert.equal(code, 1);
    assert.equal(
      err,
      "ironfence: [ProblemsFound] 4 problems keep nodes from being fenced: the lines marked ! say what to do (docs/reference/errors.md#problemsfound)\n",
    );
    const lines = out.trimEnd().split("\n");
    assert.equal(lines[0], "PROBLEMS (4):");
    assert.match(
      lines[1] ?? "",
      /! Agent: NoAgent: no agent has led here .*start one with your installation \(deploy\/kustomize or the Helm chart\)/,
    );
    assert.match(
      lines[2] ?? "",
      /! BareMetalRemediation ironfence-system\/n1: BMCUnreachable: node n1 is not fenced yet/,
    );
    assert.match(lines[3] ?? "", /! FencingTarget ironfence-system\/n1: AuthenticationFailed: /);
    assert.match(
      lines[4] ?? "",
      /! FencingTarget default\/stray: WrongNamespace: it is not used, .* ironfence-system only/,
    );
    const { problems } = JSON.parse((await ironfence("status", "-o", "json")).out) as { problems: object[] };
    assert.equal(problems.length, 4);
    assert.equal((await ironfence("status", "--problems")).code, 0, "only where it is asked to");
    kube.server.collection(FENCING_TARGETS).delete({ namespace: "default", name: "stray" });
  });

  it("a command on a cluster says who leads, which version, since when, what it serves, and that it is silent once its lease has run out", async () => {
    const lease = (renewTime: Date) => ({
      metadata: {
        namespace: NAMESPACE,
        name: "ironfence",
        annotations: {
          "ironfence.io/version": "9.9.9",
          "ironfence.io/components": "detector,remediator",
          "ironfence.io/families": "node-health-check,bare-metal-host",
          "ironfence.io/not-ready": "may not watch baremetalhosts",
        },
      },
      spec: {
        holderIdentity: "agent-1",
        leaseDurationSeconds: 15,
        acquireTime: "2026-01-01T00:00:00.000000Z",
        renewTime: renewTime.toISOString().replace("Z", "000Z"),
      },
    });
    const leases = kube.server.collection<LeaderLease>(LEASE);
    leases.create(lease(new Date()));
    const { out } = await ironfence("status");
    assert.match(
      out,
      /^agent: agent-1 leads since 2026-01-01T00:00:00Z, lease renewed \d s ago, version 9\.9\.9, detector and remediator for node-health-check, bare-metal-host$/m,
    );
    assert.match(out, /^ {2}! Agent agent-1: NotReady: may not watch baremetalhosts$/m);
    // The upgrade to an agent that fences removed the permission to release the lease before the old agent ended.
    const { spec, metadata } = lease(new Date(Date.now() - 90_000));
    leases.create({ ...lease(new Date()), metadata: { ...metadata, name: "ironfence-observe" }, spec });
    assert.match((await ironfence("status")).out, /^agent: agent-1 leads [^\n]*\nobserver: none runs any more$/m);
    leases.mergePatch({ namespace: NAMESPACE, name: "ironfence" }, { spec: lease(new Date(Date.now() - 90_000)).spec });
    const silent = (await ironfence("status")).out;
    assert.match(silent, /^agent: agent-1 SILENT, has led since 2026-01-01T00:00:00Z, lease renewed 9\d s ago/m);
    assert.match(silent, /^observer: agent-1 SILENT, /m, "none has taken its place");
    assert.match(silent, /! Agent agent-1: NoAgent: agent-1 has not renewed its lease for 9\d s, so nothing is fenced/);
    leases.mergePatch({ namespace: NAMESPACE, name: "ironfence" }, { spec: { holderIdentity: "" } });
    assert.match((await ironfence("status")).out, /^agent: NONE: no agent leads /m);
  });

  for (const [resource, line] of [
    ["nodes", "nodes: cannot be shown: "],
    ["nodehealthchecks", "NodeHealthCheck: cannot be shown: "],
    ["baremetalremediations", "BareMetalRemediation: cannot be shown: "],
    ["fencingtargets", "FencingTarget: cannot be shown: "],
    ["leases", "agent: cannot be shown: "],
    ["configmaps", "- Status: Forbidden: "],
  ]) {
    it(`a command on a cluster shows the rest if ${resource} may not be read, and says so`, async () => {
      const match = { resource, verbs: ["list", "get"] as const };
      const give = kube.server.faults.inject({ match, times: Infinity, action: { kind: "status", status: 403 } });
      const { out, code, err } = await ironfence("status");
      give();
      assert.equal(code, 0, err);
      assert.ok(out.includes(line ?? ""), out);
      const sections = ["NodeHealthCheck:", "BareMetalRemediation:", "FencingTarget:"].filter((title) =>
        out.includes(title),
      );
      assert.equal(sections.length, 3);
    });
  }

  it("a command on a cluster prints again when something has changed, and not before, until it is ended", async () => {
    const ending = new AbortController();
    let out = "";
    const watching = cli(["status", "--watch", "--problems", "--kubeconfig", kubeconfig], {
      signal: ending.signal,
      onLine: (line) => (out += line),
    });
    const until = async (what: RegExp): Promise<void> => {
      for (let tries = 0; !what.test(out) && tries < 100; tries++) await new Promise((done) => setTimeout(done, 100));
      assert.match(out, what);
    };
    await until(/AuthenticationFailed/);
    const first = out;
    await new Promise((done) => setTimeout(done, 2_500));
    assert.equal(out, first, "nothing has changed");
    assert.equal((await ironfence("pause")).code, 0);
    await until(/^ {2}! StopSwitch: Paused: no new power-off is sent: .*; end the pause with ironfence resume$/m);
    ending.abort();
    assert.equal((await watching).code, 0);
    await ironfence("resume");
  });

  it("a command on a cluster proposes nodes, targets and health checks of the cluster to a shell", async () => {
    for (const name of ["worker-1", "worker-2", "db-1"]) kube.server.collection(NODES).create({ metadata: { name } });
    const complete = async (...words: string[]): Promise<string[]> => {
      const { out } = await cli(["__complete", ...words], { env: { IRONFENCE_KUBECONFIG: kubeconfig } });
      return out.split("\n").flatMap((line) => line.split("\t")[0] || []);
    };
    assert.deepEqual(await complete("fence", "--node", "worker-"), ["worker-1", "worker-2"]);
    assert.deepEqual(await complete("explain", "node", "d"), ["db-1"]);
    assert.deepEqual(await complete("probe", "--target", ""), ["n1"]);
    assert.deepEqual(await complete("explain", "nhc", "x"), []);
  });

  it("a command on a cluster says in one line that the API server refuses its user", async () => {
    const stranger = join(folder, "stranger");
    writeFileSync(stranger, kube.kubeconfig.replace("let-me-in", "not-the-token"));
    const { code, err } = await cli(["status", "--kubeconfig", stranger]);
    assert.equal(code, 1);
    assert.match(err, /^ironfence: \[APIUnauthorized\] [^\n]*401 Unauthorized[^\n]*\n$/);
    assert.doesNotMatch(err, /not-the-token/);
  });
});
