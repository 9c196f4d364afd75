import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { Agent, request } from "undici";
import { createCertificateAuthority } from "../../../../hack/lib/pki.ts";
import { serveDashboard } from "../../../../src/cli/dashboard/serve/server.ts";
import { createTokenGuard, STATUS_PATH } from "../../../../src/cli/dashboard/serve/token-guard.ts";
import { createAuthorizer } from "../../../../src/cli/agent/page-access.ts";
import type { AccessReviewResult } from "../../../../src/kube/reviews/access-review.ts";
import { systemClock } from "../../../../src/runtime/system.ts";
import { CertificateFiles } from "../../../../src/telemetry/certificate-files.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { OVERVIEW } from "../overview-fixture.ts";
import { node } from "./fixture.ts";

const HOST = "127.0.0.1";
const VERDICTS: Readonly<Record<string, AccessReviewResult>> = { good: "allowed", poor: "forbidden" };

describe("the dashboard that the agent serves", () => {
  let folder: string;
  let server: Awaited<ReturnType<typeof serveDashboard>>;
  let client: Agent;
  const paths = new Set<string>();

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "ironfence-status-"));
    const authority = await createCertificateAuthority(systemClock, "status");
    const { certPem, keyPem } = await authority.issue({ commonName: HOST, ipAddresses: [HOST], usage: "server" });
    await writeFile(join(folder, "tls.crt"), certPem);
    await writeFile(join(folder, "tls.key"), keyPem);
    const review = (token: { reveal(): string }, path: string): Promise<AccessReviewResult> => {
      paths.add(path);
      if (token.reveal() === "away") return Promise.reject(new Error("the API server cannot be reached"));
      return Promise.resolve(VERDICTS[token.reveal()] ?? "unauthenticated");
    };
    const deps = { clock: systemClock, logger: createLogger("silent") };
    const source = {
      readOverview: () => Promise.resolve({ ...OVERVIEW, nodes: [node("w1")] }),
      readDecisions: () => Promise.reject(new Error("there are none")),
    };
    const guard = createTokenGuard(createAuthorizer(review, deps, AbortSignal.timeout(60_000)));
    const certificate = new CertificateFiles(folder, systemClock);
    server = await serveDashboard({ host: HOST, port: 0 }, { clock: systemClock, source, guard, certificate });
    client = new Agent({ connect: { ca: authority.certPem } });
  });
  after(async () => {
    await client.close();
    await server.close();
    await rm(folder, { recursive: true });
  });

  const origin = (): string => `https://${HOST}:${server.port}`;
  async function send(path: string, options: { headers?: Record<string, string>; body?: string } = {}) {
    const { headers = {}, body } = options;
    const response = await request(`${origin()}${path}`, {
      dispatcher: client,
      headers,
      ...(body !== undefined && { method: "POST", body }),
    });
    return { status: response.statusCode, headers: response.headers, text: await response.body.text() };
  }
  const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });

  it("the dashboard that the agent serves shows only a form to a client without permission to read it", async () => {
    for (const path of ["/", "/nodes", "/nodes/w1", "/rows", "/events", "/nothing"]) {
      for (const [options, status] of [
        [{}, 401],
        [bearer("stranger"), 401],
        [bearer("poor"), 403],
        [bearer("away"), 503],
        [{ headers: { cookie: "__Host-ironfence-token=poor" } }, 403],
        [{ headers: { cookie: "other=good" } }, 401],
      ] as const) {
        const answer = await send(path, options);
        assert.equal(answer.status, status, `${path} ${JSON.stringify(options)}`);
        assert.doesNotMatch(answer.text, /w1/);
        assert.match(answer.text, /name="token"/);
      }
    }
  });

  it("the agent's dashboard asks the API server about one path for all pages, whichever page a user opens", async () => {
    assert.equal((await send("/nodes/w1", bearer("good"))).status, 200);
    assert.equal((await send("/nodes/w2", bearer("good"))).status, 404);
    assert.deepEqual([...paths], [STATUS_PATH]);
  });

  it("the dashboard that the agent serves exchanges a token that a user pastes for a cookie that no script and no other site can use", async () => {
    const headers = { origin: origin(), "content-type": "application/x-www-form-urlencoded" };
    const { status, headers: sent } = await send("/login", { headers, body: "token=good" });
    assert.equal(status, 303);
    const [cookie = "", ...attributes] = String(sent["set-cookie"]).split("; ");
    assert.equal(cookie, "__Host-ironfence-token=good");
    assert.deepEqual(attributes.toSorted(), ["HttpOnly", "Max-Age=43200", "Path=/", "SameSite=Strict", "Secure"]);
    assert.equal((await send("/", { headers: { cookie } })).status, 200);
    for (const body of ["token=poor", "token=good%0d%0aset-cookie:x", "", `token=${"x".repeat(9_000)}`]) {
      const refused = await send("/login", { headers, body });
      assert.ok(refused.status === 403 || refused.status === 401, body.slice(0, 40));
      assert.equal(refused.headers["set-cookie"], undefined);
    }
    assert.equal((await send("/login", { headers, body: "x".repeat(20_000) })).status, 413);
  });

  it("the dashboard that the agent serves takes no token from another site's form, and from a program that names no site", async () => {
    for (const headers of [{ origin: "https://evil.example" }, { origin: "null" }, {}]) {
      const { status, headers: sent } = await send("/login", { headers, body: "token=good" });
      assert.equal(status, 403);
      assert.equal(sent["set-cookie"], undefined);
    }
  });

  it("the dashboard only reads, also for users who may read it", async () => {
    assert.equal((await send("/", { ...bearer("good"), body: "x" })).status, 405);
  });

  it("the dashboard that the agent serves speaks TLS alone", async () => {
    await assert.rejects(request(`http://${HOST}:${server.port}/`));
  });
});
