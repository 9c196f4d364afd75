import { makeCertificates } from "../../hack/redfish-mock/certificates.ts";
import type { MockCertificates } from "../../hack/redfish-mock/certificates.ts";
import type { FaultRule } from "../../hack/redfish-mock/faults.ts";
import { startRedfishMock } from "../../hack/redfish-mock/server.ts";
import type { RedfishMock } from "../../hack/redfish-mock/server.ts";
import type { Bmc } from "../../hack/rack/bmc.ts";
import { openDeviceOn } from "../lib/open-device.ts";
import { systemRandom as random } from "../../src/runtime/system.ts";
import { Secret } from "../../src/runtime/secret.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { CHASSIS, PASSWORD, SESSIONS, SYSTEM } from "./bmc-fixture.ts";
import { all, cellClock, cellRack, orders, reads } from "./bmc-faults-cell.ts";
import type { CellWorld, Expected, Fault } from "./bmc-faults-cell.ts";

export interface RedfishCell extends CellWorld {
  mock: RedfishMock;
  bmc: Bmc;
}

let certificates: Promise<MockCertificates> | undefined;

/** @param scheme `http` if the fault does not concern TLS, because TLS takes time. */
export async function startRedfishCell(scheme: "http" | "https"): Promise<RedfishCell> {
  const clock = cellClock();
  const password = new Secret(PASSWORD);
  const rack = cellRack();
  const shown = scheme === "https" ? await (certificates ??= makeCertificates(clock)) : undefined;
  const mock = await startRedfishMock({
    rack,
    clock,
    random,
    hosts: ["one"],
    username: "fence",
    password,
    ...(shown !== undefined && { tls: shown.good, spoilt: shown.spoilt }),
  });
  return {
    rack,
    clock,
    mock,
    host: rack.host("one"),
    bmc: rack.bmc("one"),
    open: (timeouts) =>
      openDeviceOn(clock)(
        {
          address: `${mock.url}${SYSTEM}`,
          username: "fence",
          password,
          tls: { insecureSkipVerify: false, ...(shown !== undefined && { ca: shown.caPem }) },
          timeouts,
        },
        { clock, logger: createLogger("silent") },
      ),
    sessionCount: () => mock.sessionCount,
    close: async () => {
      await mock.close();
      rack.stop();
    },
  };
}

type RedfishFault = Fault<RedfishCell>;

/** A fault of every request, or of those that `match` selects. */
function fault(
  name: string,
  when: "first" | "later",
  rule: FaultRule,
  outcomes: RedfishFault["outcomes"],
  more: Partial<RedfishFault> = {},
): RedfishFault {
  return { name, when, outcomes, strike: ({ mock }) => void mock.addFault(rule), ...more };
}
function other(name: string, strike: (world: RedfishCell) => void, more: Partial<RedfishFault> = {}): RedfishFault {
  return { name, when: "later", outcomes: {}, strike, ...more };
}
const status = (code: number, expected: Expected): RedfishFault =>
  fault(`status ${code} to everything`, "later", { action: { type: "status", status: code } }, all(expected));
const badTls = (how: "expired" | "otherName" | "otherAuthority" | "oldVersion" | "garbage", expected: Expected) =>
  fault(`bad TLS: ${how}`, "first", { action: { type: "badTls", how } }, all(expected));

/** A Redfish error with this message. */
const refusal = (code: number, messageId: string): FaultRule["action"] => ({
  type: "status",
  status: code,
  headers: { "content-type": "application/json" },
  body: JSON.stringify({ error: { code: messageId, "@Message.ExtendedInfo": [{ MessageId: messageId }] } }),
});
/** Powers the host off at once without an order. Its BMC does not notice. */
function powerOff({ host }: RedfishCell): void {
  host.cutMains();
  host.restoreMains();
}
/** A chassis whose fault affects the readings of a host that is really off. */
const chassis = (what: string, action: FaultRule["action"], more: Partial<RedfishFault>): RedfishFault =>
  other(
    `a chassis that ${what}, of a host that is off`,
    (world) => {
      powerOff(world);
      world.mock.addFault({ match: { path: `${CHASSIS}$` }, action });
    },
    more,
  );
