import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { TLSSocket } from "node:tls";
import { createCertificateAuthority } from "../../hack/lib/pki.ts";
import { WorkAllowance } from "../../src/kube/answers/read-budget.ts";
import { createHttpTransport, WORKLOAD_BODY_BYTES_MAX } from "../../src/kube/connection/transport/http-transport.ts";
import { isKubeError } from "../../src/kube/errors.ts";
import type { KubeErrorCode } from "../../src/kube/errors.ts";
import { startReflector } from "../../src/kube/watch/reflector.ts";
import type { KubeObject } from "../../src/kube/resource.ts";
import type { KubeTransport, TransportRequest } from "../../src/kube/transport.ts";
import { systemClock } from "../../src/runtime/system.ts";
import { accessTo, failure, json, startApiStub } from "../unit/kube/api-stub.ts";
import type { ApiStub } from "../unit/kube/api-stub.ts";
import { VirtualClock } from "../lib/virtual-clock.ts";
import { evenRandom, NODE, nodeObject, silentLogger, until } from "../unit/kube/support.ts";

const never = new AbortController().signal;
let stub: ApiStub;
let transport: KubeTransport;

beforeEach(async () => {
  stub = await startApiStub((_request, response) => json(response, 200, {}));
  transport = createHttpTransport(accessTo(stub.url), { clock: systemClock });
});
afterEach(async () => {
  await transport.close();
  await stub.close();
});

const get = (path = "/version", timeoutMs = 10_000): TransportRequest => ({
  method: "GET",
  path,
  lane: "api",
  timeoutMs,
});

function failsWith(code: KubeErrorCode, text: RegExp): (error: unknown) => boolean {
  return (error) => {
    assert.ok(isKubeError(error, code), String(error));
    assert.match(error.message, text);
    return true;
  };
}

test("the transport sends method, path, body and headers, and reads any answer whole", async () => {
  stub.handle((_request, response) => json(response, 418, { grüße: "✓" }, { "X-Kind": "teapot" }));
  const body = JSON.stringify({ a: 1 });
  const answer = await transport.send(
    {
      method: "PATCH",
      path: "/api/v1/nodes/a?x=1",
      body,
      contentType: "application/merge-patch+json",
      lane: "api",
      timeoutMs: 10_000,
    },
    never,
  );
  assert.equal(answer.status, 418);
  assert.equal(answer.headers["x-kind"], "teapot");
  assert.deepEqual(JSON.parse(answer.body), { grüße: "✓" });
  const [seen] = stub.requests;
  assert.equal(
    `${seen?.method} ${seen?.url.pathname}${seen?.url.search} ${seen?.body}`,
    `PATCH /api/v1/nodes/a?x=1 ${body}`,
  );
  assert.equal(seen?.headers["content-type"], "application/merge-patch+json");
  assert.equal(seen?.headers["user-agent"], "ironfence");
});

test("a deletion with preconditions leaves its connection to the next call", async () => {
  const ports = new Set<number | undefined>();
  stub.handle((_request, response, raw) => {
    ports.add(raw.socket.remotePort);
    json(response, 200, {});
  });
  const body = JSON.stringify({ kind: "DeleteOptions", apiVersion: "v1", preconditions: { uid: "u" } });
  for (let turn = 0; turn < 10; turn++) {
    await transport.send({ ...get("/api/v1/nodes/a"), method: "DELETE", body }, never);
  }
  // Two are allowed, because a connection needs a turn of the event loop before it accepts the next call.
  assert.ok(ports.size <= 2, `${ports.size} connections`);
  assert.equal(stub.requests[0]?.body, body);
});

test("calls share connections, lanes do not", async () => {
  const ports = new Map<string, Set<number | undefined>>();
  stub.handle(({ url }, response, raw) => {
    const seen = ports.get(url.pathname) ?? new Set<number | undefined>();
    ports.set(url.pathname, seen.add(raw.socket.remotePort));
    json(response, 200, {});
  });
  for (let turn = 0; turn < 5; turn++) {
    await transport.send(get("/api-lane"), never);
    await transport.send({ ...get("/lease-lane"), lane: "lease" }, never);
  }
  const api = ports.get("/api-lane") ?? new Set();
  const lease = ports.get("/lease-lane") ?? new Set();
  assert.equal(api.size, 1);
  assert.equal(lease.size, 1);
  assert.ok([...api].every((port) => !lease.has(port)));
});

