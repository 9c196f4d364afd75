import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { request as httpRequest } from "node:http";
import { createServer } from "node:https";
import type { Server } from "node:https";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { before, describe, it } from "node:test";
import { Registry } from "prom-client";
import type { CertificateAuthority } from "../../hack/lib/pki.ts";
import { createCertificateAuthority } from "../../hack/lib/pki.ts";
import { createApiServer } from "../../hack/kube-mock/api-server.ts";
import { startKubeMock } from "../../hack/kube-mock/kube-mock.ts";
import { NAMESPACES, NODES, SECRETS } from "../../src/api/kubernetes/core-types.ts";
import type { ClusterConnection, HeldCluster } from "../../src/clusters/workload-clusters.ts";
import { createWorkloadClusters } from "../../src/clusters/workload-clusters.ts";
import { createKubeRuntime } from "../../src/kube/connection/create-runtime.ts";
import { createHttpTransport } from "../../src/kube/connection/transport/http-transport.ts";
import { systemClock, systemRandom } from "../../src/runtime/system.ts";
import { base64, kubeconfigText } from "../unit/clusters/kubeconfig-text.ts";
import { recordingLogger, until } from "../unit/kube/support.ts";

// Workload clusters over real connections: TLS, refused credentials, servers that stop and start.

const NAMESPACE = "default";
const NAMES = { controllerName: "ironfence.io/test", instance: "test" };
const deps = { clock: systemClock, random: systemRandom };

/** The API server of a workload cluster with TLS, which accepts only the current token. */
class WorkloadServer {
  readonly caPem: string;
  token = "first-t0ken";
  requests = 0;
  readonly #authority: CertificateAuthority;
  readonly #upstream: string;
  readonly #sockets = new Set<Duplex>();
  #front: Server | undefined;
  #port = 0;

  constructor(authority: CertificateAuthority, upstream: string) {
    this.caPem = authority.certPem;
    this.#authority = authority;
    this.#upstream = upstream;
  }

  get url(): string {
    return `https://127.0.0.1:${this.#port}`;
  }

