import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { BmcError } from "../../../../src/bmc/interface/errors.ts";
import { failure } from "../../../../src/bmc/redfish/http/answer.ts";
import type { RedfishAnswer } from "../../../../src/bmc/redfish/http/answer.ts";
import { parseBootOverride } from "../../../../src/bmc/redfish/orders/boot.ts";
import { JSON_DEPTH_MAX, parseJsonObject } from "../../../../src/bmc/redfish/http/json.ts";
import { isRecord } from "../../../../src/runtime/record.ts";
import type { JsonObject } from "../../../../src/bmc/redfish/http/json.ts";
import { pathOnOrigin } from "../../../../src/bmc/redfish/http/reference.ts";
import {
  combineWithChassis,
  parseChassis,
  parsePower,
  parseSystem,
} from "../../../../src/bmc/redfish/system/system.ts";
import { parseTask, retryAfterMs } from "../../../../src/bmc/redfish/orders/task.ts";

const ORIGIN = "https://bmc-3";

function answer(status: number, body: JsonObject = {}, headers: Record<string, string> = {}): RedfishAnswer {
  return { status, body, header: (name) => headers[name], hide: (text) => text };
}

/** Runs `work`, which may throw only a BmcError. */
function guarded(work: () => void): void {
  try {
    work();
  } catch (error) {
    assert.ok(error instanceof BmcError, String(error));
  }
}

test("JSON is read to its greatest depth and no deeper, brackets in strings aside", () => {
  const nested = (depth: number): string => `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`;
  assert.ok(isRecord(parseJsonObject(nested(JSON_DEPTH_MAX), "x")));
  assert.throws(() => parseJsonObject(nested(JSON_DEPTH_MAX + 1), "x"), { code: "BadResponse" });
  assert.throws(() => parseJsonObject("[".repeat(500_000), "x"), { code: "BadResponse" });
  assert.ok(isRecord(parseJsonObject(JSON.stringify({ a: `\\"${"[".repeat(100)}`, b: "\\" }), "x")));
});

test("a reference stays on its origin or is refused", () => {
  for (const [reference, path] of [
    ["/redfish/v1/Systems/1", "/redfish/v1/Systems/1"],
    ["https://bmc-3/redfish/v1/Tasks/1?x=1", "/redfish/v1/Tasks/1?x=1"],
    ["HTTPS://BMC-3:443/a", "/a"],
    ["/a/../b", "/b"],
    ["/a#/Members/0", "/a"],
  ]) {
    assert.equal(pathOnOrigin(ORIGIN, reference, "it"), path);
  }
  for (const reference of [
    undefined,
    "",
    "Systems/1",
    "//evil/x",
    "/\\evil/x",
    "http://bmc-3/x",
    "https://bmc-3:8443/x",
    "https://bmc-3.evil/x",
    "https://user@bmc-3/x",
    "https://bmc-3@evil/x",
    "javascript:alert(1)",
    "/a b",
    "/a\r\nHost: evil",
    `/${"a".repeat(3_000)}`,
  ]) {
    assert.throws(() => pathOnOrigin(ORIGIN, reference, "it"), { code: "BadResponse" }, reference);
  }
});

test("any reference gives a path of the origin or a BmcError", () => {
  const parts = fc.constantFrom(
    "/",
    "//",
    "\\",
    "http:",
    "https:",
    "bmc-3",
    "evil",
    "@",
    ":",
    "443",
    "..",
    "?",
    "#",
    "%2f",
    "\t",
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string({ unit: "binary" }),
        fc.array(parts).map((list) => list.join("")),
      ),
      (reference) => {
        guarded(() => {
          const path = pathOnOrigin(ORIGIN, reference, "it");
          assert.ok(path.startsWith("/"));
          assert.match(path, /^[\x21-\x7e]+$/);
        });
      },
    ),
    { numRuns: 2_000 },
  );
});

test("a status alone identifies the error", () => {
  for (const [status, code] of [
    [200, "BadResponse"],
    [302, "BadResponse"],
    [400, "Refused"],
    [401, "AuthFailed"],
    [403, "PrivilegeTooLow"],
    [404, "BadResponse"],
    [405, "Unsupported"],
    [409, "Refused"],
    [412, "Refused"],
    [429, "Busy"],
    [500, "BadResponse"],
    [501, "Unsupported"],
    [502, "BadResponse"],
    [503, "Busy"],
  ] as const) {
    assert.equal(failure("x", answer(status)).code, code, String(status));
  }
});

test("a message id is more precise than the status, in whatever form the answer has it", () => {
  const id = (MessageId: string): JsonObject => ({ MessageId });
  for (const [status, body, code] of [
    [409, { error: { "@Message.ExtendedInfo": [id("IDRAC.2.8.PSU501")] } }, "Refused"],
    [500, { error: { "@Message.ExtendedInfo": [id("IDRAC.2.8.PSU502")] } }, "Refused"],
    [500, { error: { "@Message.ExtendedInfo": [id("Base.1.8.InternalError")] } }, "BadResponse"],
    [400, { error: { "@Message.ExtendedInfo": [id("IDRAC.1.6.SWC0700")] } }, "Busy"],
    [400, { error: { "@Message.ExtendedInfo": [{ MessageID: "iLO.0.10.UnableToModifyDuringSystemPOST" }] } }, "Busy"],
    [
      400,
      { error: { "@Message.ExtendedInfo": [{ MessageID: "iLO.0.10.InvalidOperationForSystemState" }] } },
      "Refused",
    ],
    [400, { error: { "@Message.ExtendedInfo": id("Base.1.8.InsufficientPrivilege") } }, "PrivilegeTooLow"],
    [400, { "@Message.ExtendedInfo": [id("Base.1.8.ActionNotSupported")] }, "Unsupported"],
    [400, { error: { code: "Base.1.8.ServiceTemporarilyUnavailable" } }, "Busy"],
  ] as const) {
    assert.equal(failure("x", answer(status, body)).code, code, JSON.stringify(body));
  }
});