test("a redirect counts as any other answer: no credentials are sent to its target", async () => {
  const elsewhere = await startApiStub((_request, response) => json(response, 200, {}));
  for (const status of [301, 302, 303, 307, 308]) {
    stub.handle((_request, response) => json(response, status, {}, { location: `${elsewhere.url}/version` }));
    assert.equal((await transport.send(get(), never)).status, status);
  }
  assert.deepEqual(elsewhere.requests, []);
  await elsewhere.close();
});

test("a lane that is full of calls that hang does not hold up the lease", async () => {
  stub.handle(({ url }, response) => {
    if (url.pathname === "/lease") json(response, 200, {});
  });
  const stop = new AbortController();
  const hanging = Array.from({ length: 40 }, () => transport.send(get("/hang"), stop.signal).catch(() => undefined));
  await until("the lane is full", () => stub.requests.length >= 16);
  assert.equal((await transport.send({ ...get("/lease"), lane: "lease" }, never)).status, 200);
  assert.equal(stub.requests.filter(({ url }) => url.pathname === "/hang").length, 16, "connections are bounded");
  stop.abort();
  await Promise.all(hanging);
});

test("an untrusted API server gets at most four connections for calls", async () => {
  const work = new WorkAllowance(systemClock, undefined);
  const untrusted = createHttpTransport(
    accessTo(stub.url),
    { clock: systemClock },
    { bodyBytesMax: WORKLOAD_BODY_BYTES_MAX, allowLocal: true, work },
  );
  const stop = new AbortController();
  stub.handle(({ url }, response) => {
    if (url.pathname !== "/hang") json(response, 200, {});
  });
  const hanging = Array.from({ length: 10 }, () => untrusted.send(get("/hang"), stop.signal).catch(() => undefined));
  await until("the lane is full", () => stub.requests.length >= 4);
  assert.equal((await untrusted.send({ ...get("/watch"), lane: "watch" }, never)).status, 200);
  assert.equal(stub.requests.filter(({ url }) => url.pathname === "/hang").length, 4);
  stop.abort();
  await Promise.all(hanging);
  await untrusted.close();
});

test("a server that never answers, or stops in the middle of an answer, is left at the deadline of the injected clock", async () => {
  const clock = new VirtualClock();
  const onClock = createHttpTransport(accessTo(stub.url), { clock });
  for (const half of [false, true]) {
    stub.requests.length = 0;
    stub.handle((_request, response) => {
      if (half) response.write('{"half":');
    });
    const call = onClock.send(get("/hang", 5_000), never);
    call.catch(() => undefined);
    await until("the request is there", () => stub.requests.length === 1);
    await clock.advance(5_000);
    await assert.rejects(call, failsWith("Timeout", /^GET http:.*\/hang did not end within 5000 ms$/));
  }
  await onClock.close();
});

test("broken and refused connections are Network, and the next call makes a new one", async () => {
  stub.handle((_request, _response, raw) => raw.socket.destroy());
  await assert.rejects(transport.send(get(), never), failsWith("Network", /^GET http:.*\/version: /));
  stub.handle((_request, response) => {
    response.writeHead(200, { "content-length": "100" });
    response.write("{");
    setImmediate(() => response.destroy());
  });
  await assert.rejects(transport.send(get(), never), failsWith("Network", /version/));
  stub.handle((_request, response) => json(response, 200, {}));
  assert.equal((await transport.send(get(), never)).status, 200);
  const { url } = stub;
  await stub.close();
  const late = createHttpTransport(accessTo(url), { clock: systemClock });
  await assert.rejects(late.send(get(), never), failsWith("Network", /ECONNREFUSED/));
  await late.close();
});

test("an answer is read completely, in whatever pieces it arrives, even if they split a character", async () => {
  const text = JSON.stringify({ a: "ä€😀".repeat(20_000) });
  const bytes = Buffer.from(text);
  stub.handle((_request, response) => {
    for (let at = 0; at < bytes.length; at += 997) response.write(bytes.subarray(at, at + 997));
    response.end();
  });
  assert.equal((await transport.send(get("/text"), never)).body, text);
});

