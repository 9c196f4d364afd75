import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import type { IncomingHttpHeaders } from "node:http";
import https from "node:https";
import type { AddressInfo } from "node:net";
import { TLSSocket } from "node:tls";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import { inspect } from "node:util";
import { createCertificateAuthority } from "../../hack/lib/pki.ts";
import type { CertificateAndKey, CertificateAuthority } from "../../hack/lib/pki.ts";
import type { PowerDriver } from "../../src/bmc/interface/driver.ts";
import type { DeviceConfig } from "../../src/bmc/interface/device-config.ts";
import { BmcError } from "../../src/bmc/interface/errors.ts";
import type { BmcErrorCode } from "../../src/bmc/interface/errors.ts";
import { Secret } from "../../src/runtime/secret.ts";
import { systemClock } from "../../src/runtime/system.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { openDeviceOn } from "../lib/open-device.ts";
import { forever, hasCode } from "./bmc-fixture.ts";
import { cli } from "./cli-fixture.ts";

// Driver servers that authenticate the agent by its client certificate, without a signing key.

const UUID = "3f8c1d52-6b0a-4e77-9a3e-0d5b8c1f2a44";

/** The faults of a server. */
type Bug =
  | "asks for no certificate"
  | "accepts any certificate"
  | "accepts any time"
  | "repeats no nonce"
  | "repeats an earlier answer";

/** The rule that finds each bug. */
const FOUND_BY: Readonly<Record<Bug, string>> = {
  "asks for no certificate": "no-certificate",
  "accepts any certificate": "other-certificate",
  "accepts any time": "old-time",
  "repeats no nonce": "status",
  "repeats an earlier answer": "identity",
};

type Strange = "reset" | "hang" | { status: number; headers?: Record<string, string>; body?: string };

/** Answers that do not belong to the request, from a proxy, a cache or a faulty server, and how they are reported. */
const OFF = JSON.stringify({ state: "Off", identity: { systemUUID: UUID } });
const STRANGE: readonly [what: string, Strange, code: BmcErrorCode][] = [
  ["an Off without the nonce", { status: 200, body: OFF }, "BadResponse"],
  [
    "an Off with another nonce",
    { status: 200, headers: { "ironfence-nonce": "0".repeat(32) }, body: OFF },
    "BadResponse",
  ],
  ["an Off with two nonces", { status: 200, headers: { "ironfence-nonce": "a, b" }, body: OFF }, "BadResponse"],
  ["a refusal because of the time", { status: 401 }, "AuthFailed"],
  ["a refusal by a proxy", { status: 403 }, "BadResponse"],
  ["that of a proxy without the certificate", { status: 400 }, "BadResponse"],
  ["a 404 from a proxy", { status: 404 }, "BadResponse"],
  ["a redirect", { status: 307, headers: { location: "https://127.0.0.1:9/" } }, "Unsupported"],
  ["that of a busy proxy", { status: 503 }, "Busy"],
  ["an error 500", { status: 500 }, "BadResponse"],
  ["a closed connection", "reset", "Unreachable"],
  ["missing", "hang", "Timeout"],
];

let authority: CertificateAuthority;
let client: CertificateAndKey;
let serverCertificate: CertificateAndKey;

before(async () => {
  authority = await createCertificateAuthority(systemClock, "test CA");
  client = await authority.issue({ commonName: "ironfence", usage: "client" });
  serverCertificate = await authority.issue({ commonName: "driver", ipAddresses: ["127.0.0.1"], usage: "server" });
});

