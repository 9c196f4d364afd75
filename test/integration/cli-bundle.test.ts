import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { gunzipSync } from "node:zlib";
import { parseTar } from "nanotar";
import { createApiServer } from "../../hack/kube-mock/api-server.ts";
import type { ApiServer } from "../../hack/kube-mock/api-server.ts";
import { DEPLOYMENTS } from "../../hack/kube-mock/kinds/plain.ts";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { CONFIG_MAPS, EVENTS, NODES, PODS, SECRETS } from "../../src/api/kubernetes/core-types.ts";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
import { EXIT_FAILURE, EXIT_USAGE } from "../../src/cli/errors/failures.ts";
import { systemClock, systemRandom } from "../../src/runtime/system.ts";
import { installHealthy, NAMESPACE, NODE_NAMES } from "./check-fixture.ts";
import { base64, LOG, PLANTED, secretsIn } from "../lib/planted-secrets.ts";
import { cli } from "./cli-fixture.ts";
import type { CliOptions, CliResult } from "./cli-fixture.ts";

// Runs `ironfence bundle` on an API server with logs and metrics of two replicas, and with secrets in everything that a
// bundle reads.

interface World {
  server: ApiServer;
  url: string;
  /** Method and path of each request. */
  asked: { method: string; path: string }[];
  /** Called before each answer. If it returns a status, that is the answer. */
  refuse: (path: string) => number | "hang" | undefined;
  close(): Promise<void>;
}

/** Starts an API server that also serves logs of pods and proxies requests to them. */
async function startWorld(): Promise<World> {
  const server = createApiServer({ clock: systemClock, random: systemRandom });
  const world: World = { server, url: "", asked: [], refuse: () => undefined, close: () => Promise.resolve() };
  const front = createServer((request, response) => {
    const path = request.url ?? "/";
    const method = request.method ?? "GET";
    world.asked.push({ method, path });
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const refused = world.refuse(path);
      if (refused === "hang") return;
      if (refused !== undefined) {
        response.writeHead(refused).end("refused by the test");
        return;
      }
      if (/\/log\?/.test(path)) {
        const isPrevious = path.includes("previous=true");
        response.end(isPrevious ? `password=${PLANTED.previousLog}\n` : `${LOG.join("\n")}\n`);
        return;
      }
      if (path.endsWith("/proxy/metrics")) {
        response.end(`ironfence_leader 1\nother{url="https://u:${PLANTED.metricsLabel}@x"} 1\n`);
        return;
      }
      const headers = { "user-agent": "test", "content-type": request.headers["content-type"] ?? "" };
      const body = Buffer.concat(chunks).toString();
      server.handle({ method, path, headers, body }, new AbortController().signal).then(
        (answer) => response.writeHead(answer.status, answer.headers).end(answer.kind === "whole" ? answer.body : ""),
        () => response.destroy(),
      );
    });
  });
  await new Promise<void>((resolve) => front.listen(0, "127.0.0.1", resolve));
  const address = front.address();
  world.url = `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`;
  world.close = async () => {
    server.close();
    front.closeAllConnections();
    await new Promise((resolve) => front.close(resolve));
  };
  return world;
}

