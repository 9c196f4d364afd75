import assert from "node:assert/strict";
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { setTimeout as wait } from "node:timers/promises";
import { freePorts } from "../../../hack/lib/ports.ts";
import { startChild } from "../../../hack/lib/processes.ts";
import type { Child } from "../../../hack/lib/processes.ts";
import { run } from "../../../hack/lib/run.ts";
import { openDevice } from "../../../src/bmc/open-device.ts";
import { BmcError } from "../../../src/bmc/errors.ts";
import type { PowerDriver } from "../../../src/bmc/driver.ts";
import { Secret } from "../../../src/runtime/secret.ts";
import { systemClock } from "../../../src/runtime/system.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { PASSWORD } from "../../integration/bmc-fixture.ts";
import { startIpmiWorld, USERNAME } from "../../integration/ipmi-fixture.ts";

// Our driver against BMCs that others wrote, and our simulated BMC against clients that others wrote. It installs nothing:
//   apt-get install ipmitool freeipmi-tools openipmi
//   pip install pyghmi==1.6.19   (with IRONFENCE_PYGHMI_PYTHON naming the Python that has it; python3 where absent)

const PYTHON = process.env.IRONFENCE_PYGHMI_PYTHON ?? "python3";
const GUID = "3f8c1d52-6b0a-4e77-9a3e-0d5b8c1f2a44";
const COMMAND_TIMEOUT_MS = 30_000;
const READY_TIMEOUT_MS = 20_000;

const forever = (): AbortSignal => new AbortController().signal;
let folder = "";

before(async () => {
  const needed: [command: string, args: string[], from: string][] = [
    ["ipmitool", ["-V"], "Debian's ipmitool"],
    ["ipmipower", ["--version"], "Debian's freeipmi-tools"],
    ["ipmi_sim", ["--version"], "Debian's openipmi"],
    [PYTHON, ["-c", "import pyghmi"], "pip install pyghmi==1.6.19 (IRONFENCE_PYGHMI_PYTHON names its Python)"],
  ];
  for (const [command, args, from] of needed) {
    await run(command, args, { env: {}, timeoutMs: COMMAND_TIMEOUT_MS, signal: forever() }).catch((error: unknown) => {
      // ipmi_sim knows no option that ends it well.
      if (error instanceof Error && "code" in error && error.code === "ENOENT") {
        throw new Error(`${command} is missing: install it with ${from}`, { cause: error });
      }
      if (command === PYTHON) throw new Error(`${PYTHON} has no pyghmi: ${from}`, { cause: error });
    });
  }
  folder = await mkdtemp(join(tmpdir(), "ironfence-ipmi-"));
});

after(() => rm(folder, { recursive: true, force: true }));

function openPeer(port: number, username: string, password: string): PowerDriver {
  return openDevice(
    {
      address: `ipmi://127.0.0.1:${port}`,
      username,
      password: new Secret(password),
      tls: { insecureSkipVerify: false },
      timeouts: { connectTimeoutMs: 2_000, callTimeoutMs: 10_000 },
    },
    { clock: systemClock, logger: createLogger("silent") },
  );
}

/** Waits until a BMC of another make answers. */
async function untilReady(port: number, username: string, password: string, child: Child): Promise<void> {
  for (const endMs = performance.now() + READY_TIMEOUT_MS; ; await wait(100)) {
    const device = openPeer(port, username, password);
    try {
      await device.readPower(forever());
      return;
    } catch (error) {
      if (!child.running) throw new Error(await child.ended, { cause: error });
      if (performance.now() > endMs) throw new Error("not ready", { cause: error });
    } finally {
      await device.close();
    }
  }
}

async function walk(device: PowerDriver, systemUUID: string): Promise<void> {
  assert.equal((await device.identify(forever())).systemUUID, systemUUID);
  assert.equal((await device.readPower(forever())).state, "On");
  await device.forceOff(forever());
  assert.equal((await device.readPower(forever())).state, "Off");
  await device.forceOff(forever());
  assert.equal((await device.readPower(forever())).state, "Off");
  await device.setBootOverride("NetworkOnce", forever());
  assert.equal(await device.readBootOverride(forever()), "NetworkOnce");
  await device.setBootOverride("None", forever());
  assert.equal(await device.readBootOverride(forever()), "None");
  await device.on(forever());
  assert.equal((await device.readPower(forever())).state, "On");
}

for (const suite of ["3", "17"]) {
  void describe(`pyghmi's BMC with cipher suite ${suite}`, () => {
    let port = 0;
    let child: Child;
    before(async () => {
      [port = 0] = await freePorts(1);
      const script = fileURLToPath(new URL("pyghmi_bmc.py", import.meta.url));
      const logFile = join(folder, `pyghmi-${suite}.log`);
      child = startChild(`pyghmi ${suite}`, PYTHON, [script, String(port), suite, GUID], { logFile });
      await untilReady(port, "admin", "password", child);
    });
    after(() => child.stop());

    void test("identity, off, boot override, on", async () => {
      const device = openPeer(port, "admin", "password");
      await walk(device, GUID);
      await device.close();
    });

    void test("a wrong password is AuthFailed", async () => {
      const device = openPeer(port, "admin", "wrong");
      await assert.rejects(
        device.readPower(forever()),
        (error) => error instanceof BmcError && error.code === "AuthFailed",
      );
      await device.close();
    });
  });
}

