import assert from "node:assert/strict";
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { eventually } from "../../../hack/e2e/eventually.ts";
import { assertReadFails, fenceDevice, forever, openPeer, overrideBoot } from "../../../hack/e2e/peers.ts";
import { installPythonTools } from "../../../hack/e2e/python-tools.ts";
import { freePorts } from "../../../hack/lib/ports.ts";
import type { DeviceConfig } from "../../../src/bmc/interface/device-config.ts";
import { startChild } from "../../../hack/lib/processes.ts";
import type { Child } from "../../../hack/lib/processes.ts";

// Our IPMI driver with BMC simulators of other projects.

const GUID = "3f8c1d52-6b0a-4e77-9a3e-0d5b8c1f2a44";
const INSTALL_TIMEOUT_MS = 5 * 60_000;
const READY_TIMEOUT_MS = 30_000;

let folder = "";
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "ironfence-ipmi-"));
});
after(() => rm(folder, { recursive: true, force: true }));

const open = (
  port: number,
  username: string,
  password: string,
  ipmi: DeviceConfig["ipmi"] = {},
): ReturnType<typeof openPeer> => openPeer({ address: `ipmi://127.0.0.1:${port}`, username, password, ipmi });

/** Waits until the simulator answers. */
async function untilReady(port: number, username: string, password: string, child: Child): Promise<void> {
  await eventually(`${child.name} answers`, READY_TIMEOUT_MS, async () => {
    if (!child.running) throw new Error(await child.ended);
    await using device = open(port, username, password);
    try {
      await device.readPower(forever());
      return true;
    } catch {
      return false;
    }
  });
}

for (const suite of ["3", "17"]) {
  void describe(`pyghmi's BMC with cipher suite ${suite}`, () => {
    let port = 0;
    let child: Child;
    before(async () => {
      [port = 0] = await freePorts(1);
      const script = fileURLToPath(new URL("pyghmi_bmc.py", import.meta.url));
      const logFile = join(folder, `pyghmi-${suite}.log`);
      const programs = await installPythonTools(() => undefined, AbortSignal.timeout(INSTALL_TIMEOUT_MS));
      child = startChild(`pyghmi ${suite}`, join(programs, "python"), [script, String(port), suite, GUID], { logFile });
      await untilReady(port, "admin", "password", child);
    });
    after(() => child?.stop());

    void test("the driver identifies, powers off and on, and sets the boot override of a host of pyghmi's BMC", async () => {
      await using device = open(port, "admin", "password");
      await fenceDevice(device, GUID);
      await overrideBoot(device);
    });

    void test("a wrong password is AuthFailed on the BMC of pyghmi", () =>
      assertReadFails(open(port, "admin", "wrong"), "AuthFailed"));
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
  after(() => child?.stop());

  const kept = async (file: string): Promise<string> => (await readFile(file, "utf8")).trim();

  void test("the driver identifies a host of ipmi_sim, and powers it off and on", async () => {
    await using device = open(port, "ipmiusr", "test");
    await fenceDevice(device, GUID);
    assert.equal(await kept(state), "1");
  });

  void test("a boot override takes effect, but reads as none, since this BMC never says that its flags are valid", async () => {
    await using device = open(port, "ipmiusr", "test");
    await device.setBootOverride("NetworkOnce", forever());
    assert.equal(await kept(`${state}.boot`), "pxe");
    assert.equal(await device.readBootOverride(forever()), "None");
    await device.setBootOverride("None", forever());
    assert.equal(await kept(`${state}.boot`), "none");
  });

  void test("a sensor of ipmi_sim that is above its critical threshold is an alarm, with the name in its record", async () => {
    await using device = open(port, "ipmiusr", "test");
    await device.identify(forever());
    const { sensors, incomplete } = (await device.readEvidence?.(forever())) ?? {};
    const text = `${SENSOR_NAME} is at or above its upper critical threshold`;
    assert.deepEqual([sensors, incomplete], [[{ topic: "Thermal", text }], undefined]);
  });

  void test("seventy sessions one after the other are each ended, so none is ever missing", async () => {
    for (let sessions = 0; sessions < 70; sessions += 1) {
      await using device = open(port, "ipmiusr", "test");
      assert.equal((await device.readPower(forever())).state, "On");
    }
  });

  for (const suite of [1, 2] as const) {
    void test(`ipmi_sim powers off and on with cipher suite ${suite}`, async () => {
      await using device = open(port, "ipmiusr", "test", { cipherSuites: [suite] });
      await fenceDevice(device, GUID);
    });
  }

  void test("a wrong password, and an unknown user, are AuthFailed", async () => {
    for (const [username, password] of [
      ["ipmiusr", "wrong"],
      ["nobody", "test"],
    ] as const) {
      await assertReadFails(open(port, username, password), "AuthFailed");
    }
  });
});

/** A compact record (43.2) of the temperature sensor 2. */
const SENSOR_NAME = "CPU1 Temp";
const SENSOR_RECORD = [
  [0x00, 0x00, 0x51, 0x02, 27 + SENSOR_NAME.length, 0x20, 0x00, 0x02, 0x03, 0x01, 0x67, 0x88, 0x01, 0x01],
  Array<number>(17).fill(0),
  [0xc0 | SENSOR_NAME.length, ...Buffer.from(SENSOR_NAME)],
]
  .flat()
  .map((byte) => `0x${byte.toString(16)}`);

/** The value is above the second of three thresholds: non-recoverable, critical and non-critical. */
const SIM_EMU = `mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr
sel_enable 0x20 1000 0x0a
sensor_add 0x20 0 2 0x01 0x01
sensor_set_threshold 0x20 0 2 settable 111000 0xa0 0x90 0x70 00 00 00
sensor_set_event_support 0x20 0 2 enable scanning per-state 000111111000000 000111111000000 000111111000000 000111111000000
sensor_set_value 0x20 0 2 0x95 0
main_sdr_add 0x20 ${SENSOR_RECORD.join(" ")}
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

/** The GUID is in the byte order of the specification, which is reversed. */
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
