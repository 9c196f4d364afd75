import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { startIpmiMock } from "../../hack/ipmi-mock/server.ts";
import type { IpmiMock } from "../../hack/ipmi-mock/server.ts";
import { createCertificateAuthority } from "../../hack/lib/pki.ts";
import type { Rack } from "../../hack/rack/rack.ts";
import { createRack } from "../../hack/rack/rack.ts";
import { startRedfishMock } from "../../hack/redfish-mock/server.ts";
import type { RedfishMock } from "../../hack/redfish-mock/server.ts";
import { CommandFailure, EXIT_FAILURE, EXIT_REFUSED, EXIT_USAGE } from "../../src/cli/errors/failures.ts";
import { Secret } from "../../src/runtime/secret.ts";
import { systemClock, systemRandom } from "../../src/runtime/system.ts";
import type { CliOptions, CliResult } from "./cli-fixture.ts";
import { cli } from "./cli-fixture.ts";

// Powers one host by the addresses of its Redfish and IPMI BMCs, without a cluster.

const PASSWORD = "correct horse & battery";
const LOGIN = { IRONFENCE_BMC_USERNAME: "fencing", IRONFENCE_BMC_PASSWORD: PASSWORD };
const MAIN = fileURLToPath(new URL("../../src/main.ts", import.meta.url));

let folder: string;
let caFile: string;
let passwordFile: string;
let pair: { cert: string; key: string };
let fingerprint: string;
let rack: Rack;
let redfish: RedfishMock;
let ipmi: IpmiMock;
let printed = "";

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "ironfence-power-"));
  caFile = join(folder, "ca.pem");
  passwordFile = join(folder, "password");
  const host = { name: "one", serialNumber: "SN-1", powerOffDelayMs: 300, powerOnDelayMs: 100, bootMs: 100 };
  const deps = { clock: systemClock, random: systemRandom };
  rack = createRack({ ...deps, hosts: [host] });
  const authority = await createCertificateAuthority(systemClock, "test BMCs");
  const tls = await authority.issue({ commonName: "bmc", ipAddresses: ["127.0.0.1"], usage: "server" });
  pair = { cert: tls.certPem, key: tls.keyPem };
  fingerprint = tls.sha256Fingerprint;
  const login = { username: "fencing", password: new Secret(PASSWORD) };
  redfish = await startRedfishMock({ ...deps, ...login, rack, tls });
  // IPMI 2.0 takes passwords of at most 20 bytes.
  ipmi = await startIpmiMock({
    ...deps,
    rack,
    host: "one",
    username: "fencing",
    password: new Secret("short-password"),
  });
  await writeFile(caFile, authority.certPem);
  await writeFile(passwordFile, `${PASSWORD}\n`, { mode: 0o600 });
});

afterEach(() => redfish.clearFaults());

after(async () => {
  for (const secret of [PASSWORD, "short-password"])
    assert.ok(!printed.includes(secret), "no command printed a password");
  await redfish.close();
  await ipmi.close();
  rack.stop();
  await rm(folder, { recursive: true });
});

async function ironfence(inputs: readonly string[], options: CliOptions = {}): Promise<CliResult> {
  const result = await cli(inputs, options);
  printed += result.out + result.err;
  return result;
}

/** Runs a command on the Redfish BMC, whose certificate is trusted. */
function onRedfish(command: string, options: CliOptions = { env: LOGIN }): Promise<CliResult> {
  return ironfence([...command.split(" "), redfish.url, "--ca-file", caFile], options);
}

function orderTypes(): string[] {
  return rack.host("one").orders.map(({ type }) => type);
}

