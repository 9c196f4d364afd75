import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { TLSSocket } from "node:tls";
import { after, before, test } from "node:test";
import { stringify } from "yaml";
import { createCertificateAuthority } from "../../hack/lib/pki.ts";
import type { CertificateAndKey, CertificateAuthority } from "../../hack/lib/pki.ts";
import { loadCluster } from "../../src/kube/connection/credentials/credentials.ts";
import { isKubeError } from "../../src/kube/errors.ts";
import { createHttpTransport } from "../../src/kube/connection/transport/http-transport.ts";
import type { Environment } from "../../src/kube/connection/credentials/cluster-environment.ts";
import type { TransportResponse } from "../../src/kube/transport.ts";
import { systemClock } from "../../src/runtime/system.ts";
import { json, startApiStub } from "../unit/kube/api-stub.ts";
import type { ApiStub } from "../unit/kube/api-stub.ts";
import { VirtualClock } from "../lib/virtual-clock.ts";

const never = new AbortController().signal;
const folder = mkdtempSync(path.join(tmpdir(), "kube-credentials-"));
let ca: CertificateAuthority;
let client: CertificateAndKey;
let stub: ApiStub;

before(async () => {
  ca = await createCertificateAuthority(systemClock, "test CA");
  client = await ca.issue({ commonName: "agent", organizations: ["fencers"], usage: "client" });
  const server = await ca.issue({
    commonName: "api",
    dnsNames: ["api.internal"],
    ipAddresses: ["127.0.0.1"],
    usage: "server",
  });
  stub = await startApiStub(
    ({ headers }, response, raw) => {
      const peer = raw.socket instanceof TLSSocket ? raw.socket.getPeerCertificate() : undefined;
      const { authorization, "impersonate-user": as } = headers;
      json(response, 200, { user: peer?.subject?.CN, authorization, as });
    },
    { cert: server.certPem, key: server.keyPem, ca: ca.certPem, requestCert: true, rejectUnauthorized: false },
  );
});
after(async () => {
  await stub.close();
  rmSync(folder, { recursive: true });
});

const base64 = (text: string): string => Buffer.from(text).toString("base64");
const withCa = (): object => ({ server: stub.url, "certificate-authority-data": base64(ca.certPem) });

function write(name: string, text: string): string {
  const file = path.join(folder, name);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, text);
  return file;
}

function kubeconfig(name: string, cluster: object, user: object, context: object = {}): string {
  const config = {
    apiVersion: "v1",
    kind: "Config",
    "current-context": "main",
    clusters: [{ name: "c", cluster }],
    users: [{ name: "u", user }],
    contexts: [{ name: "main", context: { cluster: "c", user: "u", ...context } }],
  };
  return write(name, stringify(config));
}

const nowhere = (): Environment => ({
  variables: {},
  homeDirectory: path.join(folder, "no-home"),
  serviceAccountDirectory: path.join(folder, "no-service-account"),
});

interface Seen {
  user?: string;
  authorization?: string;
  as?: string;
}

async function whoAmI(file: string, context?: string): Promise<Seen> {
  const access = await loadCluster({ kubeconfig: file, ...(context !== undefined && { context }) }, nowhere());
  const transport = createHttpTransport(access, { clock: systemClock });
  try {
    return seenBy(await transport.send({ method: "GET", path: "/", lane: "api", timeoutMs: 20_000 }, never));
  } finally {
    await transport.close();
  }
}

const seenBy = (answer: TransportResponse): Seen => JSON.parse(answer.body) as Seen;

test("a client certificate is read as data, and from files in the folder of the kubeconfig", async () => {
  const inline = { "client-certificate-data": base64(client.certPem), "client-key-data": base64(client.keyPem) };
  assert.equal((await whoAmI(kubeconfig("mtls", withCa(), inline))).user, "agent");
  write("pki/client.crt", client.certPem);
  write("pki/client.key", client.keyPem);
  write("pki/ca.crt", ca.certPem);
  const cluster = { server: stub.url, "certificate-authority": "pki/ca.crt" };
  const user = { "client-certificate": "pki/client.crt", "client-key": "pki/client.key" };
  assert.equal((await whoAmI(kubeconfig("mtls-files", cluster, user))).user, "agent");
});

test("a certificate that is replaced on disk is used from then on", async () => {
  write("rotating/client.crt", client.certPem);
  write("rotating/client.key", client.keyPem);
  const user = { "client-certificate": "rotating/client.crt", "client-key": "rotating/client.key" };
  const clock = new VirtualClock();
  const transport = createHttpTransport(
    await loadCluster({ kubeconfig: kubeconfig("rotating-certs", withCa(), user) }, nowhere()),
    { clock },
  );
  const ask = async (): Promise<Seen> =>
    seenBy(await transport.send({ method: "GET", path: "/", lane: "api", timeoutMs: 20_000 }, never));
  assert.equal((await ask()).user, "agent");
  const next = await ca.issue({ commonName: "agent-2", usage: "client" });
  write("rotating/client.crt", next.certPem);
  write("rotating/client.key", next.keyPem);
  await clock.advance(30_000);
  assert.equal((await ask()).user, "agent-2");
  await transport.close();
});

