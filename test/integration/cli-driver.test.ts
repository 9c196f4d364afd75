import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { cli } from "./cli-fixture.ts";
import { KEY, KEY_ID, startFakeDriver } from "./driver-fixture.ts";
import type { Bug } from "./driver-fixture.ts";

// Runs `ironfence driver check` on a server that follows every rule of the contract, and on servers that each break
// one.

interface Report {
  ok: boolean;
  rules: { rule: string; result: string; detail: string }[];
}

const env = { IRONFENCE_BMC_USERNAME: KEY_ID, IRONFENCE_BMC_PASSWORD: KEY };

/** The rule that finds each bug. */
const FOUND_BY: Readonly<Record<Bug, string>> = {
  "answers unsigned": "status",
  "signs without the nonce": "status",
  "accepts any key": "other-key",
  "accepts a nonce twice": "replayed-nonce",
  "accepts any time": "old-time",
  "ignores the path in the signature": "signed-path",
  "ignores the body in the signature": "signed-body",
  "compares the first digits of a signature": "whole-signature",
  "accepts the beginning of a signature": "whole-signature",
  "powers a host that does not exist": "unknown-host",
  "powers a host whose name begins a path": "unknown-host",
  "ignores the end of a path": "unknown-request",
  "ignores the identity of an order": "other-identity",
  "compares one value of an identity": "other-identity",
  "orders without an identity": "no-identity",
  "fails to power off twice": "off-again",
  "fails to power on twice": "on-again",
  "restarts a host that is on": "on-again",
  "shows Off, then On": "off",
  "never powers off": "off",
  "has no identity": "identity",
  "has no known state": "status",
  "waits for the slowest client": "slow-clients",
  "serves one connection at a time": "slow-clients",
  "takes any operation": "unknown-request",
  "reads a cache": "off",
  "accepts orders without a signature": "unsigned",
  "verifies a signature only if there is one": "unsigned",
  "carries out refused orders late": "no-late-effect",
  "is off": "status",
};

describe("ironfence driver check", { concurrency: 24 }, () => {
  it("ironfence driver check prints a line for each rule of a server that keeps all of them", async () => {
    await using server = await startFakeDriver();
    const { out, err, code } = await cli(["driver", "check", server.address, "--yes"], { env });
    assert.equal(code, 0, out + err);
    const lines = out.trimEnd().split("\n");
    assert.equal(lines.length, 23);
    for (const line of lines) assert.match(line, /^√ [a-z-]+ +\S.*: \S/u);
    assert.equal(server.host.power, "On");
    assert.ok(server.orders.includes("one off"));
    assert.ok(!out.includes(KEY) && !err.includes(KEY));
  });

  it("ironfence driver check asks before it powers a host, and sends nothing without consent", async () => {
    await using server = await startFakeDriver();
    const refused = await cli(["driver", "check", server.address], { env, answers: ["no"] });
    assert.equal(refused.code, 3);
    assert.match(refused.err, /powers the host off and on again/);
    assert.equal((await cli(["driver", "check", server.address], { env })).code, 3);
    assert.deepEqual(server.requests, []);
  });

  it("ironfence driver check refuses addresses and keys that it cannot use, with exit codes for scripts", async () => {
    assert.equal((await cli(["driver", "check", "redfish://bmc.example", "--yes"], { env })).code, 2);
    assert.equal((await cli(["driver", "check", "driver://user@h/one", "--yes"], { env })).code, 2);
    const onLine = await cli(["driver", "check", "driver://h/one", "--password", KEY], { env });
    assert.equal(onLine.code, 2);
    assert.ok(!onLine.err.includes(KEY));
    const short = { ...env, IRONFENCE_BMC_PASSWORD: "short" };
    const { code, err } = await cli(["driver", "check", "driver://127.0.0.1:9/one", "--yes"], { env: short });
    assert.equal(code, 1);
    assert.match(err, /openssl rand/);
  });

  for (const [bug, rule] of Object.entries(FOUND_BY) as [Bug, string][]) {
    it(`ironfence driver check finds a server that ${bug} by the rule ${rule}`, async () => {
      await using server = await startFakeDriver(bug);
      // These two are found when the timeout is over.
      const timeout = bug === "never powers off" || bug === "reads a cache" ? "8s" : "120s";
      const url = server.address.replace("driver+", "");
      const { out, code } = await cli(["driver", "check", url, "--yes", "-o", "json", "--timeout", timeout], { env });
      const report = JSON.parse(out) as Report;
      const broken = report.rules.filter(({ result }) => result === "failed").map(({ rule }) => rule);
      assert.ok(broken.includes(rule), JSON.stringify(report.rules, undefined, 1));
      assert.equal(code, 1);
      assert.equal(report.ok, false);
      if (rule === "status" || rule === "identity") assert.deepEqual(server.orders, [], "no order without a status");
    });
  }

  it("ironfence driver check blames no other rule for a host that an order without a signature has powered off", async () => {
    await using server = await startFakeDriver("accepts orders without a signature");
    const { out } = await cli(["driver", "check", server.address, "--yes", "-o", "json"], { env });
    const { rules } = JSON.parse(out) as Report;
    assert.deepEqual(
      rules.filter(({ result }) => result === "failed").map(({ rule }) => rule),
      ["unsigned"],
    );
    assert.equal(server.host.power, "On");
  });

  it("ironfence driver check turns the host on again if a rule about its power is broken", async () => {
    await using server = await startFakeDriver("fails to power off twice");
    await cli(["driver", "check", server.address, "--yes"], { env });
    assert.equal(server.orders.at(-1), "one on");
  });
});