function plant(server: ApiServer): void {
  const labels = { "app.kubernetes.io/name": "ironfence" };
  for (const [index, name] of ["ironfence-a", "ironfence-b"].entries()) {
    const env = [
      { name: "BMC_PASSWORD", value: PLANTED.podVariable },
      { name: "SOMETHING", value: PLANTED.podVariableUnnamed },
      { name: "POD_NAMESPACE", value: NAMESPACE },
    ];
    const args = ["run", `--password=${PLANTED.podArgument}`];
    const metadata = { namespace: NAMESPACE, name, labels };
    server.collection(PODS).create({ metadata, spec: { containers: [{ name: "ironfence", image: "i", env, args }] } });
    const containerStatuses = [{ name: "ironfence", restartCount: index }];
    server.collection(PODS).mergePatch(metadata, { status: { containerStatuses } }, "status");
  }
  const containers = [{ name: "ironfence", env: [{ name: "TOKEN", value: PLANTED.deploymentVariable }] }];
  const deployment = { spec: { template: { spec: { containers } } } };
  server.collection(DEPLOYMENTS).mergePatch({ namespace: NAMESPACE, name: "ironfence" }, deployment);
  const [first = "", second = ""] = NODE_NAMES;
  server
    .collection(NODES)
    .mergePatch({ name: first }, { metadata: { annotations: { "example.com/join": PLANTED.nodeAnnotation } } });
  const annotations = {
    "example.com/notes": PLANTED.annotationOfOthers,
    "ironfence.io/note": `password is ${PLANTED.conditionMessage}`,
    "kubectl.kubernetes.io/last-applied-configuration": JSON.stringify({ stringData: { x: PLANTED.lastApplied } }),
  };
  const managedFields = [{ manager: "kubectl", fieldsV1: { [PLANTED.managedFields]: {} } }];
  const credentialsSecretRef = { name: "bmc-credentials" };
  server.collection(FENCING_TARGETS).create({
    metadata: Object.assign({ namespace: NAMESPACE, name: "planted", annotations }, { managedFields }),
    spec: {
      nodeName: second,
      devices: [
        { address: `redfish://admin:${PLANTED.addressPassword}@bmc-1.example`, credentialsSecretRef },
        { address: `ipmi://admin:${PLANTED.addressWithSlash}@bmc-2.example`, credentialsSecretRef },
      ],
    },
  });
  const remediation = { namespace: NAMESPACE, name: first };
  server.collection(BARE_METAL_REMEDIATIONS).create({
    metadata: { ...remediation, annotations: { "ironfence.io/token": PLANTED.labelOfMachine } },
    spec: {},
  });
  for (const [index, note] of [
    `cannot reach https://root:${PLANTED.eventUrl}@bmc-3.example/redfish`,
    `sent Authorization: Bearer ${PLANTED.eventBearer}`,
    `the login with password ${PLANTED.eventSentence} failed`,
  ].entries()) {
    const event = {
      regarding: { kind: "Node", name: first },
      eventTime: "2026-11-22T10:00:00.000000Z",
      reportingController: "ironfence.io/agent",
      reportingInstance: "a",
      action: "Probe",
      reason: "Planted",
      type: "Warning",
      note,
    };
    server
      .collection(EVENTS)
      .create(Object.assign(event, { metadata: { namespace: "default", name: `planted-${index}` } }));
  }
  const stop = { namespace: NAMESPACE, name: "ironfence-pause" };
  server
    .collection(CONFIG_MAPS)
    .create({ metadata: stop, data: { reason: `rotated to password: ${PLANTED.pauseReason}` } });
  const kubeconfig = `users:\n- user:\n    token: ${PLANTED.kubeconfigToken}\n`;
  const data = { password: base64(PLANTED.secretData), value: base64(kubeconfig) };
  server.collection(SECRETS).create({ metadata: { namespace: NAMESPACE, name: "bmc-credentials" }, data });
}