test("a token is read from the kubeconfig or from a file that rotates, without its newline", async () => {
  assert.equal((await whoAmI(kubeconfig("token", withCa(), { token: "t0" }))).authorization, "Bearer t0");

  write("token-file", "t1\n");
  const file = kubeconfig("rotating-token", withCa(), { tokenFile: "token-file" });
  const clock = new VirtualClock();
  const transport = createHttpTransport(await loadCluster({ kubeconfig: file }, nowhere()), { clock });
  const ask = async (): Promise<Seen> =>
    seenBy(await transport.send({ method: "GET", path: "/", lane: "api", timeoutMs: 20_000 }, never));
  assert.equal((await ask()).authorization, "Bearer t1");
  write("token-file", "t2\n");
  await clock.advance(30_000);
  assert.equal((await ask()).authorization, "Bearer t2");
  write("token-file", "\n");
  await clock.advance(30_000);
  assert.equal((await ask()).authorization, "Bearer t2", "a file that is just being written does no harm");
  await transport.close();
});

test("an empty token file holds no credentials", async () => {
  write("empty-token", "\n");
  await assert.rejects(
    whoAmI(kubeconfig("empty", withCa(), { tokenFile: "empty-token" })),
    (error) => isKubeError(error, "Unauthorized") && /empty-token is empty/.test(error.message),
  );
});

test("an exec plugin gives the token, is asked again when refused, and gets what the protocol promises", async () => {
  const counter = path.join(folder, "plugin-runs");
  const plugin = write(
    "bin/plugin.sh",
    `#!/bin/sh
echo run >> "${counter}"
runs=$(wc -l < "${counter}" | tr -d ' ')
case "$KUBERNETES_EXEC_INFO" in *client.authentication.k8s.io/v1*) ;; *) exit 3;; esac
printf '{"kind":"ExecCredential","status":{"token":"%s-%s"}}' "$PREFIX" "$runs"
`,
  );
  chmodSync(plugin, 0o755);
  const exec = {
    apiVersion: "client.authentication.k8s.io/v1",
    command: "./bin/plugin.sh",
    env: [{ name: "PREFIX", value: "exec" }],
    interactiveMode: "Never",
  };
  const access = await loadCluster({ kubeconfig: kubeconfig("exec", withCa(), { exec }) }, nowhere());
  const first = await access.loadCredentials({ discardCached: false });
  assert.equal(first.headers["authorization"], "Bearer exec-1");
  const cached = await access.loadCredentials({ discardCached: false });
  assert.equal(cached.headers["authorization"], "Bearer exec-1");
  const fresh = await access.loadCredentials({ discardCached: true });
  assert.equal(fresh.headers["authorization"], "Bearer exec-2");
});

test("an exec plugin that fails says so", async () => {
  const exec = {
    apiVersion: "client.authentication.k8s.io/v1",
    command: "sh",
    args: ["-c", "echo no login >&2; exit 1"],
  };
  await assert.rejects(whoAmI(kubeconfig("exec-fails", withCa(), { exec })), (error) => {
    assert.ok(isKubeError(error, "Unauthorized"));
    assert.match(error.message, /^no credentials from context main of .*exec-fails: no login/);
    return true;
  });
});

test("the broken output of a kubeconfig or plugin is not repeated: it may hold credentials", async () => {
  const quotes = (error: unknown): boolean =>
    error instanceof Error && (error.message.includes("hunter2") || quotes(error.cause));
  const broken = write("broken", "users:\n- name: u\n  user:\n    password: hunter2: oops\n");
  await assert.rejects(loadCluster({ kubeconfig: broken }, nowhere()), (error: Error) => {
    assert.match(error.message, /broken: it is not valid YAML at line 4/);
    return !quotes(error);
  });
  const exec = { apiVersion: "client.authentication.k8s.io/v1", command: "echo", args: ["hunter2"] };
  await assert.rejects(whoAmI(kubeconfig("no-json", withCa(), { exec })), (error: Error) => {
    assert.match(error.message, /no-json: its credential plugin has not printed JSON$/);
    return !quotes(error);
  });
});

test("user names, impersonation and namespaces of contexts are honored", async () => {
  const file = kubeconfig("others", withCa(), { username: "joe", password: "pw", as: "jane" }, { namespace: "fences" });
  const seen = await whoAmI(file);
  assert.equal(seen.authorization, `Basic ${base64("joe:pw")}`);
  assert.equal(seen.as, "jane");
  assert.equal((await loadCluster({ kubeconfig: file }, nowhere())).namespace, "fences");
});

test("a server whose certificate is not trusted is refused, unless the kubeconfig says otherwise", async () => {
  const untrusted = { server: stub.url };
  await assert.rejects(
    whoAmI(kubeconfig("untrusted", untrusted, {})),
    (error) => isKubeError(error, "Network") && /certificate/.test(error.message),
  );
  await whoAmI(kubeconfig("insecure", { ...untrusted, "insecure-skip-tls-verify": true }, {}));
  await whoAmI(kubeconfig("named", { ...withCa(), "tls-server-name": "api.internal" }, {}));
  await assert.rejects(
    whoAmI(kubeconfig("misnamed", { ...withCa(), "tls-server-name": "other.internal" }, {})),
    (error) => isKubeError(error, "Network") && /other\.internal/.test(error.message),
  );
});