async function startServer(...bugs: readonly Bug[]) {
  let power = "On";
  let earlier: string | undefined;
  const requests: IncomingHttpHeaders[] = [];
  /** The answer to every request instead of that of the server. */
  let strange: Strange | undefined;
  const has = (bug: Bug): boolean => bugs.includes(bug);
  const server = https.createServer(
    {
      cert: serverCertificate.certPem,
      key: serverCertificate.keyPem,
      ca: authority.certPem,
      requestCert: !has("asks for no certificate"),
      rejectUnauthorized: !has("accepts any certificate") && !has("asks for no certificate"),
    },
    (request, response) => {
      let body = "";
      request.on("data", (chunk: Buffer) => (body += chunk.toString()));
      request.on("end", () => {
        requests.push(request.headers);
        if (strange === "reset") return request.socket.destroy();
        if (strange === "hang") return undefined;
        if (strange !== undefined) return response.writeHead(strange.status, strange.headers).end(strange.body ?? "{}");
        const { socket } = request;
        const isBare = socket instanceof TLSSocket && Object.keys(socket.getPeerCertificate()).length === 0;
        const isRefused = has("accepts any certificate") && isBare;
        const { status, content } = isRefused ? { status: 403, content: {} } : answer(request.url ?? "", request, body);
        const nonce = String(request.headers["ironfence-nonce"]);
        if (has("repeats an earlier answer")) earlier ??= nonce;
        const shown = has("repeats no nonce") ? {} : { "ironfence-nonce": earlier ?? nonce };
        return response.writeHead(status, shown).end(JSON.stringify(content));
      });
    },
  );
  const answer = (path: string, { headers }: { headers: object }, body: string) => {
    const time = Number((headers as Record<string, string>)["ironfence-time"]);
    if (!has("accepts any time") && Math.abs(Date.now() / 1_000 - time) > 60) return { status: 401, content: {} };
    if (path === "/one/status") return { status: 200, content: { state: power, identity: { systemUUID: UUID } } };
    if (path !== "/one/off" && path !== "/one/on") return { status: 404, content: {} };
    if (!body.includes("systemUUID")) return { status: 400, content: {} };
    if (!body.includes(UUID)) return { status: 409, content: {} };
    power = path === "/one/off" ? "Off" : "On";
    return { status: 202, content: {} };
  };
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const opened: PowerDriver[] = [];
  const address = `driver://127.0.0.1:${port}/one`;
  return {
    address,
    requests,
    power: () => power,
    answerAlways: (reply: Strange) => {
      strange = reply;
    },
    open: (config: Partial<DeviceConfig> = {}): PowerDriver => {
      const device = openDriver({ address, ...config });
      opened.push(device);
      return device;
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all(opened.map((device) => device.close()));
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function openDriver(config: Partial<DeviceConfig>): PowerDriver {
  return openDeviceOn(systemClock)(
    {
      address: "driver://127.0.0.1:9/one",
      username: "",
      password: new Secret(""),
      certificate: { cert: client.certPem, key: new Secret(client.keyPem) },
      tls: { insecureSkipVerify: false, ca: authority.certPem },
      timeouts: { connectTimeoutMs: 10_000, callTimeoutMs: 20_000 },
      ...config,
    },
    { clock: systemClock, logger: createLogger("silent") },
  );
}

describe("a driver server that knows the agent by its certificate", () => {
  it("a host behind a client certificate is powered off without a signature, and each request has a nonce", async () => {
    await using server = await startServer();
    const device = server.open();
    assert.equal((await device.identify(forever())).systemUUID, UUID);
    await device.forceOff(forever());
    assert.equal((await device.readPower(forever())).state, "Off");
    assert.equal(server.power(), "Off");
    for (const headers of server.requests) {
      assert.match(String(headers["ironfence-nonce"]), /^[0-9a-f]{32}$/);
      assert.equal(headers["ironfence-signature"], undefined);
    }
    assert.ok(!inspect(server.requests).includes("PRIVATE"));
  });

  it("an answer that does not repeat the nonce of its request proves nothing if the server knows a certificate", async () => {
    await using silent = await startServer("repeats no nonce");
    await assert.rejects(silent.open().readPower(forever()), hasCode("BadResponse"));
    await using cache = await startServer("repeats an earlier answer");
    const device = cache.open();
    assert.equal((await device.readPower(forever())).state, "On");
    await assert.rejects(device.readPower(forever()), hasCode("BadResponse"));
  });

  for (const [what, reply, code] of STRANGE) {
    it(`an order and a reading with a client certificate fail as ${code} if the answer is ${what}, and are sent once`, async () => {
      await using server = await startServer();
      server.answerAlways(reply);
      const timeouts = { connectTimeoutMs: 10_000, callTimeoutMs: reply === "hang" ? 300 : 20_000 };
      await assert.rejects(server.open({ timeouts }).readPower(forever()), hasCode(code));
      await assert.rejects(server.open({ timeouts }).forceOff(forever()), hasCode(code));
      assert.equal(server.power(), "On");
      assert.ok(server.requests.length <= 2, `${server.requests.length} requests`);
    });
  }

  it("a login by key still signs if it has a client certificate as well, and trusts no answer without a signature", async () => {
    await using server = await startServer();
    const device = server.open({ username: "ironfence", password: new Secret("0".repeat(32)) });
    await assert.rejects(device.readPower(forever()), hasCode("BadResponse"));
    assert.match(String(server.requests[0]?.["ironfence-signature"]), /^[0-9a-f]{64}$/);
  });

  it("the earlier end of a client certificate and a server certificate counts for both", async () => {
    await using server = await startServer();
    const short = await authority.issue({ commonName: "ironfence", usage: "client", validDays: 3 });
    const days = async (device: PowerDriver): Promise<number> => {
      await device.readPower(forever());
      return Math.round(((device.certificateUntilMs ?? 0) - Date.now()) / 86_400_000);
    };
    const certificate = { cert: short.certPem, key: new Secret(short.keyPem) };
    assert.deepEqual([await days(server.open({ certificate })), await days(server.open())], [3, 30]);
  });

  it("a client certificate that another authority has signed is refused, and the message says so", async () => {
    await using server = await startServer();
    const others = await createCertificateAuthority(systemClock, "others");
    const { certPem: cert, keyPem } = await others.issue({ commonName: "ironfence", usage: "client" });
    const device = server.open({ certificate: { cert, key: new Secret(keyPem) } });
    await assert.rejects(device.readPower(forever()), /close the connection if they refuse the client certificate/);
    assert.deepEqual(server.requests, []);
  });

  it("a client certificate is sent to no server whose certificate is not trusted, and orders go to none", async () => {
    await using server = await startServer();
    const others = await createCertificateAuthority(systemClock, "others");
    const device = server.open({ tls: { insecureSkipVerify: false, ca: others.certPem } });
    await assert.rejects(device.forceOff(forever()), hasCode("TlsUntrusted"));
    assert.deepEqual(server.requests, []);
  });

  it("a client certificate without a key that signs needs a server whose certificate is verified", () => {
    const open = (config: Partial<DeviceConfig>) => () => openDriver(config);
    assert.throws(open({ tls: { insecureSkipVerify: true } }), hasCode("Unsupported"));
    const { sha256Fingerprint } = serverCertificate;
    assert.doesNotThrow(open({ tls: { insecureSkipVerify: true, sha256Fingerprint } }));
    assert.throws(open({ address: "driver+http://127.0.0.1:9/one" }), hasCode("Unsupported"));
  });

  it("a client certificate and a key that do not belong together are refused, and no message has the key in it", async () => {
    const other = await authority.issue({ commonName: "other", usage: "client" });
    const broken = client.keyPem.replaceAll(/[A-Za-z]/gu, "A");
    const certificates: readonly [cert: string, key: string, RegExp][] = [
      [client.certPem, other.keyPem, /does not belong to/],
      [client.certPem, broken, /no PEM key/],
      [client.certPem, "", /no PEM key/],
      [client.keyPem, client.keyPem, /no PEM certificate/],
    ];
    for (const [cert, key, expected] of certificates) {
      assert.throws(
        () => openDriver({ certificate: { cert, key: new Secret(key) } }),
        (error) => {
          assert.ok(hasCode("AuthFailed")(error) && error instanceof BmcError);
          assert.match(error.message, expected);
          const body = key.split("\n")[1] ?? "";
          return body === "" || !inspect(error).includes(body);
        },
      );
    }
  });
});

describe("ironfence driver check with a client certificate", { concurrency: 3 }, () => {
  const withFiles = async (work: (flags: string[]) => Promise<void>): Promise<void> => {
    const folder = await mkdtemp(join(tmpdir(), "ironfence-certificate-"));
    const files = {
      "ca-file": authority.certPem,
      "client-cert-file": client.certPem,
      "client-key-file": client.keyPem,
    };
    try {
      const flags = await Promise.all(
        Object.entries(files).map(async ([flag, text]) => {
          await writeFile(join(folder, flag), text);
          return [`--${flag}`, join(folder, flag)];
        }),
      );
      await work(flags.flat());
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  };

  it("ironfence driver check with a client certificate finds each rule kept, and tries none about signatures", async () => {
    await using server = await startServer();
    await withFiles(async (flags) => {
      const { code, out, err } = await cli(["driver", "check", server.address, "--yes", ...flags]);
      assert.equal(code, 0, out + err);
      assert.match(out, /^√ no-certificate /mu);
      assert.match(out, /^√ other-certificate /mu);
      assert.doesNotMatch(out, /signed-body|replayed/);
      assert.equal(server.power(), "On");
    });
  });

  for (const [bug, rule] of Object.entries(FOUND_BY) as [Bug, string][]) {
    it(`ironfence driver check with a client certificate finds a server that ${bug} by the rule ${rule}`, async () => {
      await using server = await startServer(bug);
      await withFiles(async (flags) => {
        const { code, out } = await cli(["driver", "check", server.address, "--yes", ...flags]);
        assert.equal(code, 1, out);
        assert.match(out, new RegExp(`^× ${rule} `, "mu"));
      });
    });
  }

  it("ironfence driver check refuses a certificate without its key, and one for a BMC", async () => {
    await withFiles(async (flags) => {
      const half = await cli(["driver", "check", "driver://127.0.0.1:9/one", "--yes", ...flags.slice(0, 4)]);
      assert.deepEqual([half.code, /given together/.test(half.err)], [2, true], half.err);
      const bmc = await cli(["probe", "redfish://127.0.0.1:9", ...flags]);
      assert.deepEqual([bmc.code, /only a driver server/.test(bmc.err)], [2, true], bmc.err);
    });
  });
});