/** Powers the host off, and removes the identity from its System. */
function vanishIdentity(world: RedfishCell): void {
  powerOff(world);
  const properties = { UUID: null, SerialNumber: null };
  world.mock.addFault({ match: GET_SYSTEM, action: { type: "override", properties } });
}

const LOGIN = { method: "POST", path: SESSIONS };
const POST = { method: "POST", path: "Reset" };
const GET_SYSTEM = { method: "GET", path: `${SYSTEM}$` };
const WAITS = { waits: true };
const ENDS = { endsSessions: true };

export const REDFISH_FAULTS: readonly RedfishFault[] = [
  fault("slow answers", "later", { action: { type: "delay", delayMs: 100 } }, {}, ENDS),
  fault(
    "an answer byte by byte",
    "later",
    { action: { type: "trickle", everyMs: 40 } },
    { ...reads("Timeout"), setBootOverride: "Timeout" },
    WAITS,
  ),
  fault("a hang before the effect", "later", { action: { type: "hang", effect: "none" } }, all("Timeout"), WAITS),
  fault("a hang after the effect", "later", { action: { type: "hang", effect: "done" } }, all("Timeout"), WAITS),
  fault(
    "a hang of the login",
    "first",
    { match: LOGIN, action: { type: "hang", effect: "done" } },
    all("Timeout"),
    WAITS,
  ),
  fault("dropped before the effect", "later", { action: { type: "drop", effect: "none" } }, all("Unreachable")),
  fault("dropped after the effect", "later", { action: { type: "drop", effect: "done" } }, all("Unreachable")),
  fault(
    "dropped once, after the effect",
    "later",
    { times: 1, action: { type: "drop", effect: "done" } },
    orders("Unreachable"),
  ),
  status(400, "Refused"),
  status(401, "AuthFailed"),
  status(403, "PrivilegeTooLow"),
  status(405, "Unsupported"),
  status(409, "Refused"),
  status(412, "Refused"),
  status(429, "Busy"),
  status(500, "BadResponse"),
  status(503, "Busy"),
  fault(
    "status 404 for the System",
    "later",
    { match: GET_SYSTEM, action: { type: "status", status: 404 } },
    { ...reads("Busy"), setBootOverride: "Busy" },
  ),
  fault(
    "status 409 to orders",
    "later",
    { match: POST, action: { type: "status", status: 409 } },
    { forceOff: "Refused" },
  ),
  fault("status 503 to orders", "later", { match: POST, action: { type: "status", status: 503 } }, orders("Busy")),
  fault(
    "status 401 twice to valid sessions",
    "later",
    { times: 2, match: { path: `${SYSTEM}($|/)` }, action: { type: "status", status: 401 } },
    {},
    ENDS,
  ),
  fault("status 401 to every other request", "later", { every: 2, action: { type: "status", status: 401 } }, {}, ENDS),
  fault(
    "status 401 until a new login",
    "later",
    { times: 3, match: { path: `${SYSTEM}($|/)` }, action: { type: "status", status: 401 } },
    {},
    ENDS,
  ),
  fault("orders that change nothing refused", "later", { action: { type: "refuseNoChange", status: 409 } }, {}),
  fault(
    "status 412 once to a change",
    "later",
    { match: { method: "PATCH" }, times: 1, action: { type: "status", status: 412 } },
    {},
  ),
  fault("login refused", "first", { match: LOGIN, action: { type: "status", status: 401 } }, all("AuthFailed")),
  fault("login not ready", "first", { match: LOGIN, action: { type: "status", status: 503 } }, all("Busy")),
  fault("session table full", "first", { match: LOGIN, action: { type: "sessionsFull" } }, {}, ENDS),
  other(
    "session table full, and no basic authentication",
    ({ mock }) => {
      mock.addFault({ match: { path: "Systems" }, action: { type: "status", status: 401 } });
      mock.addFault({ match: LOGIN, action: { type: "sessionsFull" } });
    },
    { when: "first", outcomes: all("Busy") },
  ),
  fault(
    "a token without a Location",
    "first",
    { match: LOGIN, action: { type: "override", withoutHeaders: ["location"] } },
    {},
    ENDS,
  ),
  fault(
    "a session without a token",
    "first",
    { match: LOGIN, action: { type: "override", withoutHeaders: ["x-auth-token"] } },
    {},
    ENDS,
  ),
  fault(
    "a token, and nothing that says where its session is",
    "first",
    { match: LOGIN, action: { type: "override", withoutHeaders: ["location"], without: ["@odata.id", "Id"] } },
    {},
  ),
  fault("sessions disabled", "first", { match: LOGIN, action: refusal(403, "Base.1.8.ServiceDisabled") }, {}),
  fault(
    "a login that wants a new password",
    "first",
    { match: LOGIN, action: refusal(401, "Base.1.8.PasswordChangeRequired") },
    all("PrivilegeTooLow"),
  ),
  fault(
    "a session that wants a new password",
    "later",
    { action: refusal(403, "Base.1.8.PasswordChangeRequired") },
    all("PrivilegeTooLow"),
  ),
  fault("a task that never ends", "later", { action: { type: "task", endless: true } }, {}),
  fault(
    "a truncated answer",
    "later",
    { action: { type: "truncate" } },
    { ...reads(["BadResponse", "Unreachable"]), setBootOverride: ["BadResponse", "Unreachable"] },
  ),
  fault(
    "a huge answer",
    "later",
    { action: { type: "huge", sizeBytes: 4_000_000 } },
    { ...reads("BadResponse"), setBootOverride: "BadResponse" },
  ),
  fault(
    "a deep answer",
    "later",
    { action: { type: "deep", depth: 50_000 } },
    { ...reads("BadResponse"), setBootOverride: "BadResponse" },
  ),
  fault(
    "an answer that is not valid JSON",
    "later",
    { action: { type: "body", text: "<html>" } },
    { ...reads("BadResponse"), setBootOverride: "BadResponse" },
  ),
  fault("an answer that is not HTTP", "later", { action: { type: "garbage" } }, all("BadResponse")),
  fault(
    "a redirect to another host",
    "later",
    { action: { type: "status", status: 307, headers: { location: "http://192.0.2.1/redfish/v1/" } } },
    all("BadResponse"),
  ),
  fault(
    "plain HTTP that is redirected to HTTPS",
    "first",
    { action: { type: "status", status: 301, headers: { location: "https://192.0.2.1/redfish/v1/" } } },
    all("Unsupported"),
  ),
  fault(
    "a System without a Reset action",
    "first",
    { match: GET_SYSTEM, action: { type: "override", without: ["Actions"] } },
    { ...orders("Unsupported"), findOffObstacle: "OffNotOffered" },
  ),
  fault(
    "an action of another host",
    "first",
    {
      match: GET_SYSTEM,
      action: {
        type: "override",
        properties: { Actions: { "#ComputerSystem.Reset": { target: "http://192.0.2.1/x" } } },
      },
    },
    { ...orders("BadResponse"), findOffObstacle: "BadResponse" },
  ),
  fault(
    "an account that may not power hosts, as its role says",
    "later",
    { match: { path: "Roles/" }, action: { type: "override", properties: { AssignedPrivileges: ["Login"] } } },
    { findOffObstacle: "OffNotPermitted" },
    ENDS,
  ),
  fault(
    "permissions that cannot be read (401)",
    "later",
    { match: { path: "AccountService" }, action: { type: "status", status: 401 } },
    {},
    ENDS,
  ),
  fault(
    "a System that is something else",
    "later",
    { match: GET_SYSTEM, action: { type: "override", properties: { "@odata.type": "#Chassis.v1_20_0.Chassis" } } },
    {
      identify: "SystemNotFound",
      readPower: "SystemNotFound",
      findOffObstacle: "SystemNotFound",
      setBootOverride: ["ok", "SystemNotFound"],
      readBootOverride: ["ok", "SystemNotFound"],
    },
  ),
  fault(
    "no PowerState",
    "later",
    { action: { type: "override", without: ["PowerState"] } },
    { findOffObstacle: "PowerUnreadable" },
  ),
  fault(
    "a PowerState of PoweringOff",
    "later",
    { action: { type: "override", properties: { PowerState: "PoweringOff" } } },
    {},
  ),
  fault(
    "a PowerState of off",
    "later",
    { action: { type: "override", properties: { PowerState: "off" } } },
    { findOffObstacle: "PowerUnreadable" },
  ),
  fault(
    "a System that is Off in a chassis that is on",
    "later",
    { match: GET_SYSTEM, action: { type: "override", properties: { PowerState: "Off" } } },
    { findOffObstacle: "ChassisDisagrees" },
  ),
  chassis(
    "shows On forever",
    { type: "override", properties: { PowerState: "On" } },
    { reading: "Unknown", outcomes: { findOffObstacle: "ChassisDisagrees" } },
  ),
  chassis(
    "answers 403",
    { type: "status", status: 403 },
    { outcomes: { readPower: "PrivilegeTooLow", findOffObstacle: "ChassisUnreadable" } },
  ),
  chassis(
    "answers 500",
    { type: "status", status: 500 },
    { outcomes: { readPower: "BadResponse", findOffObstacle: "ChassisUnreadable" } },
  ),
  chassis("is missing", { type: "status", status: 404 }, { reading: "Off" }),
  badTls("expired", "TlsUntrusted"),
  badTls("otherName", "TlsUntrusted"),
  badTls("otherAuthority", "TlsUntrusted"),
  badTls("oldVersion", ["Unreachable", "TlsUntrusted"]),
  badTls("garbage", "Unreachable"),
  fault(
    "bad TLS: silent",
    "first",
    { action: { type: "badTls", how: "silent" } },
    all(["Unreachable", "Timeout"]),
    WAITS,
  ),
  other("connections refused", ({ bmc }) => bmc.setReachability("refused"), {
    when: "first",
    outcomes: all("Unreachable"),
  }),
  other("a silent network", ({ bmc }) => bmc.setReachability("silent"), {
    outcomes: all(["Unreachable", "Timeout"]),
    waits: true,
  }),
  other("mains power cut", ({ host }) => host.cutMains(), { outcomes: all(["Unreachable", "Timeout"]), waits: true }),
  fault(
    "a restart of the BMC before the effect",
    "later",
    { times: 1, action: { type: "restartBmc", effect: "none", downMs: 60_000 } },
    all("Timeout"),
    WAITS,
  ),
  fault(
    "a restart of the BMC after the effect",
    "later",
    { times: 1, action: { type: "restartBmc", effect: "done", downMs: 60_000 } },
    all("Timeout"),
    WAITS,
  ),
  other("a restart of the BMC between calls", ({ bmc }) => bmc.restart(0)),
  other(
    "orders that take effect late",
    ({ bmc }) => {
      bmc.orderDelayMs = 600_000;
    },
    { promises: true },
  ),
  fault(
    "orders answered and not carried out",
    "later",
    { match: POST, action: { type: "status", status: 204, body: "" } },
    {},
    { promises: true },
  ),
  other("Off while on", ({ bmc }) => bmc.pretendPower("Off", 600_000), { lies: true }),
  other("flapping", ({ bmc }) => bmc.flapPower(600_000), {
    // The ETag changes as well, and the chassis is read after the System.
    outcomes: { setBootOverride: ["ok", "Refused"], findOffObstacle: "ChassisDisagrees" },
  }),
  other("stale readings", ({ bmc }) => bmc.freezePower(600_000)),
  other(
    "another host's identity",
    ({ bmc }) => bmc.pretendIdentity({ systemUUID: "00000000-1111-4222-8333-444444444444" }),
    { lies: true },
  ),
  other("an identity that vanishes with the power", vanishIdentity, { identified: true, reading: "Off" }),
  other(
    "an identity that vanishes with the power and the session",
    (world) => {
      vanishIdentity(world);
      world.bmc.restart(0);
    },
    { identified: true, reading: "Unknown", outcomes: { forceOff: "Refused", setBootOverride: "Refused" } },
  ),
  other("another host answers", ({ rack, bmc }) => bmc.rewire(rack.host("other")), { lies: true, promises: true }),
];

/** The scheme for a fault: `https` if it is a fault of TLS. */
export function schemeFor({ name }: RedfishFault): "http" | "https" {
  return name.startsWith("bad TLS") ? "https" : "http";
}