void describe("ipmi_sim of OpenIPMI", () => {
  let port = 0;
  let child: Child;
  let state = "";

  before(async () => {
    [port = 0] = await freePorts(1);
    state = join(folder, "power");
    const hook = join(folder, "hook");
    await mkdir(join(folder, "sim"));
    await writeFile(state, "1");
    await writeFile(`${state}.boot`, "none");
    await writeFile(hook, HOOK);
    await chmod(hook, 0o755);
    await writeFile(join(folder, "lan.conf"), lanConf(port, `${hook} ${state}`));
    await writeFile(join(folder, "sim.emu"), SIM_EMU);
    const args = ["-c", join(folder, "lan.conf"), "-f", join(folder, "sim.emu"), "-s", join(folder, "sim"), "-n"];
    child = startChild("ipmi_sim", "ipmi_sim", args, { logFile: join(folder, "ipmi_sim.log") });
    await untilReady(port, "ipmiusr", "test", child);
  });
  after(() => child.stop());

  void test("identity, off, boot override, on", async () => {
    const device = openPeer(port, "ipmiusr", "test");
    await walk(device, GUID);
    await device.close();
    assert.equal((await readFile(state, "utf8")).trim(), "1");
  });

  void test("seventy sessions one after the other: each is ended, so none is ever missing", async () => {
    for (let sessions = 0; sessions < 70; sessions += 1) {
      const device = openPeer(port, "ipmiusr", "test");
      assert.equal((await device.readPower(forever())).state, "On");
      await device.close();
    }
  });

  void test("a wrong password, and an unknown user, are AuthFailed", async () => {
    for (const [username, password] of [
      ["ipmiusr", "wrong"],
      ["nobody", "test"],
    ] as const) {
      const device = openPeer(port, username, password);
      await assert.rejects(
        device.readPower(forever()),
        (error) => error instanceof BmcError && error.code === "AuthFailed",
      );
      await device.close();
    }
  });
});

for (const suite of ["3", "17"]) {
  void describe(`clients of other makes on our simulated BMC, cipher suite ${suite}`, () => {
    const options = { env: {}, timeoutMs: COMMAND_TIMEOUT_MS, signal: forever() };

    void test("ipmitool: status, off, on, GUID, FRU, boot device", async () => {
      await using world = await startIpmiWorld({
        host: { systemUUID: GUID, serialNumber: "SN-7", powerOffDelayMs: 0 },
      });
      const { host, mock } = world;
      const login = [
        "-I",
        "lanplus",
        "-C",
        suite,
        "-H",
        "127.0.0.1",
        "-p",
        String(mock.port),
        "-U",
        USERNAME,
        "-P",
        PASSWORD,
      ];
      const ipmitool = (...command: string[]): Promise<string> => run("ipmitool", [...login, ...command], options);
      assert.match(await ipmitool("power", "status"), /Power is on/);
      await ipmitool("power", "off");
      assert.match(await ipmitool("power", "status"), /Power is off/);
      assert.match(await ipmitool("mc", "guid"), new RegExp(GUID));
      assert.match(await ipmitool("fru", "print", "0"), /Product Serial\s*: SN-7/);
      await ipmitool("chassis", "bootdev", "pxe", "options=efiboot");
      assert.deepEqual(host.bootSetting, { enabled: "Once", target: "Pxe", mode: "UEFI" });
      assert.match(await ipmitool("chassis", "bootparam", "get", "5"), /Force PXE/);
      await ipmitool("power", "on");
      assert.deepEqual(
        host.orders.map(({ type }) => type),
        ["ForceOff", "On"],
      );
      assert.equal(mock.sessionCount, 0);
    });

    void test("ipmipower: status, off, on", async () => {
      await using world = await startIpmiWorld({ host: { powerOffDelayMs: 0 } });
      const { host, mock } = world;
      const login = ["-D", "LAN_2_0", "-I", suite, "-h", `127.0.0.1:${mock.port}`, "-u", USERNAME, "-p", PASSWORD];
      const ipmipower = (command: string): Promise<string> => run("ipmipower", [...login, command], options);
      assert.match(await ipmipower("--stat"), /: on/);
      assert.match(await ipmipower("--off"), /: ok/);
      assert.match(await ipmipower("--stat"), /: off/);
      assert.match(await ipmipower("--on"), /: ok/);
      assert.deepEqual(
        host.orders.map(({ type }) => type),
        ["ForceOff", "On"],
      );
    });
  });
}

const SIM_EMU = `mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr
mc_enable 0x20
`;

/** Called as `hook STATE … get power|boot` or `… set power|boot VALUE`. */
const HOOK = `#!/bin/sh
state=$1
while [ $# -gt 1 ]; do
  case "$1 $2" in
    "get power") echo "power:$(cat "$state")" ;;
    "set power") echo "$3" > "$state" ;;
    "get boot") echo "boot:$(cat "$state.boot")" ;;
    "set boot") echo "$3" > "$state.boot" ;;
  esac
  shift
done
`;

/** The GUID in the byte order of the specification, which is backwards. */
function lanConf(port: number, chassisControl: string): string {
  const guid = Buffer.from(GUID.replaceAll("-", ""), "hex").reverse().toString("hex");
  const auths = ["callback", "user", "operator", "admin"].map(
    (level) => `allowed_auths_${level} none md2 md5 straight`,
  );
  return `name "fence1"
set_working_mc 0x20
startlan 1
addr 127.0.0.1 ${port}
priv_limit admin
${auths.join("\n")}
guid ${guid}
endlan
chassis_control "${chassisControl}"
user 2 true "ipmiusr" "test" admin 10 none md2 md5 straight
`;
}
