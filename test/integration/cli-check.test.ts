import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer } from "node:net";
import type { AddressInfo, Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { startKubeMock } from "../../hack/kube-mock/kube-mock.ts";
import type { KubeMock } from "../../hack/kube-mock/kube-mock.ts";
import { NAMESPACES } from "../../hack/kube-mock/controllers/cluster-types.ts";
import { DEPLOYMENTS } from "../../hack/kube-mock/kinds/plain.ts";
import { readCrds } from "../../hack/lib/crds.ts";
import { createCertificateAuthority } from "../../hack/lib/pki.ts";
import { createRack } from "../../hack/rack/rack.ts";
import type { Rack } from "../../hack/rack/rack.ts";
import { startRedfishMock } from "../../hack/redfish-mock/server.ts";
import type { RedfishMock } from "../../hack/redfish-mock/server.ts";
import { ALLOWED_ADDRESSES } from "../../src/api/names/annotations.ts";
import { BARE_METAL_REMEDIATION_TEMPLATES } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { CONFIG_MAPS, NODES, SECRETS } from "../../src/api/kubernetes/core-types.ts";
import type { FencingTarget } from "../../src/api/ironfence/fencing-target.ts";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
import type { CheckResult } from "../../src/cli/check/check.ts";
import { openDeviceOn } from "../lib/open-device.ts";
import { createTargetProbes } from "../../src/cli/check/read/live-probes.ts";
import { EXIT_FAILURE, EXIT_USAGE } from "../../src/cli/errors/failures.ts";
import { readOverview } from "../../src/cli/status/objects/read.ts";
import { createKubeRuntime } from "../../src/kube/connection/create-runtime.ts";
import { LEASE } from "../../src/kube/lease/lease-record.ts";
import { loadCluster } from "../../src/kube/connection/credentials/credentials.ts";
import { createHttpTransport } from "../../src/kube/connection/transport/http-transport.ts";
import { Secret } from "../../src/runtime/secret.ts";
import { systemClock, systemRandom } from "../../src/runtime/system.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { installHealthy, NAMESPACE, NODE_NAMES, setTargetReady } from "./check-fixture.ts";
import { cli } from "./cli-fixture.ts";
import { startIpmiWorld } from "./ipmi-fixture.ts";
import type { IpmiWorld } from "./ipmi-fixture.ts";
import { startSnmpWorld } from "./snmp-fixture.ts";
import type { CliOptions, CliResult } from "./cli-fixture.ts";
import { readyOf } from "../../src/remediator/hosts/fencing-target/target-store.ts";

// `ironfence check` over HTTPS, as users run it.

const DEPS = { clock: systemClock, random: systemRandom };
const PASSWORD = "correct-horse";

describe("ironfence check", () => {
  let folder: string;
  let kube: KubeMock;
  let kubeconfig: string;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "ironfence-check-"));
    kube = await startKubeMock({ ...DEPS, tls: true, token: "let-me-in" });
    kubeconfig = join(folder, "kubeconfig");
    writeFileSync(kubeconfig, kube.kubeconfig);
    await installHealthy(kube.server);
  });
  after(async () => {
    await kube.close();
    rmSync(folder, { recursive: true });
  });

  const check = (flags: readonly string[] = [], options: CliOptions = {}): Promise<CliResult> =>
    cli(["check", ...flags, "--kubeconfig", kubeconfig], options);
  const results = async (...flags: string[]): Promise<Map<string, CheckResult>> => {
    const { out } = await check([...flags, "-o", "json"]);
    const { checks } = JSON.parse(out) as { checks: CheckResult[] };
    return new Map(checks.map((result) => [result.id, result]));
  };

  it("ironfence check passes every line if each node could be fenced, and writes only access reviews", async () => {
    const writes: string[] = [];
    const stop = kube.server.onRequest(({ method, path }) => {
      if (method !== "GET") writes.push(path);
    });
    const { out, err, code } = await check();
    stop();
    assert.equal(code, 0, out + err);
    const lines = out.split("\n").filter((line) => /^\S/.test(line) && !/^[A-Z]/.test(line));
    assert.ok(lines.length > 20, out);
    for (const line of lines) assert.match(line, /^√ /);
    assert.ok(writes.length > 40);
    for (const path of writes) assert.match(path, /subjectaccessreviews$/);
  });

  it("ironfence check passes before an installation as well, and warns about BMCs that it cannot reach from here", async () => {
    const { out, code } = await check(["--pre"]);
    assert.equal(code, 0, out);
    assert.match(out, /^√ the API server enforces admission policies: /m);
    assert.match(out, /^√ you may install everything .*: you have all \d+ permissions/m);
    assert.match(
      out,
      /^ {4}‼ 3 of 3 BMCs do not answer: FencingTarget ironfence-system\/worker-1, redfish:\/\/127\.0\.0\.1:1: .*ECONNREFUSED/m,
    );
    assert.equal(
      (await check(["--pre", "--fail-on", "warning"])).code,
      EXIT_FAILURE,
      "warnings fail with --fail-on warning",
    );
    assert.equal((await check(["--pre", "--live"])).code, EXIT_USAGE);
  });

  it("ironfence check exits with 1, and shows what was found, what to do, and the page", async () => {
    setTargetReady(kube.server, "worker-2", "False", "AuthenticationFailed", "the BMC refused user or password");
    const { out, err, code } = await check();
    assert.equal(code, EXIT_FAILURE);
    assert.equal(
      err,
      "ironfence: [ChecksFailed] these checks did not pass: fencing-targets, could-fence: the report says how to fix each (docs/reference/errors.md#checksfailed)\n",
    );
    const failing = out.slice(out.indexOf("× the host of every")).split("\n").slice(0, 4);
    assert.match(out, /× no: AuthenticationFailed \(1\): worker-2: the BMC refused user or password/);
    assert.deepEqual(failing, [
      "× the host of every FencingTarget can be powered off",
      "    × AuthenticationFailed: ironfence-system/worker-2: the BMC refused user or password",
      "      see docs/reference/target-reasons.md#authenticationfailed",
      "    see docs/reference/checks.md#fencing-targets",
    ]);
    setTargetReady(kube.server, "worker-2", "True", "Usable", "the host can be fenced");
    assert.equal((await check()).code, 0);
  });

  it("ironfence check finds a template that was deleted before any agent has noticed, and a pause", async () => {
    const templates = kube.server.collection(BARE_METAL_REMEDIATION_TEMPLATES);
    const key = { namespace: NAMESPACE, name: "reboot" };
    templates.delete(key);
    kube.server
      .collection(CONFIG_MAPS)
      .create({ metadata: { namespace: NAMESPACE, name: "ironfence-pause" }, data: { paused: "true" } });
    const found = await results();
    assert.match(
      found.get("templates")?.findings[0]?.message ?? "",
      /reboot of NodeHealthCheck workers: there is no such/,
    );
    assert.equal(found.get("pause")?.level, "warning");
    templates.create({ metadata: key, spec: { template: { spec: {} } } });
    assert.equal((await check()).code, 0, "a pause alone fails no check");
    assert.equal((await check(["--fail-on", "warning"])).code, EXIT_FAILURE);
    kube.server.collection(CONFIG_MAPS).delete({ namespace: NAMESPACE, name: "ironfence-pause" });
    assert.equal((await check()).code, 0);
  });

  for (const [resource, id] of [
    ["deployments", "replicas"],
    ["subjectaccessreviews", "agent-permissions"],
    ["customresourcedefinitions", "custom-resources"],
    ["validatingadmissionpolicies", "admission-policies"],
    ["leases", "leader"],
    ["nodes", "leftovers"],
    ["fencingtargets", "fencing-targets"],
    ["baremetalremediations", "remediations"],
    ["nodehealthchecks", "health-checks"],
    ["baremetalremediationtemplates", "templates"],
    ["configmaps", "pause"],
  ]) {
    it(`ironfence check says which permission is missing if ${resource} may not be read, and does not pass the check`, async () => {
      const match = { resource: resource ?? "", verbs: ["list", "get", "create"] as const };
      const give = kube.server.faults.inject({ match, times: Infinity, action: { kind: "status", status: 403 } });
      const found = await results();
      give();
      assert.equal(found.get(id ?? "")?.level, "warning");
      assert.match(found.get(id ?? "")?.findings[0]?.message ?? "", /^cannot be checked: .*403/);
    });
  }

  it("ironfence check waits until the checks pass, and says on the way for which", async () => {
    const deployments = kube.server.collection(DEPLOYMENTS);
    const key = { namespace: NAMESPACE, name: "ironfence" };
    deployments.mergePatch(key, { status: { readyReplicas: 0 } }, "status");
    const waiting = check(["--wait", "30s"]);
    await delay(1_500);
    deployments.mergePatch(key, { status: { readyReplicas: 2 } }, "status");
    const { out, code } = await waiting;
    assert.equal(code, 0, out);
  });

  it("ironfence check ends its waiting with the last report", async () => {
    setTargetReady(kube.server, "worker-2", "False", "Unreachable", "no connection");
    const startMs = performance.now();
    const { out, code } = await check(["--wait", "4s"]);
    assert.equal(code, EXIT_FAILURE);
    assert.ok(performance.now() - startMs < 10_000);
    assert.equal(out.match(/^× the host of every/gm)?.length, 1, "one report, the last");
    setTargetReady(kube.server, "worker-2", "True", "Usable", "the host can be fenced");
  });

  it("ironfence check reports an API server that does not answer, or does not let it in, as a check that failed", async () => {
    const stranger = join(folder, "stranger");
    writeFileSync(stranger, kube.kubeconfig.replace("let-me-in", "not-the-token"));
    const { out, code, err } = await cli(["check", "--kubeconfig", stranger]);
    assert.equal(code, EXIT_FAILURE);
    assert.match(out, /^× the API server answers, in a version that ironfence supports\n {4}× .*401/m);
    assert.doesNotMatch(out + err, /not-the-token/);
    assert.match(out, /renew the credentials/);
  });

  for (const aheadMs of [-600_000, 600_000]) {
    it(`ironfence check passes the leader on a machine whose clock is ${aheadMs / 60_000} minutes ahead, and warns about that`, async () => {
      const leases = kube.server.collection(LEASE);
      const key = { namespace: NAMESPACE, name: "ironfence" };
      const renewTime = new Date().toISOString().replace("Z", "000Z");
      leases.mergePatch(key, { spec: { renewTime, leaseDurationSeconds: 15 } });
      const { out } = await check([], { aheadMs });
      leases.mergePatch(key, { spec: { leaseDurationSeconds: 3_600 } });
      assert.match(out, /^√ an agent leads, and renews its lease: agent-1 leads, and renewed its lease \d s ago$/m);
      assert.match(
        out,
        /^ {4}‼ the clock of this machine is (599|600|601) s (behind|ahead of) that of the API server/m,
      );
    });
  }

  it("ironfence check prints JUnit's XML for a pipeline, and colors on a terminal alone", async () => {
    const { out } = await check(["-o", "junit"]);
    assert.match(
      out,
      /^<\?xml version="1\.0" encoding="UTF-8"\?>\n<testsuites name="ironfence check" tests="\d+" failures="0">\n/,
    );
    assert.ok(!(await check()).out.includes("\u001b"));
    assert.equal((await check(["-o", "xml"])).code, EXIT_USAGE);
    const byVariable = await check([], { env: { IRONFENCE_OUTPUT: "table" } });
    assert.match(byVariable.out, /^Kubernetes API$/m, "the variable is that of every command");
  });
});

