import assert from "node:assert/strict";
import { once } from "node:events";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { setTimeout as delay } from "node:timers/promises";

const DOCKERFILE = readFileSync(new URL("../../../Dockerfile", import.meta.url), "utf8");

describe("the image", () => {
  it("the image runs Node so that no signal opens its debugger", async () => {
    const [, entry = "[]"] = /^ENTRYPOINT (\[.*\])$/m.exec(DOCKERFILE) ?? [];
    const flags = (JSON.parse(entry) as string[]).filter((text) => text.startsWith("--"));
    const program = 'process.stdout.write("up"); setInterval(() => undefined, 1_000);';
    const child = spawn(process.execPath, [...flags, "--eval", program], { stdio: ["ignore", "pipe", "pipe"] });
    let errors = "";
    child.stderr.on("data", (chunk) => (errors += String(chunk)));
    try {
      await once(child.stdout, "data");
      child.kill("SIGUSR1");
      await delay(500);
    } finally {
      child.kill("SIGKILL");
    }
    assert.doesNotMatch(errors, /Debugger listening/);
  });
});