test("an answer that never ends is aborted at its limit, which is lower for a workload cluster", async () => {
  let sentMiB = 0;
  stub.handle((_request, response) => {
    const mib = Buffer.alloc(1024 * 1024, 0x20);
    const pump = (): void => {
      while (!response.destroyed && sentMiB < 200) {
        sentMiB += 1;
        if (!response.write(mib)) {
          response.once("drain", pump);
          return;
        }
      }
      response.end();
    };
    pump();
  });
  await assert.rejects(
    transport.send(get("/big", 30_000), never),
    failsWith("BadResponse", /larger than 67108864 bytes/),
  );
  assert.ok(sentMiB < 100, `${sentMiB} MiB were taken`);
  sentMiB = 0;
  const workload = createHttpTransport(
    accessTo(stub.url),
    { clock: systemClock },
    { bodyBytesMax: WORKLOAD_BODY_BYTES_MAX, allowLocal: true },
  );
  await assert.rejects(
    workload.send(get("/big", 30_000), never),
    failsWith("BadResponse", /larger than 4194304 bytes/),
  );
  await workload.close();
  assert.ok(sentMiB < 40, `${sentMiB} MiB were taken`);
});

test("a server cannot choose a Diffie-Hellman group, which would take a second at each handshake", async (t) => {
  const authority = await createCertificateAuthority(systemClock, "workload");
  const host = { commonName: "api", ipAddresses: ["127.0.0.1"], usage: "server", keys: "rsa" } as const;
  const { certPem: cert, keyPem: key } = await authority.issue(host);
  const finiteField = { ciphers: "DHE-RSA-AES128-GCM-SHA256", dhparam: "auto", maxVersion: "TLSv1.2" } as const;
  const chooser = await startApiStub((_request, response) => json(response, 200, {}), { cert, key, ...finiteField });
  const tls = { ca: authority.certPem, insecureSkipVerify: false };
  const access = accessTo(chooser.url, () => ({ headers: {}, tls }));
  const secure = createHttpTransport(access, { clock: systemClock });
  t.after(() => Promise.all([secure.close(), chooser.close()]));
  await assert.rejects(secure.send(get(), never), failsWith("Network", /handshake failure/));
  assert.deepEqual(chooser.requests, []);
});

test("a server cannot ask for another handshake on the same connection", async (t) => {
  const authority = await createCertificateAuthority(systemClock, "workload");
  const host = { commonName: "api", ipAddresses: ["127.0.0.1"], usage: "server" } as const;
  const { certPem: cert, keyPem: key } = await authority.issue(host);
  const renewing = await startApiStub(
    (_request, response, { socket }) => {
      assert.ok(socket instanceof TLSSocket);
      socket.on("error", () => undefined).renegotiate({}, () => json(response, 200, {}));
    },
    { cert, key, maxVersion: "TLSv1.2" },
  );
  const tls = { ca: authority.certPem, insecureSkipVerify: false };
  const secure = createHttpTransport(
    accessTo(renewing.url, () => ({ headers: {}, tls })),
    { clock: systemClock },
  );
  t.after(() => Promise.all([secure.close(), renewing.close()]));
  await assert.rejects(secure.send(get(), never), failsWith("Network", /handshake failure|closed|reset/i));
});

test("the caller's signal and closing end what is under way", async () => {
  stub.handle(() => undefined);
  const stop = new AbortController();
  const stopped = transport.send(get("/a"), stop.signal);
  const closed = transport.send(get("/b"), never);
  closed.catch(() => undefined);
  await until("both are there", () => stub.requests.length === 2);
  stop.abort(new Error("stop it"));
  await assert.rejects(stopped, failsWith("Aborted", /stop it/));
  await transport.close();
  await assert.rejects(closed, failsWith("Aborted", /closed/));
  await assert.rejects(transport.send(get("/c"), never), failsWith("Aborted", /closed/));
});

test("a server behind a path is asked there", async () => {
  const behind = createHttpTransport(accessTo(`${stub.url}/k8s/clusters/c-1`), { clock: systemClock });
  await behind.send(get("/api/v1"), never);
  assert.equal(stub.requests[0]?.url.pathname, "/k8s/clusters/c-1/api/v1");
  await behind.close();
});

