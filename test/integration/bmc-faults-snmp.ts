import { OutletStrip } from "../../hack/snmp-mock/outlets.ts";
import type { Outlet } from "../../hack/snmp-mock/outlets.ts";
import type { FaultAction } from "../../hack/snmp-mock/faults.ts";
import { startSnmpMock } from "../../hack/snmp-mock/server.ts";
import type { SnmpMock } from "../../hack/snmp-mock/server.ts";
import { Secret } from "../../src/runtime/secret.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { openDeviceOn } from "../lib/open-device.ts";
import { cellClock, cellRack, orders } from "./bmc-faults-cell.ts";
import type { CellWorld, Expected, Fault } from "./bmc-faults-cell.ts";
import { PASSWORD } from "./bmc-fixture.ts";

export interface SnmpCell extends CellWorld {
  mock: SnmpMock;
  outlet: Outlet;
  /** Closes the port of the PDU. */
  unplug(): Promise<void>;
}

const USER = "fence";

/** Starts a PDU with the only outlet of a host in the rack. */
export async function startSnmpCell(): Promise<SnmpCell> {
  const clock = cellClock();
  const rack = cellRack();
  const strip = new OutletStrip(clock, rack, [{ index: "1", label: "one", host: "one", isMetered: true }], new Map());
  const user = { name: USER, authProtocol: "SHA-256", password: new Secret(PASSWORD) } as const;
  const mock = await startSnmpMock({ clock, mib: "APC-rPDU2", strip, serial: "PDU-1", user });
  const { address } = mock;
  const [outlet] = strip.outlets;
  if (outlet === undefined) throw new Error("there is one outlet");
  let closed: Promise<void> | undefined;
  const unplug = (): Promise<void> => (closed ??= mock.close());
  return {
    rack,
    clock,
    mock,
    outlet,
    host: rack.host("one"),
    unplug,
    open: (timeouts) =>
      openDeviceOn(clock)(
        {
          address: `${address}/1`,
          username: USER,
          password: new Secret(PASSWORD),
          tls: { insecureSkipVerify: false },
          timeouts,
        },
        { clock, logger: createLogger("silent") },
      ),
    sessionCount: () => 0,
    close: async () => {
      await unplug();
      strip.stop();
      rack.stop();
    },
  };
}

type SnmpFault = Fault<SnmpCell>;

const WAITS = { waits: true };

/** A fault of reads. Every operation begins with one. */
function onRead(name: string, action: FaultAction, expected: Expected, more: Partial<SnmpFault> = {}): SnmpFault {
  const outcomes = { identify: expected, readPower: expected, findOffObstacle: expected, ...orders(expected) };
  const strike = ({ mock }: SnmpCell): void => void mock.addFault({ steps: ["get"], action });
  return { name: `${name}, to a read`, when: "later", outcomes, strike, ...more };
}

function onOrder(name: string, action: FaultAction, expected: Expected, more: Partial<SnmpFault> = {}): SnmpFault {
  const strike = ({ mock }: SnmpCell): void => void mock.addFault({ steps: ["set"], action });
  return { name: `${name}, to an order`, when: "later", outcomes: orders(expected), strike, ...more };
}

/** The same fault of reads and of orders. */
function onBoth(name: string, action: FaultAction, expected: Expected, more: Partial<SnmpFault> = {}): SnmpFault[] {
  return [onRead(name, action, expected, more), onOrder(name, action, expected, more)];
}

function status(number: number): FaultAction {
  return { type: "errorStatus", status: number };
}

export const SNMP_FAULTS: readonly SnmpFault[] = [
  ...onBoth("no answer, before the effect", { type: "loseRequest" }, "Timeout", WAITS),
  ...onBoth("no answer, after the effect", { type: "loseAnswer" }, "Timeout", WAITS),
  ...onBoth("an answer behind the deadline", { type: "delay", delayMs: 30_000 }, "Timeout", WAITS),
  ...onBoth("a slow answer", { type: "delay", delayMs: 100 }, "ok"),
  ...onBoth("an answer that comes twice", { type: "duplicate" }, "ok"),
  ...onBoth("an answer that is not SNMP", { type: "garbage" }, "Timeout", WAITS),
  ...onBoth("half an answer", { type: "truncate" }, "Timeout", WAITS),
  ...onBoth("tooBig", status(1), "BadResponse"),
  ...onBoth("genErr", status(5), "Refused"),
  ...onBoth("noAccess", status(6), "PrivilegeTooLow"),
  ...onBoth("resourceUnavailable", status(13), "Busy"),
  ...onBoth("authorizationError", status(16), "PrivilegeTooLow"),
  ...onBoth("notWritable", status(17), "PrivilegeTooLow"),
  ...onBoth("inconsistentName", status(18), "SystemNotFound"),
  ...onBoth("an error-status that is not known", status(99), "Refused"),
  ...onBoth("an unsigned answer of a stranger before the right one", { type: "forge", as: "plain" }, "ok"),
  ...onBoth(
    "an answer of a stranger as another engine before the right one",
    { type: "forge", as: "otherEngine" },
    "ok",
  ),
  ...onBoth("a wrongly signed answer before the right one", { type: "forge", as: "signed" }, "ok"),
  ...onBoth("a Report of a stranger before the right answer", { type: "forge", as: "report" }, "AuthFailed"),
  ...onBoth("a restart of the PDU", { type: "reboot", downMs: 60_000 }, "Timeout", WAITS),
  onRead("no such instance", { type: "noSuchInstance" }, "SystemNotFound"),
  onRead("texts for numbers", { type: "wrongTypes" }, "BadResponse"),
  onRead("the values of other objects", { type: "otherObjects" }, "BadResponse"),
  onRead("too few values", { type: "fewerValues" }, "BadResponse"),
  {
    name: "numbers that the MIB does not know",
    when: "later",
    outcomes: { findOffObstacle: "PowerUnreadable" },
    strike: ({ mock }) => void mock.addFault({ steps: ["get"], action: { type: "unknownValues" } }),
    reading: "Unknown",
  },
  {
    name: "another PDU at the address",
    when: "later",
    outcomes: orders("Refused"),
    identified: true,
    strike: ({ mock }) => {
      mock.serial = "PDU-2";
    },
    reading: "Unknown",
  },
  {
    name: "a PDU that has counted a boot",
    when: "later",
    outcomes: {},
    strike: ({ mock }) => mock.reboot(0),
    reading: "On",
  },
  {
    name: "an outlet that is welded on and shown off",
    when: "later",
    outcomes: {},
    strike: ({ outlet }) => {
      outlet.faults.isWelded = true;
      outlet.order(false);
    },
    reading: "Changing",
    promises: true,
  },
  {
    name: "an outlet that is shown off, and whose meter has gone",
    when: "later",
    outcomes: { findOffObstacle: "PowerUnreadable" },
    strike: ({ outlet }) => {
      outlet.faults.isWelded = true;
      outlet.faults.hasLostMeter = true;
      outlet.order(false);
    },
    reading: "Unknown",
    promises: true,
  },
  {
    name: "an outlet whose order waits",
    when: "later",
    outcomes: {},
    strike: ({ outlet }) => {
      outlet.faults.delayMs = 600_000;
      outlet.order(false);
    },
    reading: "Changing",
    promises: true,
  },
  {
    name: "a PDU that is gone",
    when: "later",
    outcomes: {
      identify: "Unreachable",
      readPower: "Unreachable",
      findOffObstacle: "Unreachable",
      ...orders("Unreachable"),
    },
    strike: (world) => void world.unplug(),
  },
];