describe("ironfence bundle", () => {
  let folder: string;
  let world: World;
  let kubeconfig: string;
  let count = 0;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "ironfence-bundle-"));
    world = await startWorld();
    kubeconfig = join(folder, "kubeconfig");
    const cluster = { name: "c", cluster: { server: world.url } };
    const contexts = [{ name: "c", context: { cluster: "c", user: "u" } }];
    const users = [{ name: "u", user: { token: "let-me-in" } }];
    writeFileSync(kubeconfig, JSON.stringify({ clusters: [cluster], users, contexts, "current-context": "c" }));
    await installHealthy(world.server);
    plant(world.server);
  });
  after(async () => {
    await world.close();
    rmSync(folder, { recursive: true });
  });

  interface Bundle extends CliResult {
    path: string;
    files: Map<string, string>;
  }
  const bundle = async (flags: readonly string[] = [], options: CliOptions = {}): Promise<Bundle> => {
    count += 1;
    const path = join(folder, `bundle-${count}.tar.gz`);
    const result = await cli(["bundle", "-f", path, "--kubeconfig", kubeconfig, ...flags], options);
    const files = new Map<string, string>();
    if (existsSync(path)) {
      // parseTar reads a pooled Buffer from the beginning of its pool, so it gets a copy.
      for (const { name, text } of parseTar(Uint8Array.from(gunzipSync(readFileSync(path)))))
        files.set(name.replace(/^[^/]+\//, ""), text);
    }
    return { ...result, path, files };
  };

  it("ironfence bundle holds what a report needs: versions, status, checks, explanations, objects, events, metrics and logs", async () => {
    const { code, out, err, path, files } = await bundle();
    assert.equal(code, 0, err);
    assert.equal(out, `${path}\n`);
    assert.equal(statSync(path).mode & 0o777, 0o600);
    for (const name of [
      "index.md",
      "versions.json",
      "status.txt",
      "check.json",
      "explain/nodes.jsonl",
      "explain/health-checks.jsonl",
      "kinds/fencingtargets.ironfence.io.jsonl",
      "kinds/baremetalremediations.ironfence.io.jsonl",
      "kinds/nodehealthchecks.remediation.medik8s.io.jsonl",
      "kinds/nodes.jsonl",
      "kinds/pods.jsonl",
      "kinds/pause.jsonl",
      `leases/${NAMESPACE}.jsonl`,
      "events.jsonl",
      "metrics/ironfence-a.txt",
      "metrics/ironfence-b.txt",
      "logs/ironfence-a.log",
      "logs/ironfence-b.log",
      "logs/ironfence-b.previous.log",
    ]) {
      assert.ok((files.get(name) ?? "") !== "", `${name} is missing`);
      if (name !== "index.md") assert.ok(files.get("index.md")?.includes(`| ${name} |`), `the index lacks ${name}`);
    }
    const explained = (files.get("explain/nodes.jsonl") ?? "").trim().split("\n");
    assert.deepEqual(explained.map((line) => (JSON.parse(line) as { node: string }).node).toSorted(), NODE_NAMES);
    assert.match(files.get("logs/ironfence-a.log") ?? "", /"msg":"the agent leads"[^]*the last line, after everything/);
    assert.match(
      files.get("kinds/fencingtargets.ironfence.io.jsonl") ?? "",
      /"credentialsSecretRef":\{"name":"bmc-credentials"\}/,
    );
    assert.match(files.get("index.md") ?? "", /Nothing: every part was read\./);
    assert.match(err, /^\d+\/\d+ status$/m);
  });

  it("ironfence bundle holds none of the secrets that are planted in every place it reads", async () => {
    assert.ok(Object.keys(PLANTED).length >= 30);
    const { files, out, err } = await bundle();
    const texts = [...files, ["output", out] as const, ["notes", err] as const];
    for (const [name, text] of texts) assert.deepEqual(secretsIn(text), [], name);
    assert.match(files.get("index.md") ?? "", /- private key: \d/);
  });

  it("ironfence bundle reads no Secret and writes nothing to the cluster", async () => {
    world.asked.length = 0;
    await bundle();
    assert.ok(world.asked.length > 20);
    for (const { method, path } of world.asked) {
      assert.ok(method === "GET" || path.endsWith("subjectaccessreviews"), `${method} ${path}`);
      assert.doesNotMatch(path, /\/secrets/);
    }
  });

  it("ironfence bundle contains the results of a probe of each BMC if asked to, and none of the secrets that probes read", async () => {
    const { files } = await bundle(["--live"]);
    assert.equal((files.get("live/targets.jsonl") ?? "").trim().split("\n").length, NODE_NAMES.length + 1);
    assert.match(files.get("live/check.txt") ?? "", /SecretNotFound|Ambiguous/);
    for (const [name, text] of files) {
      for (const secret of Object.values(PLANTED)) assert.ok(!text.includes(secret), `${secret} is in ${name}`);
    }
  });

  it("ironfence bundle lists parts that fail, and is written without them", async (t) => {
    t.after(() => (world.refuse = () => undefined));
    world.refuse = (path) => (path.includes("/proxy/") ? 503 : path.includes("/events") ? 403 : undefined);
    const { code, err, files } = await bundle();
    assert.equal(code, 0);
    assert.match(files.get("index.md") ?? "", /- metrics: `GET .*ironfence-a%3A8080\/proxy\/metrics: 503/);
    assert.match(files.get("index.md") ?? "", /- events: /);
    assert.match(err, /^! metrics: /m);
    assert.ok(files.has("logs/ironfence-a.log"));
  });

  it("ironfence bundle ends in its time if the API server stops answering", async (t) => {
    t.after(() => (world.refuse = () => undefined));
    world.refuse = (path) => (path.includes("/log?") ? "hang" : undefined);
    const startMs = systemClock.monotonicMs();
    const { code, files } = await bundle(["--timeout", "3s"]);
    assert.equal(code, 0);
    assert.ok(systemClock.monotonicMs() - startMs < 15_000);
    assert.match(files.get("index.md") ?? "", /- logs: `cut off: logs did not end within \d+ ms/);
    assert.ok(files.has("status.txt"));
  });

  it("ironfence bundle stays within its size: the oldest lines of logs are cut first", async () => {
    const { files } = await bundle(["--max-size", "64Ki"]);
    const bytes = [...files]
      .filter(([name]) => name !== "index.md")
      .reduce((sum, [, text]) => sum + Buffer.byteLength(text), 0);
    assert.ok(bytes <= 64 * 1024, `${bytes} bytes`);
    assert.ok((files.get("check.json") ?? "") !== "");
  });

  it("ironfence bundle -o json prints the path of the file, its contents, what is missing and what was redacted", async (t) => {
    t.after(() => (world.refuse = () => undefined));
    world.refuse = (path) => (path.includes("/proxy/") ? 503 : undefined);
    const { out, path, files } = await bundle(["-o", "json"]);
    const result = JSON.parse(out) as {
      file: string;
      files: { path: string; bytes: number }[];
      missing: { part: string; why: string }[];
      redacted: Record<string, number>;
    };
    assert.equal(result.file, path);
    assert.equal(result.files.length, files.size - 1, "all but the index");
    for (const { path: name, bytes } of result.files) assert.equal(bytes, Buffer.byteLength(files.get(name) ?? ""));
    assert.deepEqual([...new Set(result.missing.map(({ part }) => part))], ["metrics"]);
    assert.ok((result.redacted["private key"] ?? 0) > 0);
    assert.deepEqual(secretsIn(out), []);
  });

  it("ironfence bundle shows a bar on a terminal", async () => {
    const { err } = await bundle([], { answers: [] });
    assert.match(err, /\r█+░* \d+\/\d+ /);
  });

  it("ironfence bundle replaces no file, and says so", async () => {
    const { path } = await bundle();
    const again = await cli(["bundle", "-f", path, "--kubeconfig", kubeconfig]);
    assert.equal(again.code, EXIT_FAILURE);
    assert.match(again.err, /\[BundleNotWritten\] cannot write .*EEXIST/);
  });

  it("ironfence bundle refuses a size or a time that it cannot keep", async () => {
    assert.equal((await bundle(["--max-size", "1Ki"])).code, EXIT_USAGE);
    assert.equal((await bundle(["--timeout", "soon"])).code, EXIT_USAGE);
  });
});