describe("ironfence check --live", () => {
  let folder: string;
  let kube: KubeMock;
  let kubeconfig: string;
  let rack: Rack;
  let redfish: RedfishMock;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "ironfence-check-live-"));
    rack = createRack({ ...DEPS, hosts: NODE_NAMES.map((name) => ({ name })) });
    const authority = await createCertificateAuthority(systemClock, "test BMCs");
    const tls = await authority.issue({ commonName: "bmc", ipAddresses: ["127.0.0.1"], usage: "server" });
    redfish = await startRedfishMock({ ...DEPS, rack, tls, username: "fencing", password: new Secret(PASSWORD) });
    kube = await startKubeMock({ ...DEPS, tls: true });
    kubeconfig = join(folder, "kubeconfig");
    writeFileSync(kubeconfig, kube.kubeconfig);
    await installHealthy(kube.server, { device: { tls: { caSecretRef: { name: "bmc" } } } });
    const base64 = (text: string): string => Buffer.from(text).toString("base64");
    kube.server.collection(SECRETS).create({
      metadata: { namespace: NAMESPACE, name: "bmc", annotations: { [ALLOWED_ADDRESSES]: "https://127.0.0.1:*" } },
      data: { username: base64("fencing"), password: base64(PASSWORD), "ca.crt": base64(authority.certPem) },
    });
    for (const { name, spec } of rack.hosts) {
      const address = redfish.url.replace(/^https/, "redfish") + redfish.systemPath(name);
      const { systemUUID } = spec;
      const device = { address, credentialsSecretRef: { name: "bmc" }, tls: { caSecretRef: { name: "bmc" } } };
      const targets = kube.server.collection(FENCING_TARGETS);
      targets.mergePatch({ namespace: NAMESPACE, name }, { spec: { devices: [device], identity: { systemUUID } } });
      const nodeInfo = { status: { nodeInfo: { systemUUID } } };
      kube.server.collection(NODES).mergePatch({ name }, nodeInfo, "status");
    }
  });
  after(async () => {
    await kube.close();
    await redfish.close();
    rack.stop();
    rmSync(folder, { recursive: true });
  });

  const live = (...flags: string[]): Promise<CliResult> =>
    cli(["check", "--live", ...flags, "--kubeconfig", kubeconfig]);

  it("ironfence check --live asks each BMC now, reads its certificate, and believes no older status", async () => {
    setTargetReady(kube.server, "worker-1", "False", "Unreachable", "an hour ago");
    const { out, err, code } = await live();
    assert.equal(code, 0, out + err);
    assert.match(out, /^√ the host of every FencingTarget can be powered off: 3 of 3 can be/m);
    assert.match(out, /^√ the certificates of BMCs are valid for at least 21 days: 3 of 3 that have one$/m);
    setTargetReady(kube.server, "worker-1", "True", "Usable", "the host can be fenced");
  });

  it("ironfence check --live ends in its time though a BMC gives no answer, and fails for the targets that it has not probed", async (t) => {
    const silent = createServer(() => undefined);
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    const { port } = silent.address() as AddressInfo;
    const targets = kube.server.collection<FencingTarget>(FENCING_TARGETS);
    const key = { namespace: NAMESPACE, name: "worker-3" };
    const [device] = targets.get(key)?.spec.devices ?? [];
    t.after(() => {
      targets.mergePatch(key, { spec: { devices: [device] } });
      silent.close();
    });
    targets.mergePatch(key, { spec: { devices: [{ ...device, address: `redfish://127.0.0.1:${port}` }] } });
    const startMs = performance.now();
    const { out, code } = await live("--live-timeout", "2s");
    assert.ok(performance.now() - startMs < 15_000);
    assert.equal(code, EXIT_FAILURE);
    assert.match(out, /^ {4}× NotProbed: ironfence-system\/worker-3: the time for --live was over/m);
    assert.equal((await live("--live-timeout", "soon")).code, EXIT_USAGE);
  });

  it("ironfence check --live finds a password that the BMC refuses now, and sends it once however long it waits", async () => {
    const secrets = kube.server.collection(SECRETS);
    const key = { namespace: NAMESPACE, name: "bmc" };
    secrets.mergePatch(key, { data: { password: Buffer.from("wrong").toString("base64") } });
    const before = redfish.requests.length;
    const { out, code } = await live("--wait", "7s");
    assert.equal(code, EXIT_FAILURE);
    assert.match(out, /^ {4}× AuthenticationFailed \(3\): .*refused user or password/m);
    const logins = redfish.requests
      .slice(before)
      .filter(({ method, path }) => method === "POST" && path.endsWith("/Sessions"));
    assert.equal(logins.length, 1, "one for each BMC");
    secrets.mergePatch(key, { data: { password: Buffer.from(PASSWORD).toString("base64") } });
    assert.equal((await live()).code, 0);
  });

  it("ironfence check --live does not send a refused password again after minutes of waiting, which would lock the account", async () => {
    const secrets = kube.server.collection(SECRETS);
    const key = { namespace: NAMESPACE, name: "bmc" };
    secrets.mergePatch(key, { data: { password: Buffer.from("wrong").toString("base64") } });
    let aheadMs = 0;
    const clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + aheadMs };
    const cluster = await loadCluster({ kubeconfig });
    const transport = createHttpTransport(cluster, { clock });
    const names = { controllerName: "ironfence.io/cli", instance: "cli" };
    const runtime = createKubeRuntime({ ...DEPS, clock, transport, logger: createLogger("silent"), ...names });
    const options = { namespace: NAMESPACE, leaseName: "ironfence", kubeconfig, context: undefined };
    const { signal } = new AbortController();
    const overview = await readOverview(runtime, options, { server: "", source: "" }, signal);
    const probe = createTargetProbes(
      { runtime, openDevice: openDeviceOn(clock) },
      { namespace: NAMESPACE, timeoutMs: 60_000 },
    );
    const before = redfish.requests.length;
    for (let minute = 0; minute < 5; minute += 1) {
      const { targets } = await probe(overview, signal);
      assert.deepEqual(
        new Set(targets.map(({ status }) => readyOf(status)?.reason)),
        new Set(["AuthenticationFailed"]),
      );
      aheadMs += 60_000;
    }
    const logins = redfish.requests
      .slice(before)
      .filter(({ method, path }) => method === "POST" && path.endsWith("/Sessions"));
    assert.equal(logins.length, 1);
    await transport.close();
    secrets.mergePatch(key, { data: { password: Buffer.from(PASSWORD).toString("base64") } });
  });
});