describe("ironfence bmc reset ADDRESS", () => {
  test("ironfence bmc reset ADDRESS restarts the BMC over IPMI, and leaves its host on; without agreement it sends nothing", async () => {
    const before = rack.bmc("one").lastRestartMs;
    const env = { ...LOGIN, IRONFENCE_BMC_PASSWORD: "short-password" };
    const refused = await ironfence(["bmc", "reset", ipmi.address], { env });
    assert.equal(refused.code, EXIT_REFUSED, refused.err);
    const denied = await ironfence(["bmc", "reset", ipmi.address], { env, answers: ["no"] });
    assert.equal(denied.code, EXIT_REFUSED, denied.err);
    assert.equal(rack.bmc("one").lastRestartMs, before);
    const from = orderTypes().length;
    const done = await ironfence(["bmc", "reset", ipmi.address, "--yes"], { env });
    assert.equal(done.code, 0, done.err);
    assert.match(done.out, /the restart was ordered/);
    assert.ok(rack.bmc("one").lastRestartMs > before);
    assert.equal(rack.host("one").power, "On");
    assert.deepEqual(orderTypes().slice(from), []);
    // Waits until the BMC answers again, for the other tests.
    await delay(9_000);
  });

  test("ironfence bmc reset ADDRESS restarts the BMC over Redfish by its Manager's Reset", async () => {
    const before = rack.bmc("one").lastRestartMs;
    const done = await onRedfish("bmc reset --yes");
    assert.equal(done.code, 0, done.err);
    assert.ok(rack.bmc("one").lastRestartMs > before);
    assert.equal(rack.host("one").power, "On");
    await delay(9_000);
  });

  test("ironfence bmc reset ADDRESS has its help, with the exit codes", async () => {
    const { code, out } = await ironfence(["bmc", "reset", "--help"]);
    assert.equal(code, 0);
    assert.match(out, /Manager\.Reset over Redfish.*Exit codes: 0 sent/s);
  });
});