describe("a driver server from the command line", () => {
  it("a driver server from the command line is probed like a BMC, without an order", async () => {
    await using server = await startFakeDriver();
    const { out, code } = await cli(["probe", server.address, "-o", "json"], { env });
    const { ok, checks } = JSON.parse(out) as {
      ok: boolean;
      checks: { check: string; result: string; detail: string }[];
    };
    assert.deepEqual([ok, code], [true, 0], out);
    const of = (name: string): string => checks.find(({ check }) => check === name)?.detail ?? "";
    assert.match(of("address"), /^driver server at http/);
    assert.match(of("tls"), /signed, but cross the network in clear text/);
    assert.match(of("orders"), /every driver server must support them/);
    assert.match(of("power"), /^On/);
    assert.equal(of("session"), "", "there is no session");
    assert.deepEqual(server.orders, []);
    const unknown = await cli(["probe", server.address.replace("one", "nine"), "-o", "json"], { env });
    assert.equal(unknown.code, 1);
    assert.match(unknown.out, /"check":"system","result":"failed","detail":"[^"]*no host nine/);
  });

  it("a driver server from the command line powers a host off and on, and proves both", async () => {
    await using server = await startFakeDriver();
    const { out, code } = await cli(["power", "cycle", server.address, "--yes", "--timeout", "60s"], { env });
    assert.equal(code, 0, out);
    assert.deepEqual(server.orders, ["one off", "one on"]);
    assert.equal(server.host.power, "On");
  });
});

describe("ironfence driver check with a key in a file", () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "ironfence-key-"));
  });
  after(() => rm(folder, { recursive: true, force: true }));

  it("ironfence driver check with a key in a file reads it, and reports a wrong one as a broken status", async () => {
    await using server = await startFakeDriver();
    const file = join(folder, "key");
    await writeFile(file, `${"f".repeat(40)}\n`);
    const flags = ["--username", KEY_ID, "--password-file", file, "--yes"];
    const { out, code } = await cli(["driver", "check", server.address, ...flags]);
    assert.equal(code, 1);
    assert.match(out, /^× status .*key/mu);
    assert.match(out, /^- off /mu);
  });
});
