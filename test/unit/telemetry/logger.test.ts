import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BmcError } from "../../../src/bmc/interface/errors.ts";
import { KubeError } from "../../../src/kube/errors.ts";
import { DeadlineError } from "../../../src/runtime/deadline.ts";
import { Secret } from "../../../src/runtime/secret.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import type { LogLevel } from "../../../src/telemetry/logger.ts";

function logged(write: (logger: ReturnType<typeof createLogger>) => void, level: LogLevel = "info"): string {
  let lines = "";
  write(createLogger(level, { write: (line: string) => void (lines += line) }));
  return lines;
}

describe("the log", () => {
  it("the log writes one JSON object a line with level, time and message", () => {
    const { level, msg, time, node } = JSON.parse(logged((logger) => logger.info({ node: "node-1" }, "fenced")));
    assert.deepEqual({ level, msg, node }, { level: "info", msg: "fenced", node: "node-1" });
    assert.ok(!Number.isNaN(Date.parse(time)));
  });

  it("the log never shows a Secret, whatever value contains it", () => {
    const line = logged((logger) =>
      logger.info({ device: { login: new Secret("hunter2") }, all: [new Secret("hunter2")] }, "x"),
    );
    assert.ok(!line.includes("hunter2"));
    assert.ok(line.includes("[secret]"));
  });

  it("the log blanks fields named like credentials even if they are plain strings", () => {
    const line = logged((logger) => logger.error({ password: "hunter2", request: { authorization: "hunter2" } }, "x"));
    assert.ok(!line.includes("hunter2"));
  });

  it("the log reports failures that are to be expected in brief, without a stack", () => {
    const cause = new Error("connect ECONNREFUSED 192.0.2.1:443");
    const err = new BmcError("Unreachable", "GET https://bmc-1.example/redfish/v1/: connect ECONNREFUSED", { cause });
    const line = logged((logger) => logger.warn({ err }, "device call failed"));
    assert.deepEqual(JSON.parse(line).err, { type: "BmcError", code: "Unreachable", message: err.message });
    for (const other of [new KubeError("Forbidden", "no"), new DeadlineError("GET /", 1000)]) {
      assert.ok(!logged((logger) => logger.warn({ err: other }, "x")).includes("stack"), other.name);
    }
  });

  it("the log says what to do about a failure if its class knows it", () => {
    const err = new KubeError("Forbidden", "list nodes: 403 Forbidden", { status: 403, reason: "Forbidden" });
    const line = JSON.parse(logged((logger) => logger.warn({ err }, "x")));
    assert.equal(
      line.err.nextStep,
      "grant that permission; the installation (deploy/kustomize or the Helm chart) has those that the agent needs",
    );
    assert.ok(
      !logged((logger) => logger.warn({ err: new KubeError("Conflict", "changed") }, "x")).includes("nextStep"),
    );
  });

  it("the log keeps the stack of a defect, and that of every error at debug", () => {
    const defect = JSON.parse(logged((logger) => logger.error({ err: new TypeError("no such thing") }, "x")));
    assert.match(defect.err.stack, /logger\.test\.ts/);
    const debugged = JSON.parse(logged((logger) => logger.warn({ err: new BmcError("Busy", "later") }, "x"), "debug"));
    assert.match(debugged.err.stack, /logger\.test\.ts/);
  });
});