test("the text of a BMC is short and printable in the message", () => {
  const info = (text: string): JsonObject => ({ MessageId: "Base.1.18.GeneralError", Message: text });
  const reported = Array.from({ length: 9 }, (_, at) => info(`line${at}\n\u001b[31m${"x".repeat(5_000)}`));
  const { message } = failure("POST x", answer(400, { error: { "@Message.ExtendedInfo": reported } }));
  assert.match(message, /^POST x: HTTP 400: line0/);
  assert.match(message, /^[\x20-\x7e]+$/);
  assert.ok(message.length < 800);
  assert.match(failure("x", answer(400, { error: { message: "plain" } })).message, /plain/);
  const foreign = failure("x", answer(409, { error: { "@Message.ExtendedInfo": [info("服务器已关机\u202e\u0007")] } }));
  assert.equal(foreign.message, "x: HTTP 409: 服务器已关机");
});

test("a task runs, ends or fails by its state, else by its status", () => {
  for (const [given, state] of [
    [answer(202), "Running"],
    [answer(202, { TaskState: "Running" }), "Running"],
    [answer(200, { TaskState: "New" }), "Running"],
    [answer(200, { TaskState: "Completed" }), "Ended"],
    [answer(200), "Ended"],
    [answer(204), "Ended"],
    [answer(404), "Ended"],
    [answer(503), "Running"],
    [answer(200, { TaskState: "Exception" }), "Failed"],
    [answer(202, { TaskState: "Cancelled" }), "Failed"],
    [answer(400), "Failed"],
  ] as const) {
    assert.equal(parseTask("x", given).state, state);
  }
});

test("Retry-After is honored in seconds or as a date of the BMC's clock, and never makes us hurry", () => {
  assert.equal(retryAfterMs(answer(202, {}, { "retry-after": "7" })), 7_000);
  const date = "Wed, 21 Oct 2026 07:28:00 GMT";
  for (const [text, expectedMs] of [
    ["Wed, 21 Oct 2026 07:28:30 GMT", 30_000],
    [date, 250],
    ["Wed, 21 Oct 2015 07:28:00 GMT", 250],
    ["Wed, 99 Oct 2026 07:28:00 GMT", 250],
  ] as const) {
    assert.equal(retryAfterMs(answer(202, {}, { date, "retry-after": text })), expectedMs, text);
  }
  for (const text of ["0", "-1", "x", "1e9", "99999999", "Wed, 21 Oct 2026 07:28:00 GMT"]) {
    assert.equal(retryAfterMs(answer(202, {}, { "retry-after": text })), 250, text);
  }
});

test("no JSON that a BMC can send makes a parser throw anything but a BmcError, or report an Off that it does not contain", () => {
  const names = [
    "PowerState",
    "@odata.id",
    "@odata.type",
    "UUID",
    "Links",
    "Chassis",
    "ComputerSystems",
    "Actions",
    "target",
    "#ComputerSystem.Reset",
    "ResetType@Redfish.AllowableValues",
    "Boot",
    "BootSourceOverrideTarget",
    "TaskState",
    "error",
    "@Message.ExtendedInfo",
    "MessageId",
    "ChassisType",
    "__proto__",
    "constructor",
  ];
  const leaf = fc.oneof(
    fc.constantFrom<unknown>(
      "Off",
      "On",
      "PoweringOff",
      "off",
      "/redfish/v1/Systems/1",
      "https://evil/x",
      "Pxe",
      null,
      0,
      true,
    ),
    fc.string({ maxLength: 8 }),
  );
  const { object } = fc.letrec<{ object: unknown; value: unknown }>((tie) => ({
    value: fc.oneof(
      { depthSize: "small", withCrossShrink: true },
      leaf,
      fc.array(tie("value"), { maxLength: 3 }),
      tie("object"),
    ),
    object: fc
      .array(fc.tuple(fc.constantFrom(...names), tie("value")), { maxLength: 6 })
      // JSON text, so that `__proto__` is an ordinary name.
      .map((entries) =>
        JSON.parse(`{${entries.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`).join(",")}}`),
      ),
  }));
  fc.assert(
    fc.property(object, (value) => {
      assert.ok(isRecord(value));
      const says = Object.hasOwn(value, "PowerState") ? value["PowerState"] : undefined;
      guarded(() => {
        const system = parseSystem(ORIGIN, {
          path: "/redfish/v1/Systems/1",
          body: value,
          etag: undefined,
          date: undefined,
          isStale: false,
        });
        assert.equal(system.power.state === "Off", says === "Off");
      });
      guarded(() => {
        const chassis = parseChassis(ORIGIN, value, ["/redfish/v1/Systems/1"]);
        const other = chassis.power === undefined ? [] : [chassis.power];
        const reading = combineWithChassis(parsePower({ PowerState: "Off" }), other);
        assert.equal(reading.state === "Off", typeof says !== "string" || says === "Off");
      });
      parseBootOverride(value);
      parseTask("x", answer(200, value));
      failure("x", answer(400, value));
      assert.equal(Object.hasOwn(Object.prototype, "PowerState"), false);
    }),
    { numRuns: 2_000 },
  );
});
