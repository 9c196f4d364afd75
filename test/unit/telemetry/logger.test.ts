import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Secret } from "../../../src/runtime/secret.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";

function logged(write: (logger: ReturnType<typeof createLogger>) => void): string {
  let lines = "";
  write(createLogger("debug", { write: (line: string) => void (lines += line) }));
  return lines;
}

describe("the log", () => {
  it("writes one JSON object a line with level, time and message", () => {
    const { level, msg, time, node } = JSON.parse(logged((logger) => logger.info({ node: "node-1" }, "fenced")));
    assert.deepEqual({ level, msg, node }, { level: "info", msg: "fenced", node: "node-1" });
    assert.ok(!Number.isNaN(Date.parse(time)));
  });

  it("never shows a Secret, whatever it stands in", () => {
    const line = logged((logger) =>
      logger.info({ device: { login: new Secret("hunter2") }, all: [new Secret("hunter2")] }, "x"),
    );
    assert.ok(!line.includes("hunter2"));
    assert.ok(line.includes("[secret]"));
  });

  it("blanks fields named like credentials even where they are plain strings", () => {
    const line = logged((logger) => logger.error({ password: "hunter2", request: { authorization: "hunter2" } }, "x"));
    assert.ok(!line.includes("hunter2"));
  });
});
