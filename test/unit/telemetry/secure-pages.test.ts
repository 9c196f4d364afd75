import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { connect as connectTls } from "node:tls";
import { Agent, request } from "undici";
import { createCertificateAuthority } from "../../../hack/lib/pki.ts";
import type { CertificateAuthority } from "../../../hack/lib/pki.ts";
import { bearerOf, createAuthorizer } from "../../../src/cli/agent/page-access.ts";
import type { AccessReviewResult } from "../../../src/kube/reviews/access-review.ts";
import { systemClock } from "../../../src/runtime/system.ts";
import { CertificateFiles } from "../../../src/telemetry/certificate-files.ts";
import { servePages } from "../../../src/telemetry/http-server.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { VirtualClock } from "../../lib/virtual-clock.ts";

const HOST = "127.0.0.1";
const VERDICTS: Readonly<Record<string, AccessReviewResult>> = { good: "allowed", poor: "forbidden" };

describe("metrics behind TLS and a login", () => {
  const clock = new VirtualClock();
  const asked: string[] = [];
  let folder: string;
  let authority: CertificateAuthority;
  let server: Awaited<ReturnType<typeof servePages>>;
  let client: Agent;

  const writeCertificate = async (commonName: string): Promise<void> => {
    const { certPem, keyPem } = await authority.issue({ commonName, ipAddresses: [HOST], usage: "server" });
    await writeFile(join(folder, "tls.crt"), certPem);
    await writeFile(join(folder, "tls.key"), keyPem);
  };

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "ironfence-metrics-"));
    authority = await createCertificateAuthority(systemClock, "monitoring");
    await writeCertificate("first");
    const review = (token: { reveal(): string }): Promise<AccessReviewResult> => {
      asked.push(token.reveal());
      if (token.reveal() === "away") return Promise.reject(new Error("the API server cannot be reached"));
      return Promise.resolve(VERDICTS[token.reveal()] ?? "unauthenticated");
    };
    const authorizer = createAuthorizer(review, { clock, logger: createLogger("silent") }, AbortSignal.timeout(60_000));
    const page = () => Promise.resolve({ status: 200, contentType: "text/plain", body: "names\n" });
    const certificate = new CertificateFiles(folder, clock);
    server = await servePages({ host: HOST, port: 0 }, { "/metrics": page }, { certificate, authorizer });
    client = new Agent({ connect: { ca: authority.certPem }, pipelining: 0 });
  });
  after(async () => {
    await client.close();
    await server.close();
    await rm(folder, { recursive: true });
  });

  async function get(authorization?: string, path = "/metrics"): Promise<{ status: number; body: string }> {
    const headers = authorization === undefined ? {} : { authorization };
    const { statusCode: status, body } = await request(`https://${HOST}:${server.port}${path}`, {
      dispatcher: client,
      headers,
    });
    return { status, body: await body.text() };
  }

  it("metrics behind TLS and a login are shown to users that the API server allows to read them", async () => {
    assert.deepEqual(await get("Bearer good"), { status: 200, body: "names\n" });
    assert.deepEqual(await get("bearer  good"), { status: 200, body: "names\n" });
  });

  it("metrics behind TLS and a login are refused to others, which learn neither names nor pages", async () => {
    for (const path of ["/metrics", "/nothing"]) {
      for (const nobody of [undefined, "", "Bearer", "Bearer ", "Bearer unknown", "Basic Z29vZA==", "Bearer a b"]) {
        assert.deepEqual(await get(nobody, path), { status: 401, body: "unauthenticated\n" }, String(nobody));
      }
      assert.deepEqual(await get("Bearer poor", path), { status: 403, body: "forbidden\n" });
    }
  });

  it("metrics behind TLS and a login are refused to all while the API server cannot be asked", async () => {
    const { status, body } = await get("Bearer away");
    assert.equal(status, 503);
    assert.doesNotMatch(body, /names/);
  });

  it("metrics behind TLS and a login are not served without TLS", async () => {
    const socket = connect(server.port, HOST).on("error", () => undefined);
    const closed = new Promise((resolve) => socket.once("close", resolve));
    await once(socket, "connect");
    let text = "";
    socket.on("data", (chunk) => (text += String(chunk)));
    socket.write("GET /metrics HTTP/1.1\r\nhost: x\r\nauthorization: Bearer good\r\n\r\n");
    await closed;
    assert.doesNotMatch(text, /names/);
  });

  it("metrics behind TLS and a login are not served by TLS below 1.2", async () => {
    const old = { minVersion: "TLSv1", maxVersion: "TLSv1.1", ciphers: "DEFAULT@SECLEVEL=0" } as const;
    const socket = connectTls({ port: server.port, host: HOST, rejectUnauthorized: false, ...old });
    await assert.rejects(once(socket, "secureConnect"), /protocol version/i);
  });

  it("metrics behind TLS and a login are served with the new certificate once it has been renewed, and with the old one while the files do not fit", async () => {
    await writeFile(join(folder, "tls.key"), "half a key");
    await clock.advance(60_000);
    assert.equal(await nameServed(), "first");
    await writeCertificate("second");
    assert.equal(await nameServed(), "first");
    await clock.advance(60_000);
    await nameServed();
    assert.equal(await nameServed(), "second");
  });

  async function nameServed(): Promise<string | undefined> {
    const socket = connectTls({ port: server.port, host: HOST, ca: authority.certPem });
    await once(socket, "secureConnect");
    const name = socket.getPeerCertificate().subject.CN;
    socket.destroy();
    return typeof name === "string" ? name : undefined;
  }

  it("metrics behind TLS and a login need a certificate and its key from the start, and name the folder that lacks them", () => {
    assert.throws(() => new CertificateFiles("/nowhere", clock), /tls\.crt and tls\.key in \/nowhere/);
  });

  it("metrics behind TLS and a login take no token that is longer than any", () => {
    assert.equal(bearerOf(`Bearer ${"a".repeat(8_192)}`), undefined);
    assert.equal(bearerOf(`Bearer ${"a".repeat(8_000)}`)?.reveal().length, 8_000);
  });

  it("metrics behind TLS and a login close a plain connection after 5 s without a request", async () => {
    const socket = connect(server.port, HOST).on("error", () => undefined);
    const closed = new Promise((resolve) => socket.once("close", resolve));
    await once(socket, "connect");
    const startedMs = performance.now();
    await closed;
    assert.ok(performance.now() - startedMs < 8_000);
  });
});
