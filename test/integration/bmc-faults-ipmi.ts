import { startIpmiMock } from "../../hack/ipmi-mock/server.ts";
import type { IpmiMock } from "../../hack/ipmi-mock/server.ts";
import type { FaultRule, Step } from "../../hack/ipmi-mock/faults.ts";
import type { Bmc } from "../../hack/rack/bmc.ts";
import { openDeviceOn } from "../lib/open-device.ts";
import { systemRandom as random } from "../../src/runtime/system.ts";
import { Secret } from "../../src/runtime/secret.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { PASSWORD } from "./bmc-fixture.ts";
import { all, cellClock, cellRack, changes, reads } from "./bmc-faults-cell.ts";
import type { CellWorld, Expected, Fault } from "./bmc-faults-cell.ts";

export interface IpmiCell extends CellWorld {
  mock: IpmiMock;
  bmc: Bmc;
}

export async function startIpmiCell(): Promise<IpmiCell> {
  const clock = cellClock();
  const rack = cellRack();
  const password = new Secret(PASSWORD);
  const mock = await startIpmiMock({ rack, clock, random, host: "one", username: "fence", password, sessionsMax: 16 });
  return {
    rack,
    clock,
    mock,
    host: rack.host("one"),
    bmc: rack.bmc("one"),
    open: (timeouts) =>
      openDeviceOn(clock)(
        { address: mock.address, username: "fence", password, tls: { insecureSkipVerify: false }, timeouts },
        { clock, logger: createLogger("silent") },
      ),
    sessionCount: () => mock.sessionCount,
    close: async () => {
      await mock.close();
      rack.stop();
    },
  };
}

type IpmiFault = Fault<IpmiCell>;
type Action = FaultRule["action"];

const HANDSHAKE: Step[] = ["OpenSession", "RAKP1", "RAKP3"];
const COMMANDS: Step[] = [
  "GetSystemGUID",
  "GetChassisStatus",
  "ChassisControl",
  "SetSystemBootOptions",
  "GetSystemBootOptions",
  "GetFRUInventoryAreaInfo",
  "ReadFRUData",
];

/** A fault of every command within a session. */
function inSession(
  name: string,
  action: Action,
  outcomes: IpmiFault["outcomes"],
  more: Partial<IpmiFault> & { times?: number } = {},
): IpmiFault {
  const { times, ...rest } = more;
  const rule = { steps: COMMANDS, action, ...(times !== undefined && { times }) };
  return { name, when: "later", outcomes, strike: ({ mock }) => void mock.addFault(rule), ...rest };
}
/** A fault of every step of the login. */
function inLogin(name: string, action: Action, expected: Expected, more: Partial<IpmiFault> = {}): IpmiFault {
  const strike = ({ mock }: IpmiCell): void => void mock.addFault({ steps: HANDSHAKE, action });
  return { name: `${name}, in the login`, when: "first", outcomes: all(expected), strike, ...more };
}
function other(name: string, strike: (world: IpmiCell) => void, more: Partial<IpmiFault> = {}): IpmiFault {
  return { name, when: "later", outcomes: {}, strike, ...more };
}

const WAITS = { waits: true };
/** Depending on the machine, the deadline of the answer or that of the call comes first. */
const UNUSABLE: Expected = ["BadResponse", "Timeout"];
/** Without a usable answer, the effect of an order is unknown. */
const DROPPED = { ...reads(UNUSABLE), ...changes("Timeout") };
const SILENT = { ...reads(["Timeout", "Unreachable"]), ...changes("Timeout") };
const NOBODY: Expected = ["Unreachable", "Timeout"];

/** Answers that the driver must not trust. */
const SPOILT: readonly [string, Action][] = [
  ["an answer that is cut short by a byte", { type: "truncate", bytes: 1 }],
  ["an answer that is cut short", { type: "truncate", bytes: 16 }],
  ["a huge answer", { type: "pad", bytes: 4_000 }],
  ["an answer to another request", { type: "wrongTag" }],
  ["an answer of another session", { type: "wrongSessionId" }],
  ["random bytes", { type: "garbage", bytes: 48 }],
];

