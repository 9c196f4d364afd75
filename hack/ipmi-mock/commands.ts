import type { Request } from "../../src/bmc/ipmi/packets/message.ts";
import type { Bmc } from "../rack/bmc.ts";
import type { PowerOrderType } from "../rack/events.ts";
import { fruImage } from "./fru-image.ts";
import { getSdr, getSensorReading, reserveSdr } from "./sdr.ts";
import { getSelEntry, getSelInfo, getSelTime, reserveSel } from "./sel.ts";
import type { Step } from "./faults.ts";

/** Privilege level that a session needs for a command. */
const USER = 2;
const OPERATOR = 3;
const ADMINISTRATOR = 4;
/** How long the BMC does not answer after a command to restart itself. */
const RESTART_MS = 8_000;

const OK = 0x00;
const INVALID_COMMAND = 0xc1;
const LENGTH_INVALID = 0xc7;
const OUT_OF_RANGE = 0xc9;
const NOT_PRESENT = 0xcb;
const INVALID_FIELD = 0xcc;
const PRIVILEGE_TOO_LOW = 0xd4;
const NOT_IN_THIS_STATE = 0xd5;
const PARAMETER_UNSUPPORTED = 0x80;

const CONTROL_ORDERS: Readonly<Record<number, PowerOrderType>> = {
  0: "ForceOff",
  1: "On",
  2: "PowerCycle",
  3: "ForceRestart",
  4: "Nmi",
  5: "GracefulShutdown",
};
const BOOT_DEVICES: Readonly<Record<number, "None" | "Pxe" | "Hdd">> = { 0: "None", 1: "Pxe", 2: "Hdd" };
/** The most bytes of the FRU inventory in one answer. */
const FRU_CHUNK_BYTES_MAX = 24;

export interface CommandAnswer {
  completionCode: number;
  data: readonly number[];
}

interface Command {
  step: Step;
  netFn: number;
  command: number;
  privilege: number;
  run(bmc: Bmc, data: readonly number[]): CommandAnswer;
}

const COMMANDS: readonly Command[] = [
  { step: "GetDeviceID", netFn: 0x06, command: 0x01, privilege: USER, run: () => ok(deviceId()) },
  { step: "ColdReset", netFn: 0x06, command: 0x02, privilege: ADMINISTRATOR, run: coldReset },
  { step: "GetSystemGUID", netFn: 0x06, command: 0x37, privilege: USER, run: (bmc) => ok([...systemGuid(bmc)]) },
  { step: "GetChassisStatus", netFn: 0x00, command: 0x01, privilege: USER, run: (bmc) => ok(chassisStatus(bmc)) },
  { step: "ChassisControl", netFn: 0x00, command: 0x02, privilege: OPERATOR, run: controlChassis },
  { step: "GetSystemRestartCause", netFn: 0x00, command: 0x07, privilege: USER, run: (bmc) => ok(restartCause(bmc)) },
  { step: "SetSystemBootOptions", netFn: 0x00, command: 0x08, privilege: OPERATOR, run: setBootOptions },
  { step: "GetSystemBootOptions", netFn: 0x00, command: 0x09, privilege: OPERATOR, run: getBootOptions },
  { step: "GetFRUInventoryAreaInfo", netFn: 0x0a, command: 0x10, privilege: USER, run: fruInfo },
  { step: "ReadFRUData", netFn: 0x0a, command: 0x11, privilege: USER, run: readFru },
  { step: "GetSensorReading", netFn: 0x04, command: 0x2d, privilege: USER, run: getSensorReading },
  { step: "ReserveSDR", netFn: 0x0a, command: 0x22, privilege: USER, run: reserveSdr },
  { step: "GetSDR", netFn: 0x0a, command: 0x23, privilege: USER, run: getSdr },
  { step: "GetSELInfo", netFn: 0x0a, command: 0x40, privilege: USER, run: getSelInfo },
  { step: "ReserveSEL", netFn: 0x0a, command: 0x42, privilege: USER, run: reserveSel },
  { step: "GetSELEntry", netFn: 0x0a, command: 0x43, privilege: USER, run: getSelEntry },
  { step: "GetSELTime", netFn: 0x0a, command: 0x48, privilege: USER, run: getSelTime },
];

/** The step that a request in a session belongs to. */
export function stepOf({ netFn, command }: Request): Step {
  if (netFn === 0x06 && command === 0x3b) return "SetSessionPrivilegeLevel";
  if (netFn === 0x06 && command === 0x3c) return "CloseSession";
  return find(netFn, command)?.step ?? "Other";
}

