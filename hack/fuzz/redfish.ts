import { must } from "./target.ts";
import type { FuzzTarget } from "./target.ts";
import { failure, messageIds, sessionsFull } from "../../src/bmc/redfish/http/answer.ts";
import type { RedfishAnswer } from "../../src/bmc/redfish/http/answer.ts";
import { compareHosts } from "../../src/bmc/identity/host-identity.ts";
import {
  hasBoot,
  ifMatch,
  lacksNetworkBoot,
  parseBootOverride,
  settingsReference,
} from "../../src/bmc/redfish/orders/boot.ts";
import { linksAt, parseJsonObject, stringAt } from "../../src/bmc/redfish/http/json.ts";
import type { JsonObject } from "../../src/bmc/redfish/http/json.ts";
import { sessionPath } from "../../src/bmc/redfish/session/login.ts";
import { pathOnOrigin } from "../../src/bmc/redfish/http/reference.ts";
import {
  combineWithChassis,
  parseChassis,
  parseManagerReset,
  parsePower,
  parseSystem,
} from "../../src/bmc/redfish/system/system.ts";
import { parseTask, retryAfterMs } from "../../src/bmc/redfish/orders/task.ts";

// Fuzzes bodies of a Redfish service. undici parses HTTP itself.

const hide = (text: string): string => text;
const ORIGIN = "https://bmc-3.example";
const PATH = "/redfish/v1/Systems/1";

const SYSTEM = {
  "@odata.id": PATH,
  "@odata.type": "#ComputerSystem.v1_20_0.ComputerSystem",
  UUID: "4C4C4544-0042-3510-8051-B4C04F4E3732",
  SerialNumber: "SN-0001",
  PowerState: "Off",
  Links: { Chassis: [{ "@odata.id": "/redfish/v1/Chassis/1" }] },
  Actions: {
    "#ComputerSystem.Reset": {
      target: `${PATH}/Actions/ComputerSystem.Reset`,
      "@Redfish.ActionInfo": `${PATH}/ResetActionInfo`,
      "ResetType@Redfish.AllowableValues": ["On", "ForceOff"],
    },
  },
  "@Redfish.Settings": { SettingsObject: { "@odata.id": `${PATH}/Settings` } },
  Boot: {
    BootSourceOverrideEnabled: "Once",
    BootSourceOverrideTarget: "Pxe",
    "BootSourceOverrideTarget@Redfish.AllowableValues": ["None", "Pxe"],
  },
};
const CHASSIS = {
  "@odata.type": "#Chassis.v1_20_0.Chassis",
  ChassisType: "RackMount",
  PowerState: "Off",
  Links: { ComputerSystems: [{ "@odata.id": PATH }] },
};
const TASK = { "@odata.type": "#Task.v1_7_0.Task", TaskState: "Running" };
const ERROR = {
  error: {
    code: "Base.1.18.GeneralError",
    message: "See the extended info.",
    "@Message.ExtendedInfo": [{ MessageId: "Base.1.18.ServiceTemporarilyUnavailable", Message: "Later.\n" }],
  },
};
const MANAGER = {
  "@odata.type": "#Manager.v1_19_0.Manager",
  Actions: { "#Manager.Reset": { target: "/redfish/v1/Managers/1/Actions/Manager.Reset" } },
};
const SESSIONS = "/redfish/v1/SessionService/Sessions";
const HOSTILE = '{"__proto__":{"PowerState":"Off"},"constructor":{"prototype":{"UUID":"x"}},"Links":{"Chassis":[{}]}}';

const resources: FuzzTarget = {
  name: "redfish resource",
  seeds: [...[SYSTEM, CHASSIS, MANAGER, TASK, ERROR].map((value) => JSON.stringify(value)), HOSTILE].map((text) =>
    Buffer.from(text),
  ),
  run: (input) => {
    const body = parseJsonObject(input.toString("utf8"), "GET x");
    const says = stringAt(body, "PowerState");
    must((parsePower(body).state === "Off") === (says === "Off"), "only the literal Off is off");
    hasBoot(body);
    lacksNetworkBoot(body);
    settingsReference(body);
    parseBootOverride(body);
    for (const status of [200, 202, 400, 503]) readAnswer({ status, body, header: () => undefined, hide });
    linksAt(body, "Members");
    const chassis = parseChassis(ORIGIN, body, [PATH]);
    const reading = combineWithChassis(
      { state: "Off", raw: "Off" },
      chassis.power === undefined ? [] : [chassis.power],
    );
    must(reading.state !== "Off" || says === undefined || says === "Off", "a chassis that is not off denies an Off");
    const system = parseSystem(ORIGIN, { path: PATH, body, etag: undefined, date: undefined, isStale: false });
    const { identity } = system;
    for (const isOff of [true, false]) {
      must(compareHosts(identity, identity, { isOff }) === "Same", "a host differs from itself");
    }
    const restart = parseManagerReset(body);
    must(
      restart === undefined || /^(?:Force|Graceful)Restart$/.test(restart.type),
      "a BMC is restarted, never reset to defaults",
    );
    for (const reference of [system.reset?.target, system.reset?.actionInfo, ...system.chassis, ...system.managers]) {
      if (reference === undefined) continue;
      must(pathOnOrigin(ORIGIN, reference, "it").startsWith("/"), "what is asked for next is on the same service");
    }
  },
};

function readAnswer(answer: RedfishAnswer): void {
  messageIds(answer.body);
  sessionsFull(answer);
  parseTask("order", answer);
  const { message } = failure("order", answer);
  must(/^[^\p{C}]{1,800}$/u.test(message), "a message is short and printable");
}

const EMPTY: JsonObject = {};
const headers: FuzzTarget = {
  name: "redfish reference and Retry-After",
  seeds: [PATH, `${ORIGIN}${PATH}`, "//evil.example/x", "/a/../b?c#d", "7", "Wed, 21 Oct 2026 07:28:00 GMT"].map(
    (text) => Buffer.from(text),
  ),
  run: (input) => {
    const text = input.toString("latin1");
    const waitMs = retryAfterMs({ status: 202, body: EMPTY, header: () => text, hide });
    const tags = [1, 2, 3, 4].map((tries) => ifMatch(text, tries));
    must(tags[0] === text && tags.includes("*"), "the tag as it was given comes first, and any tag last");
    must(waitMs >= 250 && waitMs < 1e9, "Retry-After neither hurries nor stops us forever");
    must(/^\/[\x21-\x7e]*$/.test(pathOnOrigin(ORIGIN, text, "it")), "a reference is a path of its service");
  },
};

const sessions: FuzzTarget = {
  name: "redfish location of a session",
  seeds: [
    `${SESSIONS}/7`,
    `https://10.1.2.3${SESSIONS}/7`,
    "7",
    SESSIONS,
    "../../Systems/1",
    "//evil.example/Sessions/1",
  ].map((text) => Buffer.from(text)),
  run: (input) => {
    const text = input.toString("latin1");
    for (const [location, body] of [
      [text, EMPTY],
      [undefined, { Id: text }],
      [undefined, { "@odata.id": text }],
    ] as const) {
      const header = (name: string): string | undefined => (name === "location" ? location : undefined);
      const path = sessionPath(ORIGIN, SESSIONS, { status: 201, header, body, hide });
      must(path === undefined || /^\/[\x21-\x7e]*$/.test(path), "a session is a path of its service");
      const isNamed = location !== undefined || path === undefined || /\/Sessions?\/[^/]+\/?$/i.test(path);
      must(isNamed, "only a session is ended there");
    }
  },
};

export const REDFISH_TARGETS: readonly FuzzTarget[] = [resources, headers, sessions];