test("several files are merged: the first entry of a name wins, and files that are missing are passed over", async () => {
  const first = kubeconfig("merge-1", withCa(), { token: "first" });
  const second = write(
    "merge-2",
    stringify({
      "current-context": "side",
      clusters: [{ name: "c", cluster: { server: "https://192.0.2.1" } }],
      users: [
        { name: "u", user: { token: "second" } },
        { name: "v", user: { tokenFile: "merge-token" } },
      ],
      contexts: [{ name: "side", context: { cluster: "c", user: "v" } }],
    }),
  );
  write("merge-token", "from-file\n");
  const list = [path.join(folder, "not-there"), first, second].join(path.delimiter);
  const environment = { ...nowhere(), variables: { KUBECONFIG: list } };
  const main = await loadCluster({}, environment);
  assert.equal(main.server, stub.url);
  assert.equal((await main.loadCredentials({ discardCached: false })).headers["authorization"], "Bearer first");
  const side = await loadCluster({ context: "side" }, environment);
  assert.equal(side.server, stub.url);
  assert.equal((await side.loadCredentials({ discardCached: false })).headers["authorization"], "Bearer from-file");
});

test("the kubeconfig in the home directory is used first, and the service account of the pod if it does not exist", async () => {
  kubeconfig("home/.kube/config", withCa(), { token: "home" });
  const atHome = await loadCluster({}, { ...nowhere(), homeDirectory: path.join(folder, "home") });
  assert.match(atHome.source, /^context main of .*\.kube\/config$/);

  write("sa/token", "pod-token\n");
  write("sa/ca.crt", ca.certPem);
  write("sa/namespace", "ironfence-system");
  const { port } = new URL(stub.url);
  const environment: Environment = {
    ...nowhere(),
    serviceAccountDirectory: path.join(folder, "sa"),
    variables: { KUBERNETES_SERVICE_HOST: "127.0.0.1", KUBERNETES_SERVICE_PORT: port },
  };
  const pod = await loadCluster({}, environment);
  assert.equal(pod.namespace, "ironfence-system");
  const transport = createHttpTransport(pod, { clock: systemClock });
  const seen = seenBy(await transport.send({ method: "GET", path: "/", lane: "api", timeoutMs: 20_000 }, never));
  assert.equal(seen.authorization, "Bearer pod-token");
  await transport.close();
  await assert.rejects(loadCluster({}, { ...environment, variables: {} }), /KUBERNETES_SERVICE_HOST/);
});

test("an error in a kubeconfig is reported, with the file and what to do", async () => {
  const refused = async (file: string, text: RegExp, context?: string): Promise<void> => {
    const options = { kubeconfig: file, ...(context !== undefined && { context }) };
    await assert.rejects(loadCluster(options, nowhere()), text);
  };
  await assert.rejects(
    loadCluster({}, nowhere()),
    /no Kubernetes cluster found: \$KUBECONFIG is not set, and there is neither .*no-home.*config nor .*Give --kubeconfig/,
  );
  await assert.rejects(
    loadCluster({}, { ...nowhere(), variables: { KUBECONFIG: "/not/there" } }),
    /\$KUBECONFIG names \/not\/there, which does not exist/,
  );
  await refused("/not/there", /no kubeconfig at \/not\/there/);
  await refused(folder, /cannot read the kubeconfig .*: EISDIR/);
  await refused(write("rubbish", "just text"), /cannot read the kubeconfig .*rubbish: it is not a kubeconfig/);
  await refused(write("broken", "a: [b"), /cannot read the kubeconfig .*broken/);
  const good = kubeconfig("good", withCa(), {});
  await refused(good, /has no context prod: .*\(there are: main\)/, "prod");
  await refused(write("no-current", "clusters: []\ncontexts: []\nusers: []\n"), /has no current-context.*--context/);
  await refused(
    write(
      "dangling",
      stringify({ "current-context": "x", contexts: [{ name: "x", context: { cluster: "gone", user: "u" } }] }),
    ),
    /the cluster gone, which the file does not have/,
  );
  await refused(
    kubeconfig("proxy", { ...withCa(), "proxy-url": "http://192.0.2.1:3128" }, {}),
    /proxy .*192\.0\.2\.1.* not support.*remove proxy-url/,
  );
  await refused(kubeconfig("plain", { server: "http://192.0.2.1:8080" }, {}), /without TLS .*use https/);
  await refused(kubeconfig("odd", { server: "192.0.2.1:6443" }, {}), /not an http\(s\) URL/);
  assert.equal(
    (await loadCluster({ kubeconfig: kubeconfig("loopback", { server: "http://127.0.0.1:8001" }, {}) }, nowhere()))
      .server,
    "http://127.0.0.1:8001",
  );
});