/** Carries a command out on a host. @param privilege the level of the session. */
export function runCommand(bmc: Bmc, { netFn, command, data }: Request, privilege: number): CommandAnswer {
  const known = find(netFn, command);
  if (known === undefined) return refuse(INVALID_COMMAND);
  if (privilege < known.privilege) return refuse(PRIVILEGE_TOO_LOW);
  return known.run(bmc, data);
}

function find(netFn: number, command: number): Command | undefined {
  return COMMANDS.find((known) => known.netFn === netFn && known.command === command);
}

/** Version 2.0 of IPMI, and chassis and FRU devices. */
function deviceId(): readonly number[] {
  return [0x20, 0x01, 0x01, 0x00, 0x02, 0x88, 0x00, 0x00, 0x00, 0x00, 0x00];
}

/** In the byte order of the SMBIOS structure, as most BMCs send it. */
export function systemGuid(bmc: Bmc): Buffer {
  const bytes = Buffer.from(bmc.identity().systemUUID.replaceAll("-", ""), "hex");
  return Buffer.concat([
    bytes.subarray(0, 4).reverse(),
    bytes.subarray(4, 6).reverse(),
    bytes.subarray(6, 8).reverse(),
    bytes.subarray(8),
  ]);
}

/** IPMI has no state "powering off". A host that can still write reads On. */
function chassisStatus(bmc: Bmc): readonly number[] {
  return [bmc.readPower() === "Off" ? 0x00 : 0x01, 0x00, 0x00];
}

/**
 * The cause of the last restart: the policy of the host after mains power returned, or a command over the LAN channel.
 */
function restartCause({ host }: Bmc): readonly number[] {
  const byPolicy = host.spec.restorePolicy === "AlwaysOn" ? 0x06 : 0x07;
  return [host.startedByMains ? byPolicy : 0x01, 0x01];
}

function coldReset(bmc: Bmc): CommandAnswer {
  bmc.restart(RESTART_MS);
  return ok([]);
}

function controlChassis(bmc: Bmc, [control = 0xff]: readonly number[]): CommandAnswer {
  const order = CONTROL_ORDERS[control];
  if (order === undefined) return refuse(INVALID_FIELD);
  return bmc.order(order) === "Refused" ? refuse(NOT_IN_THIS_STATE) : ok([]);
}

function setBootOptions(bmc: Bmc, data: readonly number[]): CommandAnswer {
  const [parameter = 0, flags = 0, device = 0] = data;
  // "Set in progress", flag clearing and acknowledgements are accepted and have no effect.
  if ((parameter & 0x7f) !== 5) return [0, 3, 4].includes(parameter & 0x7f) ? ok([]) : refuse(PARAMETER_UNSUPPORTED);
  if (data.length < 6) return refuse(LENGTH_INVALID);
  const target = BOOT_DEVICES[(device >> 2) & 0x0f];
  const isPersistent = (flags & 0x40) !== 0;
  if (target === undefined || isPersistent) return refuse(INVALID_FIELD);
  const isSet = (flags & 0x80) !== 0 && target !== "None";
  bmc.setBoot({
    enabled: isSet ? "Once" : "Disabled",
    target: isSet ? target : "None",
    mode: (flags & 0x20) !== 0 ? "UEFI" : "Legacy",
  });
  return ok([]);
}

function getBootOptions(bmc: Bmc, [parameter = 0]: readonly number[]): CommandAnswer {
  if ((parameter & 0x7f) !== 5) return refuse(PARAMETER_UNSUPPORTED);
  const { enabled, target, mode } = bmc.bootSetting;
  const flags = (enabled === "Once" ? 0x80 : 0) | (mode === "UEFI" ? 0x20 : 0);
  const device = target === "Pxe" ? 1 : target === "Hdd" ? 2 : 0;
  return ok([0x01, 0x05, flags, device << 2, 0, 0, 0]);
}

function fruInfo(bmc: Bmc, [id = 0xff]: readonly number[]): CommandAnswer {
  if (id !== 0) return refuse(NOT_PRESENT);
  const size = fruImage(bmc.identity()).length;
  return ok([size & 0xff, size >> 8, 0]);
}

function readFru(bmc: Bmc, data: readonly number[]): CommandAnswer {
  const [id = 0xff, low = 0, high = 0, count = 0] = data;
  if (id !== 0) return refuse(NOT_PRESENT);
  if (count > FRU_CHUNK_BYTES_MAX) return refuse(LENGTH_INVALID);
  const offset = low | (high << 8);
  const bytes = fruImage(bmc.identity()).subarray(offset, offset + count);
  return bytes.length === 0 ? refuse(OUT_OF_RANGE) : ok([bytes.length, ...bytes]);
}

function ok(data: readonly number[]): CommandAnswer {
  return { completionCode: OK, data };
}

function refuse(completionCode: number): CommandAnswer {
  return { completionCode, data: [] };
}