describe("ironfence power ADDRESS", () => {
  test("ironfence power ADDRESS reads, powers off with a proof, and powers on, over Redfish", async () => {
    const status = await onRedfish("power status");
    assert.equal(status.code, 0, status.err);
    assert.match(status.out, /^HOST +POWER +BMC REPORTS\n\S+ +On +On\n$/);
    const from = orderTypes().length;
    const off = await onRedfish("power off --yes");
    assert.equal(off.code, 0, off.err);
    assert.match(off.out, /off: proven by two fresh reads/);
    assert.match(off.err, /serial number SN-1/);
    assert.equal(rack.host("one").power, "Off");
    const on = await onRedfish("power on -o json");
    assert.equal(on.code, 0, on.err);
    assert.equal(JSON.parse(on.out).proven, true);
    assert.deepEqual(orderTypes().slice(from), ["ForceOff", "On"]);
    assert.equal(redfish.sessionCount, 0);
  });

  test("ironfence power ADDRESS cycles over IPMI, in this order: off, proven, on", async () => {
    const from = orderTypes().length;
    const env = { ...LOGIN, IRONFENCE_BMC_PASSWORD: "short-password" };
    const { code, out, err } = await ironfence(["power", "cycle", ipmi.address, "--yes", "-o", "json"], { env });
    assert.equal(code, 0, err);
    const report = JSON.parse(out);
    assert.deepEqual(
      report.orders.map(({ order, proven, state }: Record<string, unknown>) => [order, proven, state]),
      [
        ["Off", true, "Off"],
        ["On", true, "On"],
      ],
    );
    assert.deepEqual(orderTypes().slice(from), ["ForceOff", "On"]);
    assert.equal(ipmi.sessionCount, 0);
  });

  test("ironfence power ADDRESS asks before it powers off an unknown host, and refuses without a terminal", async () => {
    const from = orderTypes().length;
    const inScript = await onRedfish("power off");
    assert.equal(inScript.code, EXIT_REFUSED);
    const denied = await onRedfish("power cycle", { env: LOGIN, answers: ["no"] });
    assert.equal(denied.code, EXIT_REFUSED);
    assert.match(denied.asked[0]?.question ?? "", /^power off https:.*Type yes/);
    assert.deepEqual(orderTypes().slice(from), []);
  });

  test("ironfence power ADDRESS does not take an answer for a proof: a host that stays on is not off, and is not cycled", async () => {
    // The BMC accepts the order and does nothing.
    redfish.addFault({ match: { method: "POST", path: "Reset" }, action: { type: "status", status: 204 } });
    const { code, out, err } = await onRedfish("power cycle --yes --timeout 1200ms -o json");
    assert.equal(code, EXIT_FAILURE);
    const report = JSON.parse(out);
    assert.equal(report.proven, false);
    assert.deepEqual(
      report.orders.map(({ order }: { order: string }) => order),
      ["Off"],
    );
    assert.match(err, /not proven off after .*; last reading: On/);
    assert.equal(redfish.sessionCount, 0);
  });

  test("ironfence power ADDRESS judges an order whose answer was lost by the power state", async () => {
    redfish.addFault({ match: { method: "POST", path: "Reset" }, times: 1, action: { type: "drop", effect: "done" } });
    const from = orderTypes().length;
    const { code, out, err } = await onRedfish("power off --yes");
    assert.equal(code, 0, err);
    assert.match(err, /the answer was lost .*the power state will show the result/);
    assert.match(out, /off: proven/);
    assert.deepEqual(orderTypes().slice(from), ["ForceOff"], "it is not sent twice");
    assert.equal((await onRedfish("power on")).code, 0);
  });

  test("ironfence power ADDRESS ends its session if it is stopped while it waits, and says so in one line", async () => {
    redfish.addFault({ match: { method: "POST", path: "Reset" }, action: { type: "status", status: 204 } });
    const stop = new AbortController();
    const { code, err } = await onRedfish("power off --yes", {
      env: LOGIN,
      signal: stop.signal,
      onNote: (line) => {
        if (line.includes("the BMC reports")) stop.abort(new CommandFailure("Stopped", "stopped by SIGTERM"));
      },
    });
    assert.equal(code, EXIT_FAILURE);
    assert.match(err, /^ironfence: \[Stopped\] [^\n]*(?:aborted|stopped by SIGTERM)[^\n]*\n$/m);
    assert.doesNotMatch(err, / at .*\.ts:/);
    assert.equal(redfish.sessionCount, 0);
  });

  for (const [moment, match, action] of [
    ["logs in", { method: "POST", path: "Sessions" }, { type: "delay", delayMs: 1_000 }],
    ["waits for the answer to its order", { method: "POST", path: "Reset" }, { type: "hang", effect: "none" }],
  ] as const) {
    test(`ironfence power ADDRESS leaves no session if the process is asked to end while it ${moment}`, async () => {
      redfish.addFault({ match, action });
      const child = spawn(process.execPath, [MAIN, "power", "off", redfish.url, "--ca-file", caFile, "--yes"], {
        stdio: ["ignore", "ignore", "pipe"],
        env: { PATH: process.env["PATH"], ...LOGIN },
      });
      let text = "";
      child.stderr.on("data", (chunk: Buffer) => (text += chunk.toString()));
      const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
      const from = redfish.requests.length;
      const isThere = (): boolean => redfish.requests.slice(from).some(({ path }) => path.includes(match.path));
      for (const endMs = Date.now() + 30_000; !isThere() && Date.now() < endMs;) await delay(20);
      child.kill("SIGTERM");
      assert.equal(await ended, EXIT_FAILURE, text);
      assert.match(text, /^ironfence: .*$/m);
      assert.equal(redfish.sessionCount, 0);
    });
  }

  test("ironfence power ADDRESS says in one line if the BMC refuses", async () => {
    redfish.addFault({ match: { method: "POST", path: "Reset" }, action: { type: "status", status: 403 } });
    const refused = await onRedfish("power on");
    assert.equal(refused.code, EXIT_FAILURE);
    assert.match(
      refused.err,
      /^ironfence: \[BMCPrivilegeTooLow\] .*403.* \(docs\/reference\/reasons\.md#bmcprivilegetoolow\)$/m,
    );
    assert.doesNotMatch(refused.err, / at .*\.ts:/, "no stack for what a user can fix");
    const asJson = await onRedfish("power on -o json");
    const { error } = JSON.parse(asJson.err.slice(asJson.err.indexOf('{"error"'))) as {
      error: Record<string, unknown>;
    };
    assert.equal(error["reason"], "BMCPrivilegeTooLow");
    assert.equal(error["page"], "docs/reference/reasons.md#bmcprivilegetoolow");
  });

  test("ironfence power ADDRESS needs an address or a target, and an address that can be read", async () => {
    for (const inputs of [["status"], ["status", redfish.url, "--target", "n1"]]) {
      const { code, err } = await ironfence(["power", ...inputs], { env: LOGIN });
      assert.equal(code, EXIT_USAGE);
      assert.match(
        err,
        /^ironfence: \[CommandLineInvalid\] give either the ADDRESS of a BMC or --target NAME \(docs[^)]+\)\n$/,
      );
    }
    const { code, err, asked } = await ironfence(["power", "status", "gopher://bmc"], { answers: [] });
    assert.equal(code, EXIT_USAGE);
    assert.deepEqual(asked, [], "no user is asked for its password");
    assert.match(err, /^ironfence: \[CommandLineInvalid\] cannot use the BMC address "gopher:\/\/bmc"[^\n]*\n$/);
  });
});

