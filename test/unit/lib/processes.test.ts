import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { it } from "node:test";
import { setTimeout as wait } from "node:timers/promises";

const MODULE = new URL("../../../hack/lib/processes.ts", import.meta.url).href;
const TRIES = 200;

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

it("a test file that the runner ends has its child processes ended as well", async () => {
  const folder = await mkdtemp(path.join(tmpdir(), "processes-"));
  const script = `
    const { startChild } = await import(${JSON.stringify(MODULE)});
    const logFile = ${JSON.stringify(path.join(folder, "log"))};
    const child = startChild("sleeper", process.execPath, ["-e", "setTimeout(() => {}, 60_000)"], { logFile });
    process.stdout.write(String(child.pid));
  `;
  const testFile = path.join(folder, "sleepy.test.ts");
  await writeFile(testFile, script);
  const file = spawn(process.execPath, [testFile], { stdio: ["ignore", "pipe", "inherit"] });
  try {
    const [printed] = (await once(file.stdout, "data")) as [Buffer];
    const pid = Number(printed.toString());
    assert.equal(isAlive(pid), true);
    file.kill("SIGTERM");
    await once(file, "exit");
    for (let tries = 0; isAlive(pid) && tries < TRIES; tries += 1) await wait(50);
    assert.equal(isAlive(pid), false);
  } finally {
    file.kill("SIGKILL");
    await rm(folder, { recursive: true, force: true });
  }
});