export const IPMI_FAULTS: readonly IpmiFault[] = [
  ...SPOILT.map(([name, action]) => inSession(name, action, DROPPED, WAITS)),
  ...SPOILT.map(([name, action]) => inLogin(name, action, UNUSABLE, WAITS)),
  // A handshake message is read only up to its stated length. In a session, the authentication code covers every byte.
  inSession("an answer with a byte too many", { type: "pad", bytes: 1 }, DROPPED, WAITS),
  inLogin("an answer with a byte too many", { type: "pad", bytes: 1 }, "ok"),
  // RAKP message 2 does not show whether the password or the code is wrong.
  inSession("a wrong authentication code", { type: "badAuthCode" }, DROPPED, WAITS),
  inLogin("a wrong authentication code", { type: "badAuthCode" }, "AuthFailed"),
  inSession("an answer without protection", { type: "unprotected" }, DROPPED, WAITS),
  inSession("an answer whose number was used", { type: "staleSequence" }, DROPPED, WAITS),
  inSession("a wrong checksum", { type: "badChecksum" }, {}),
  inSession("slow answers", { type: "delay", delayMs: 100 }, {}),
  inSession("answers behind the deadline", { type: "delay", delayMs: 30_000 }, SILENT, WAITS),
  inSession("a hang before the effect", { type: "loseRequest" }, SILENT, WAITS),
  inSession("a hang after the effect", { type: "loseAnswer" }, SILENT, WAITS),
  inSession("one lost request", { type: "loseRequest" }, {}, { times: 1 }),
  inSession("one lost answer", { type: "loseAnswer" }, {}, { times: 1 }),
  inSession("requests that come late", { type: "lateRequest", delayMs: 300 }, {}),
  inSession(
    "a network that loses and doubles",
    { type: "badNetwork", lossPercent: 10, duplicatePercent: 30 },
    // By chance all four copies may be lost, or only old copies arrive.
    all(["ok", "Timeout", "BadResponse"]),
  ),
  inSession("doubled requests", { type: "duplicateRequest" }, {}),
  inSession("doubled answers", { type: "duplicateAnswer" }, {}),
  inSession("replayed answers", { type: "replay" }, {}),
  inSession("one answer behind the next", { type: "reorder" }, {}, { times: 1 }),
  inLogin("a hang", { type: "loseAnswer" }, "Timeout", WAITS),
  inLogin("doubled answers", { type: "duplicateAnswer" }, "ok"),
  inLogin("replayed answers", { type: "replay" }, "ok"),
  inLogin("algorithms that were not requested", { type: "otherAlgorithms", algorithms: [0, 0, 0] }, "BadResponse"),
  inLogin("session table full", { type: "status", status: 0x01 }, "Busy"),
  inLogin("a session that is not known", { type: "status", status: 0x02 }, "BadResponse"),
  inLogin("a privilege that is refused", { type: "status", status: 0x09 }, "PrivilegeTooLow"),
  inLogin("a user that is refused", { type: "status", status: 0x0d }, "AuthFailed"),
  inLogin("an unknown cipher suite", { type: "status", status: 0x11 }, "Unsupported"),
  inLogin("a refusal of one byte", { type: "status", status: 0x12, short: true }, ["BadResponse", "Timeout"]),
  inSession("completion code busy", { type: "completionCode", completionCode: 0xc0 }, all("Busy")),
  inSession("completion code timeout", { type: "completionCode", completionCode: 0xc3 }, all("Timeout")),
  inSession("completion code initialising", { type: "completionCode", completionCode: 0xd2 }, all("Busy")),
  // The identity consists of what the BMC returns. A part that it refuses counts as absent.
  inSession(
    "completion code privilege",
    { type: "completionCode", completionCode: 0xd4 },
    { ...all("PrivilegeTooLow"), identify: "ok" },
  ),
  inSession(
    "completion code wrong state",
    { type: "completionCode", completionCode: 0xd5 },
    { ...all("Refused"), identify: "ok" },
  ),
  inSession(
    "completion code unspecified",
    { type: "completionCode", completionCode: 0xff },
    { ...all("Refused"), identify: "ok" },
  ),
  inSession(
    "an empty answer",
    { type: "data", data: [] },
    { readPower: "BadResponse", readBootOverride: "BadResponse" },
    { promises: true },
  ),
  other(
    "no answer to the rise of privilege",
    ({ mock }) => {
      mock.addFault({ steps: ["SetSessionPrivilegeLevel"], action: { type: "loseAnswer" } });
    },
    { when: "first", outcomes: all("Timeout"), waits: true },
  ),
  other(
    "a privilege that the BMC does not grant",
    ({ mock }) => {
      mock.addFault({
        steps: ["SetSessionPrivilegeLevel"],
        action: { type: "completionCode", completionCode: 0x81 },
      });
    },
    { when: "first", outcomes: all("PrivilegeTooLow") },
  ),
  other(
    "no answer at first contact",
    ({ mock }) => {
      mock.addFault({ steps: ["GetChannelAuthenticationCapabilities"], action: { type: "loseAnswer" } });
    },
    { when: "first", outcomes: all(NOBODY), waits: true },
  ),
  other("a silent network", ({ bmc }) => bmc.setReachability("silent"), {
    outcomes: { ...reads(NOBODY), ...changes("Timeout") },
    waits: true,
  }),
  other("mains power cut", ({ host }) => host.cutMains(), {
    outcomes: { ...reads(NOBODY), ...changes("Timeout") },
    waits: true,
  }),
  inSession(
    "a restart of the BMC before the effect",
    { type: "restartBmc", effect: "none", downMs: 60_000 },
    { ...reads(NOBODY), ...changes("Timeout") },
    WAITS,
  ),
  inSession(
    "a restart of the BMC after the effect",
    { type: "restartBmc", effect: "done", downMs: 60_000 },
    { ...reads(NOBODY), ...changes("Timeout") },
    WAITS,
  ),
  // A reading logs in again. An order that was sent in a lost session is not repeated.
  other("a restart of the BMC between calls", ({ bmc }) => bmc.restart(0), {
    outcomes: { ...reads(["ok", "Timeout"]), ...changes("Timeout") },
    waits: true,
  }),
  other(
    "orders that take effect late",
    ({ bmc }) => {
      bmc.orderDelayMs = 600_000;
    },
    { promises: true },
  ),
  other("Off while on", ({ bmc }) => bmc.pretendPower("Off", 600_000), { lies: true }),
  other("flapping", ({ bmc }) => bmc.flapPower(600_000), { lies: true }),
  other("stale readings", ({ bmc }) => bmc.freezePower(600_000)),
  other(
    "another host's identity",
    ({ bmc }) => bmc.pretendIdentity({ systemUUID: "00000000-1111-4222-8333-444444444444" }),
    { lies: true },
  ),
  other("another host answers", ({ rack, bmc }) => bmc.rewire(rack.host("other")), { lies: true, promises: true }),
];