describe("ironfence probe ADDRESS", () => {
  test("ironfence probe ADDRESS finds all that a fence needs, over Redfish and IPMI, and leaves no session", async () => {
    const from = orderTypes().length;
    const overRedfish = await onRedfish("probe");
    assert.equal(overRedfish.code, 0, overRedfish.err);
    assert.match(overRedfish.out, /^orders +ok +ForceOff and On \(listed: On, ForceOff, /m);
    assert.match(overRedfish.out, /^session +ok /m);
    const env = { ...LOGIN, IRONFENCE_BMC_PASSWORD: "short-password" };
    const overIpmi = await ironfence(["probe", ipmi.address, "-o", "json"], { env });
    assert.equal(overIpmi.code, 0, overIpmi.err);
    assert.ok(
      JSON.parse(overIpmi.out).checks.every(({ result }: { result: string }) => result === "ok"),
      overIpmi.out,
    );
    assert.deepEqual(orderTypes().slice(from), []);
    assert.equal(redfish.sessionCount + ipmi.sessionCount, 0);
  });

  test("ironfence probe ADDRESS finds an account that may read and not power", async () => {
    const deps = { clock: systemClock, random: systemRandom };
    const mock = await startRedfishMock({ ...deps, rack, username: "fencing", password: new Secret(PASSWORD) });
    const properties = { AssignedPrivileges: ["Login", "ConfigureSelf"] };
    mock.addFault({ match: { path: "Roles/" }, action: { type: "override", properties } });
    try {
      const { code, out } = await ironfence(["probe", mock.url], { env: LOGIN });
      assert.equal(code, EXIT_FAILURE);
      assert.match(out, /^orders +failed +.*lacks ConfigureComponents: give the account a role/m);
    } finally {
      await mock.close();
    }
  });

  test("ironfence probe ADDRESS takes a list of what the BMC takes in the present state for no fault", async () => {
    const allowed = { "ResetType@Redfish.AllowableValues": ["ForceOff", "GracefulShutdown"] };
    const Actions = { "#ComputerSystem.Reset": { target: "/redfish/v1/x", ...allowed } };
    redfish.addFault({ match: { path: "Systems/1$" }, action: { type: "override", properties: { Actions } } });
    const { code, out } = await onRedfish("probe");
    assert.equal(code, 0, out);
    assert.match(out, /^orders +ok +ForceOff \(listed: ForceOff, GracefulShutdown\)/m);
  });

  test("ironfence probe ADDRESS shows the SHA-256 of a certificate that is not trusted, sends it no password, and takes the pin", async () => {
    const before = redfish.requests.length;
    const untrusted = await ironfence(["probe", redfish.url, "-o", "json"], { env: LOGIN });
    assert.equal(untrusted.code, EXIT_FAILURE);
    assert.equal(redfish.requests.length, before, "no request was made");
    const { checks } = JSON.parse(untrusted.out);
    const shown: string = checks.find(({ check }: { check: string }) => check === "tls").sha256Fingerprint;
    assert.equal(shown.replaceAll(":", "").toLowerCase(), fingerprint.replaceAll(":", "").toLowerCase());
    assert.equal(checks.find(({ check }: { check: string }) => check === "login").result, "skipped");
    const pinned = await ironfence(["probe", redfish.url, "--sha256-fingerprint", shown], { env: LOGIN });
    assert.equal(pinned.code, 0, pinned.err);
    const otherPin = await ironfence(["probe", redfish.url, "--sha256-fingerprint", "ab".repeat(32)], { env: LOGIN });
    assert.equal(otherPin.code, EXIT_FAILURE);
    assert.match(otherPin.out, /^tls +failed +not the pinned certificate/m);
  });

  test("ironfence probe ADDRESS names the one check that fails, whatever it is", async () => {
    const failing = async (inputs: readonly string[], env: Readonly<Record<string, string>>, check: string) => {
      const { code, out } = await ironfence(["probe", ...inputs, "-o", "json"], { env });
      assert.equal(code, EXIT_FAILURE);
      const failed = JSON.parse(out).checks.filter(({ result }: { result: string }) => result === "failed");
      assert.deepEqual(
        failed.map((found: { check: string }) => found.check),
        [check],
      );
    };
    const trusted = ["--ca-file", caFile];
    const wrong = { ...LOGIN, IRONFENCE_BMC_PASSWORD: "wrong" };
    await failing([redfish.url, ...trusted], wrong, "login");
    await failing([ipmi.address], wrong, "login");
    await failing([`${redfish.url}/redfish/v1/Systems/7`, ...trusted], LOGIN, "system");
    await failing(["https://127.0.0.1:1"], LOGIN, "connection");
    await failing(["https://bmc.invalid"], LOGIN, "name");
    await failing(["gopher://bmc"], LOGIN, "address");
    redfish.addFault({
      match: { path: "Systems/1$" },
      action: {
        type: "override",
        properties: {
          Actions: {
            "#ComputerSystem.Reset": {
              target: "/redfish/v1/x",
              "ResetType@Redfish.AllowableValues": ["On", "GracefulShutdown"],
            },
          },
        },
      },
    });
    await failing([redfish.url, ...trusted], LOGIN, "orders");
    redfish.clearFaults();
    redfish.addFault({
      match: { path: "Systems/1$" },
      action: { type: "override", properties: { PowerState: "Paused" } },
    });
    await failing([redfish.url, ...trusted], LOGIN, "power");
    redfish.clearFaults();
    redfish.addFault({ action: { type: "status", status: 404 } });
    await failing([redfish.url, ...trusted], LOGIN, "service");
  });

  test("ironfence probe ADDRESS reports that a session is left open", async () => {
    redfish.addFault({ match: { method: "DELETE" }, times: 1, action: { type: "status", status: 500 } });
    const { code, out } = await onRedfish("probe");
    assert.equal(code, 0);
    assert.match(out, /^session +warning +it could not be ended/m);
  });

  test("ironfence probe ADDRESS does not let a BMC write to the terminal what it likes", async () => {
    redfish.addFault({
      match: { path: "Systems/1$" },
      action: { type: "override", properties: { SerialNumber: "SN\u001b[2J\r\nsession ok" } },
    });
    const { out } = await onRedfish("probe");
    assert.ok(!out.includes("\u001b") && !out.includes("\r"));
    assert.doesNotMatch(out, /^session ok/m);
  });
});

test("old TLS is spoken if an option says so, and the failure names the option", async () => {
  const server = createServer(
    { ...pair, minVersion: "TLSv1", maxVersion: "TLSv1.1", ciphers: "DEFAULT@SECLEVEL=0" },
    (_request, response) => response.writeHead(404).end(),
  );
  await once(server.listen(0, "127.0.0.1"), "listening");
  const address = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  try {
    const refused = await ironfence(["probe", address, "--ca-file", caFile], { env: LOGIN });
    assert.equal(refused.code, EXIT_FAILURE);
    assert.match(refused.out, /^tls +failed +no common TLS version .*--tls-min-version/m);
    const spoken = await ironfence(["probe", address, "--ca-file", caFile, "--tls-min-version", "1.0"], { env: LOGIN });
    assert.match(spoken.out, /^tls +ok/m);
    const wrong = await ironfence(["probe", address, "--tls-min-version", "1"], { env: LOGIN });
    assert.equal(wrong.code, EXIT_USAGE);
  } finally {
    server.close();
  }
});

test("the IPMI cipher suites of an option are tried in the default's place; none that asks for no password", async () => {
  const env = { IRONFENCE_BMC_USERNAME: "fencing", IRONFENCE_BMC_PASSWORD: "short-password" };
  const third = await ironfence(["power", "status", ipmi.address, "--cipher-suites", "3"], { env });
  assert.equal(third.code, 0, third.err);
  const plain = await ironfence(["power", "status", ipmi.address, "--cipher-suites", "16"], { env });
  assert.match(plain.err, /cipher suite 16: .* no such cipher suite/);
  const none = await ironfence(["power", "status", ipmi.address, "--cipher-suites", "17,0"], { env });
  assert.equal(none.code, EXIT_USAGE);
  assert.match(none.err, /--cipher-suites: must be/);
});

describe("passwords", () => {
  test("passwords come from a file or the prompt as well, and the prompt does not show them", async () => {
    const file = await onRedfish(`power status --username fencing --password-file ${passwordFile}`, { env: {} });
    assert.equal(file.code, 0, file.err);
    const prompted = await onRedfish("power status", { env: {}, answers: ["fencing", PASSWORD] });
    assert.equal(prompted.code, 0, prompted.err);
    assert.deepEqual(prompted.asked, [
      { question: "User of the BMC: ", echo: true },
      { question: "Password: ", echo: false },
    ]);
  });

  test("passwords that are missing or cannot be read are reported before anything is sent", async () => {
    for (const [env, flags, words] of [
      [{}, "", /--username .* is required/],
      [{ IRONFENCE_BMC_USERNAME: "x" }, "", /a password is required: set IRONFENCE_BMC_PASSWORD/],
      [{ IRONFENCE_BMC_USERNAME: "x" }, " --password-file /nonexistent", /--password-file: \/nonexistent: ENOENT/],
      [{ IRONFENCE_BMC_USERNAME: "x" }, " --password-file /dev/zero", /larger than/],
    ] as const) {
      const { code, err } = await onRedfish(`power status${flags}`, { env });
      assert.equal(code, EXIT_USAGE);
      assert.match(err, words);
    }
    const noPem = await ironfence(["power", "status", redfish.url, "--ca-file", passwordFile], { env: LOGIN });
    assert.equal(noPem.code, EXIT_USAGE);
    assert.match(noPem.err, /--ca-file: .* contains no PEM certificate/);
    assert.ok(!noPem.err.includes(PASSWORD));
  });

  test("passwords on the command line are refused without being repeated", async () => {
    for (const flag of [["--password", "hunter2"], ["--password=hunter2"]]) {
      for (const command of [["power", "status"], ["power", "off"], ["probe"]]) {
        const { code, out, err } = await ironfence([...command, redfish.url, ...flag], { env: LOGIN });
        assert.equal(code, EXIT_USAGE);
        assert.match(err, /^ironfence: \[CommandLineInvalid\] --password: refused/);
        assert.ok(!(out + err).includes("hunter2"));
      }
    }
    const inAddress = await ironfence(["probe", "https://fencing:hunter2@127.0.0.1"], { env: LOGIN });
    assert.ok(!(inAddress.out + inAddress.err).includes("hunter2"));
  });

  test("passwords appear neither in the command line of the process nor in its output", async () => {
    const inputs = ["power", "status", redfish.url, "--ca-file", caFile, "-o", "json"];
    const child = spawn(process.execPath, [MAIN, ...inputs], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { PATH: process.env["PATH"], ...LOGIN },
    });
    let text = "";
    child.stdout.on("data", (chunk: Buffer) => (text += chunk.toString()));
    child.stderr.on("data", (chunk: Buffer) => (text += chunk.toString()));
    const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
    const commandLine = await readFile(`/proc/${child.pid}/cmdline`, "utf8");
    assert.equal(await ended, 0, text);
    assert.match(text, /"state":"On"/);
    for (const seen of [commandLine, text]) assert.ok(!seen.includes(PASSWORD));
  });
});