test("credentials that are refused are replaced once, and the call is made again with the new ones", async () => {
  let token = "old";
  const loads: boolean[] = [];
  const access = {
    ...accessTo(stub.url),
    loadCredentials: async ({ discardCached }: { discardCached: boolean }) => {
      loads.push(discardCached);
      return { headers: { authorization: `Bearer ${token}` }, tls: { insecureSkipVerify: false } };
    },
  };
  const clock = new VirtualClock();
  const withTokens = createHttpTransport(access, { clock });
  stub.handle(({ headers }, response) => {
    if (headers.authorization === "Bearer new") json(response, 200, {});
    else json(response, 401, failure(401, "Unauthorized", "Unauthorized"));
  });
  assert.equal(
    (await withTokens.send(get(), never)).status,
    401,
    "the source has no new token, so the refusal is the answer",
  );
  assert.equal(stub.requests.length, 1);
  token = "new";
  assert.equal((await withTokens.send(get(), never)).status, 401, "not asked for again so soon");
  await clock.advance(5_000);
  const answers = await Promise.all([1, 2, 3].map(() => withTokens.send(get(), never)));
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 200, 200],
  );
  assert.deepEqual(loads, [false, true, true], "one load serves all");
  token = "newer";
  await clock.advance(30_000);
  await withTokens.send(get(), never);
  assert.deepEqual(loads.slice(3, 4), [false], "looked at again when old");
  await withTokens.close();
});

test("a watch yields what comes, cuts no character in two, and ends when the server ends it", async () => {
  stub.handle((_request, response) => {
    const bytes = Buffer.from("grüße✓\n");
    response.write(bytes.subarray(0, 3));
    setTimeout(() => response.end(bytes.subarray(3)), 20);
  });
  const stream = await transport.stream({ ...get("/watch"), lane: "watch" }, never);
  let text = "";
  for await (const chunk of stream.body) text += chunk;
  assert.equal(text, "grüße✓\n");
});

test("a watch that breaks, is stopped, or does not begin is an error", async () => {
  stub.handle((_request, response, raw) => {
    response.write("x\n");
    setTimeout(() => raw.socket.resetAndDestroy(), 20);
  });
  const drain = async (body: AsyncIterable<string>): Promise<void> => {
    for await (const chunk of body) assert.equal(chunk, "x\n");
  };
  const broken = await transport.stream({ ...get("/watch"), lane: "watch" }, never);
  await assert.rejects(drain(broken.body), failsWith("Network", /watch/));

  stub.handle((_request, response) => response.write("x\n"));
  const stop = new AbortController();
  const stopped = await transport.stream({ ...get("/watch"), lane: "watch" }, stop.signal);
  setTimeout(() => stop.abort(new Error("enough")), 20);
  await assert.rejects(drain(stopped.body), failsWith("Aborted", /enough/));

  stub.handle(() => undefined);
  await assert.rejects(
    transport.stream({ ...get("/watch", 50), lane: "watch" }, never),
    failsWith("Timeout", /did not end within 50 ms/),
  );
});

test("a reflector survives resets, half a line, an unreachable server, and 410 on a real connection", async () => {
  let version = 10;
  const nodes = new Map<string, KubeObject>([["a", nodeObject("a", "ua", 5)]]);
  let watches = 0;
  stub.handle(({ url }, response, raw) => {
    if (!url.searchParams.has("watch")) {
      json(response, 200, {
        kind: "NodeList",
        metadata: { resourceVersion: String(version) },
        items: [...nodes.values()],
      });
      return;
    }
    watches += 1;
    const since = Number(url.searchParams.get("resourceVersion"));
    if (watches === 1) {
      version = 11;
      response.write(`${JSON.stringify({ type: "ADDED", object: nodeObject("b", "ub", 11) })}\n{"type":"ADDED","obj`);
      setTimeout(() => raw.socket.resetAndDestroy(), 20);
    } else if (watches === 2) {
      assert.equal(since, 11);
      raw.socket.destroy();
    } else if (watches === 3) {
      nodes.delete("a");
      nodes.set("b", nodeObject("b", "ub2", 30));
      version = 30;
      json(response, 410, failure(410, "Expired", "too old resource version"));
    } else {
      assert.equal(since, 30);
      response.write(`${JSON.stringify({ type: "ADDED", object: nodeObject("c", "uc", 31) })}\n`);
    }
  });
  const stop = new AbortController();
  const heard: string[] = [];
  const watched = startReflector<KubeObject>(
    { transport, clock: systemClock, random: evenRandom, logger: silentLogger },
    { type: NODE, trim: (raw) => raw },
    stop.signal,
  );
  watched.subscribe(({ type, object }) => heard.push(`${type} ${object.metadata.name} ${object.metadata.uid}`));
  await until("c has been seen", () => watched.get({ name: "c" }) !== undefined);
  assert.deepEqual(heard, ["added a ua", "added b ub", "deleted b ub", "deleted a ua", "added b ub2", "added c uc"]);
  assert.equal(watched.problem, undefined);
  stop.abort();
});