  /** Starts to listen, on the same port as before if it was started before. */
  async start(): Promise<void> {
    const { certPem, keyPem } = await this.#authority.issue({
      commonName: "kube-apiserver",
      ipAddresses: ["127.0.0.1"],
      usage: "server",
    });
    const front = createServer({ cert: certPem, key: keyPem }, (request, response) => {
      this.requests += 1;
      if (request.headers.authorization !== `Bearer ${this.token}`) {
        response.writeHead(401, { "content-type": "application/json" });
        response.end(JSON.stringify({ kind: "Status", apiVersion: "v1", status: "Failure", code: 401 }));
        return;
      }
      const { method, headers, url = "/" } = request;
      const forward = httpRequest(`${this.#upstream}${url}`, { method, headers }, (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(response);
        response.flushHeaders();
      });
      forward.on("error", () => response.destroy());
      response.on("close", () => forward.destroy());
      request.pipe(forward);
    });
    // Tracks all connections, because `closeAllConnections` skips those that are still in the TLS handshake.
    front.on("connection", (socket) => {
      this.#sockets.add(socket);
      socket.on("close", () => this.#sockets.delete(socket));
    });
    front.listen(this.#port, "127.0.0.1");
    await once(front, "listening");
    this.#port = (front.address() as AddressInfo).port;
    this.#front = front;
  }

  async stop(): Promise<void> {
    if (this.#front === undefined) return;
    const closed = once(this.#front, "close");
    this.#front.close();
    for (const socket of this.#sockets) socket.destroy();
    this.#front = undefined;
    await closed;
  }

  kubeconfig(user: Record<string, unknown> = { token: this.token }, caPem = this.caPem): string {
    return kubeconfigText({
      cluster: { server: this.url, "certificate-authority-data": base64(caPem) },
      user,
    });
  }
}

interface World {
  workload: WorkloadServer;
  lines: Record<string, unknown>[];
  folder: string;
  /** UID of the namespace kube-system in the workload cluster. */
  uid: string | undefined;
  hold: (name?: string) => HeldCluster;
  writeSecret: (text: string, name?: string) => void;
}

async function startWorld(t: TestContext, authority: CertificateAuthority): Promise<World> {
  const management = createApiServer(deps);
  const mock = await startKubeMock(deps);
  mock.server.collection(NODES).create({ metadata: { name: "n1" }, spec: {} });
  const workload = new WorkloadServer(authority, mock.url);
  await workload.start();
  const { logger, lines } = recordingLogger();
  const runtime = createKubeRuntime({
    ...deps,
    ...NAMES,
    logger,
    transport: management.transport({ client: "agent" }),
  });
  const stop = new AbortController();
  const clusters = createWorkloadClusters(
    {
      runtime,
      registry: new Registry(),
      ...NAMES,
      openTransport: (cluster) => createHttpTransport(cluster, deps),
      mayWrite: () => true,
    },
    stop.signal,
  );
  const folder = await mkdtemp(join(tmpdir(), "ironfence-workload-"));
  t.after(async () => {
    stop.abort(new Error("the test is over"));
    await clusters.settled();
    await workload.stop();
    await mock.close();
    management.close();
    await rm(folder, { recursive: true });
  });
  const secrets = management.collection(SECRETS);
  return {
    workload,
    lines,
    folder,
    uid: mock.server.collection(NAMESPACES).get({ name: "kube-system" })?.metadata.uid,
    hold: (name = "alpha") => clusters.hold({ namespace: NAMESPACE, name }, () => undefined),
    writeSecret: (text, name = "alpha") => {
      const key = { namespace: NAMESPACE, name: `${name}-kubeconfig` };
      const data = { value: base64(text) };
      if (secrets.get(key) === undefined) secrets.create({ metadata: key, data });
      else secrets.mergePatch(key, { data });
    },
  };
}

const isConnected = ({ connection }: HeldCluster): boolean => connection.state === "connected";
const disconnectReason = ({ connection }: HeldCluster): string =>
  connection.state === "disconnected" ? connection.reason : connection.state;
const messageOf = (connection: ClusterConnection): string =>
  connection.state === "disconnected" ? connection.message : "";

describe("a workload cluster over TLS", { timeout: 120_000, concurrency: true }, () => {
  let authority: CertificateAuthority;
  let stranger: CertificateAuthority;

  before(async () => {
    authority = await createCertificateAuthority(systemClock, "workload");
    stranger = await createCertificateAuthority(systemClock, "stranger");
  });

  it("a workload cluster over TLS is worked with through its Secret, also after its API server has restarted", async (t) => {
    const { workload, hold, writeSecret } = await startWorld(t, authority);
    writeSecret(workload.kubeconfig());
    const held = hold();
    await until("it is connected", () => isConnected(held));
    const { connection } = held;
    assert.ok(connection.state === "connected");
    await workload.stop();
    await workload.start();
    const { signal } = new AbortController();
    await until("its view is fed again", () => connection.nodes.problem === undefined);
    const node = await connection.runtime.client.get(NODES, { name: "n1" }, signal);
    assert.equal(node.metadata.name, "n1");
    assert.equal(held.connection, connection, "no listener was notified of a restart");
  });

  it("a workload cluster over TLS takes a rotated token as soon as the server refuses the old one", async (t) => {
    const { workload, hold, writeSecret, lines } = await startWorld(t, authority);
    writeSecret(workload.kubeconfig());
    const held = hold();
    await until("it is connected", () => isConnected(held));
    const { connection } = held;
    assert.ok(connection.state === "connected");
    workload.token = "sec0nd-t0ken";
    writeSecret(workload.kubeconfig());
    const { signal } = new AbortController();
    // No wait is needed: after a refusal, the Secret is read again at once.
    await connection.runtime.client.get(NODES, { name: "n1" }, signal);
    assert.equal(held.connection, connection);
    assert.doesNotMatch(JSON.stringify(lines), /t0ken/);
  });

  it("a workload cluster over TLS says so if the server refuses its credentials, or is another than the kubeconfig means", async (t) => {
    const { workload, hold, writeSecret, lines } = await startWorld(t, authority);
    writeSecret(workload.kubeconfig({ token: "wr0ng-t0ken" }), "refused");
    writeSecret(workload.kubeconfig(undefined, stranger.certPem), "stranger");
    const refused = hold("refused");
    const strange = hold("stranger");
    await until("it is refused", () => disconnectReason(refused) === "Unauthorized");
    await until("its certificate is not believed", () => disconnectReason(strange) === "Unreachable");
    assert.match(messageOf(strange.connection), /certificate/);
    assert.doesNotMatch(JSON.stringify(lines) + messageOf(refused.connection), /t0ken/);
  });

  it("a workload cluster over TLS says which cluster it is", async (t) => {
    const { workload, hold, writeSecret, uid } = await startWorld(t, authority);
    writeSecret(workload.kubeconfig());
    const held = hold();
    await until("it is connected", () => isConnected(held));
    const { connection } = held;
    assert.ok(connection.state === "connected");
    assert.notEqual(uid, undefined);
    assert.equal(connection.uid, uid);
  });

  it("a workload cluster over TLS runs no program and reads no file that a Secret names, and sends nothing to its server", async (t) => {
    const { workload, hold, writeSecret, folder, lines } = await startWorld(t, authority);
    const marker = join(folder, "it-ran");
    const tokenFile = join(folder, "token");
    await writeFile(tokenFile, workload.token);
    const command = "/usr/bin/touch";
    const users = {
      exec: {
        exec: { apiVersion: "client.authentication.k8s.io/v1", command, args: [marker], interactiveMode: "Never" },
      },
      provider: { "auth-provider": { name: "gcp", config: { "cmd-path": command, "cmd-args": marker } } },
      file: { tokenFile },
    };
    const held = Object.entries(users).map(([name, user]) => {
      writeSecret(workload.kubeconfig(user), name);
      return hold(name);
    });
    await until("all are refused", () => held.every((cluster) => disconnectReason(cluster) === "KubeconfigInvalid"));
    assert.equal(existsSync(marker), false);
    assert.equal(workload.requests, 0);
    assert.doesNotMatch(JSON.stringify(lines), new RegExp(`${command}|${folder}|t0ken`));
  });
});