describe("ironfence check --pre --bmc", () => {
  let folder: string;
  let kube: KubeMock;
  let kubeconfig: string;
  let ipmi: IpmiWorld;
  let redfish: RedfishMock;
  const rack = createRack({ ...DEPS, hosts: [{ name: "one" }] });

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "ironfence-check-pre-"));
    kube = await startKubeMock({ ...DEPS, tls: true });
    kubeconfig = join(folder, "kubeconfig");
    writeFileSync(kubeconfig, kube.kubeconfig);
    const authority = await createCertificateAuthority(systemClock, "unknown BMCs");
    const tls = await authority.issue({ commonName: "bmc", ipAddresses: ["127.0.0.1"], usage: "server" });
    redfish = await startRedfishMock({ ...DEPS, rack, tls, username: "fencing", password: new Secret(PASSWORD) });
    ipmi = await startIpmiWorld();
  });
  after(async () => {
    await ipmi[Symbol.asyncDispose]();
    await redfish.close();
    rack.stop();
    await kube.close();
    rmSync(folder, { recursive: true });
  });

  const pre = async (...addresses: string[]): Promise<CliResult & { ports: CheckResult | undefined }> => {
    const bmcs = addresses.flatMap((address) => ["--bmc", address]);
    const result = await cli(["check", "--pre", "-o", "json", ...bmcs, "--kubeconfig", kubeconfig]);
    const { checks } = JSON.parse(result.out || '{"checks":[]}') as { checks: CheckResult[] };
    return { ...result, ports: checks.find(({ id }) => id === "bmc-ports") };
  };

  it("ironfence check --pre warns, and does not pass the ports, if there is no BMC to try", async () => {
    const { code, ports } = await pre();
    assert.equal(code, 0);
    assert.equal(ports?.level, "warning");
    assert.match(ports.findings[0]?.message ?? "", /^no BMC was tried: the cluster has no FencingTarget/);
    assert.match(ports.findings[0]?.hint ?? "", /ironfence check --pre --bmc redfish:/);
  });

  it("ironfence check --pre passes BMCs that answer Redfish, IPMI and SNMPv3, and logs in to none of them", async () => {
    const secure = redfish.url.replace(/^https/, "redfish");
    await using snmp = await startSnmpWorld();
    snmp.mock.addFault({ steps: ["discovery"], action: { type: "loseRequest" }, times: 1 });
    const { code, ports, err } = await pre(
      secure,
      redfish.url,
      ipmi.mock.address,
      `127.0.0.1:${ipmi.mock.port}`,
      `${snmp.mock.address}/1`,
    );
    assert.equal(code, 0, err);
    assert.deepEqual(ports?.findings, [{ level: "ok", message: "5 of 5 BMCs answer" }]);
    assert.deepEqual(snmp.mock.requests, []);
    assert.deepEqual(redfish.requests, []);
    assert.equal(ipmi.mock.sessionCount, 0);
    assert.deepEqual(new Set(ipmi.mock.steps()), new Set(["GetChannelAuthenticationCapabilities"]));
  });

  it("ironfence check --pre fails for each BMC that does not answer, and names its address, the cause and the next step", async (t) => {
    const mute = createServer((socket) => socket.on("error", () => undefined));
    const plain = createServer((socket) => void socket.on("error", () => undefined).end("HTTP/1.0 400 no\r\n\r\n"));
    const deaf = createSocket("udp4");
    deaf.bind(0, "127.0.0.1");
    await once(deaf, "listening");
    for (const server of [mute, plain]) {
      server.listen(0, "127.0.0.1");
      await once(server, "listening");
    }
    t.after(() => {
      mute.close();
      plain.close();
      deaf.close();
    });
    const portOf = (server: Server): number => (server.address() as AddressInfo).port;
    const addresses = {
      mute: `redfish://127.0.0.1:${portOf(mute)}`,
      plain: `redfish://127.0.0.1:${portOf(plain)}/redfish/v1/Systems/1`,
      refusing: "https://127.0.0.1:1",
      deaf: `ipmi://127.0.0.1:${deaf.address().port}`,
      nameless: "redfish://bmc-1.invalid",
      pdu: `snmp://127.0.0.1:${deaf.address().port}/7`,
      closed: "snmp://127.0.0.1:1/7",
    };
    const startMs = performance.now();
    const { code, err, ports } = await pre(...Object.values(addresses), redfish.url);
    assert.ok(performance.now() - startMs < 9_000, "all at once, and each within 5 s");
    assert.equal(code, EXIT_FAILURE);
    assert.match(err, /these checks did not pass: bmc-ports/);
    assert.equal(ports?.level, "failed");
    const found = ports.findings.map(({ message, hint }) => `${message} → ${hint}`);
    const one = (address: string): string => found.find((text) => text.includes(address)) ?? "";
    assert.match(one(addresses.mute), /: no answer within 5 s, .* → check whether Redfish is enabled on this port/);
    assert.match(one(addresses.plain), /: the TLS handshake failed \(ERR_SSL_\w+\) → check whether Redfish is enabled/);
    assert.match(one(addresses.refusing), /ECONNREFUSED 127\.0\.0\.1:1 → check address, port, cabling and firewall/);
    assert.match(one(addresses.deaf), /the BMC does not answer on UDP port \d+ → enable IPMI over LAN/);
    assert.match(one(addresses.pdu), /: no answer of SNMPv3 on UDP port \d+.* → enable SNMPv3 on the PDU/);
    assert.match(one(addresses.closed), /ECONNREFUSED.* → enable SNMPv3 on the PDU/);
    assert.match(one(addresses.nameless), /(ENOTFOUND|EAI_AGAIN) bmc-1\.invalid → correct the name/);
    assert.ok(!found.some((text) => text.includes(redfish.url)), "the BMC that answers is not among them");
  });

  it("ironfence check --pre names the PDUs that it did not try, next to the BMCs that do not answer", async (t) => {
    for (const crd of await readCrds()) kube.server.load(crd);
    kube.server.collection(NAMESPACES).create({ metadata: { name: NAMESPACE } });
    const targets = kube.server.collection(FENCING_TARGETS);
    const devices = [
      { address: "snmp://127.0.0.1:1/7", credentialsSecretRef: { name: "pdu" }, snmp: { version: "v2c" as const } },
    ];
    targets.create({ metadata: { name: "one", namespace: NAMESPACE }, spec: { nodeName: "one", devices } });
    t.after(() => targets.delete({ namespace: NAMESPACE, name: "one" }));
    const untried = `1 of 2 BMCs were not tried, since SNMPv2c answers only a login: FencingTarget ${NAMESPACE}/one, snmp://127.0.0.1:1/7`;
    const answering = await pre(redfish.url);
    assert.equal(answering.code, 0);
    assert.deepEqual(
      answering.ports?.findings.map(({ level, message }) => [level, message]),
      [["warning", untried]],
    );
    const { code, ports } = await pre("https://127.0.0.1:1");
    assert.equal(code, EXIT_FAILURE);
    assert.deepEqual(
      ports?.findings.map(({ level, message }) => [level, message.replace(/: connect .*/, "")]),
      [
        ["failed", "1 of 2 BMCs do not answer: https://127.0.0.1:1"],
        ["warning", untried],
      ],
    );
  });

  it("ironfence check --pre refuses an address that no FencingTarget could have, and --bmc without --pre", async () => {
    const withLogin = await pre("redfish://root:hunter2@10.0.0.5");
    assert.equal(withLogin.code, EXIT_USAGE);
    assert.match(withLogin.err, /--bmc: a BMC address must not contain a user/);
    assert.ok(!withLogin.err.includes("hunter2"));
    assert.equal((await pre("ftp://10.0.0.5")).code, EXIT_USAGE);
    const { code, err } = await cli(["check", "--bmc", "ipmi://10.0.0.5", "--kubeconfig", kubeconfig]);
    assert.equal(code, EXIT_USAGE);
    assert.match(err, /--bmc: give --pre as well/);
  });
});
