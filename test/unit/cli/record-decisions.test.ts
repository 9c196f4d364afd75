import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmod, mkdtemp, readFile, rm, stat, symlink, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Writable } from "node:stream";
import { after, before, describe, it } from "node:test";
import { PURE_FUNCTIONS } from "../../../src/cli/agent/pure-functions.ts";
import { recordInto, recordTo } from "../../../src/cli/agent/record-decisions.ts";
import { Replayer } from "../../../src/telemetry/decisions/replay.ts";
import { LOG_BYTES_MAX } from "../../../src/telemetry/decisions/recorder.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import type { RecordingDeps } from "../../../src/cli/agent/record-decisions.ts";
import { VirtualClock } from "../../lib/virtual-clock.ts";

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "ironfence-record-"));
});
after(() => rm(folder, { recursive: true }));

function world(): RecordingDeps & { clock: VirtualClock; logged: string[] } {
  const logged: string[] = [];
  const logger = createLogger("info", { write: (line) => void logged.push(line) });
  return { clock: new VirtualClock(), logger, logged };
}

/** One process that records a session and ends. */
async function record(path: string, process: string): Promise<void> {
  const recording = await recordTo(path, process, world());
  recording?.recorder.begin("uid", "ns/n1");
  await recording?.close();
}

describe("a log of decisions in a file", () => {
  it("a log of decisions in a file is readable for its owner only, also if others could read it before", async () => {
    const path = join(folder, "modes.jsonl");
    await record(path, "p1");
    assert.equal((await stat(path)).mode & 0o777, 0o600);
    await chmod(path, 0o644);
    await record(path, "p2");
    assert.equal((await stat(path)).mode & 0o777, 0o600);
  });

  it("a log of decisions in a file begins with a line of its own after half a line of an earlier process", async () => {
    const path = join(folder, "half.jsonl");
    await record(path, "p1");
    assert.match(await readFile(path, "utf8"), /^\{/);
    await writeFile(path, '{"process":"p1","ki', { flag: "a" });
    await record(path, "p2");
    const [process1, session1, half, process2, ...rest] = (await readFile(path, "utf8")).split("\n");
    assert.equal(half, '{"process":"p1","ki');
    const replayer = new Replayer(PURE_FUNCTIONS);
    for (const line of [process1, session1, "", process2, ...rest]) replayer.take(line ?? "");
    assert.equal(replayer.result.sessions, 2);
    assert.throws(() => replayer.take(half ?? ""), /line \d+ is not JSON/);
  });

  it("a log of decisions in a file counts what is in the file already towards its largest size", async () => {
    const path = join(folder, "large.jsonl");
    await writeFile(path, "");
    await truncate(path, LOG_BYTES_MAX - 10);
    await record(path, "p1");
    const { size } = await stat(path);
    assert.ok(size < LOG_BYTES_MAX + 200, `${size} bytes`);
  });

  it("a log of decisions in a file is refused if the path is not a regular file", async () => {
    const [pipe, link] = [join(folder, "pipe"), join(folder, "link")];
    execFileSync("mkfifo", [pipe]);
    await writeFile(join(folder, "target"), "");
    await symlink(join(folder, "target"), link);
    for (const path of [pipe, link, folder, "/dev/null"]) {
      await assert.rejects(
        recordTo(path, "p", world()),
        /is not a regular file: name a file, or - for standard output/,
      );
    }
  });

  it("a log of decisions in a file is logged once if it cannot be opened, and left out", async () => {
    const deps = world();
    assert.equal(await recordTo(join(folder, "nowhere", "log.jsonl"), "p", deps), undefined);
    assert.equal(deps.logged.length, 1);
    assert.match(deps.logged.join(""), /cannot be written; the agent continues without it/);
  });

  it("a log of decisions in a file is logged once if writing fails, and left out", async () => {
    const deps = world();
    const output = new Writable({ write: (_chunk, _encoding, done) => done(new Error("ENOSPC: no space left")) });
    const recording = recordInto(output, "p", 0, deps);
    for (let turn = 0; turn < 3; turn += 1) {
      recording.recorder.begin(`uid-${turn}`, "ns/n1");
      await deps.clock.advance(1);
    }
    await recording.close();
    assert.equal(deps.logged.length, 1);
    assert.match(deps.logged.join(""), /ENOSPC/);
  });

  it("a log of decisions in a file holds up the end of the agent for 2 s at most if the disk hangs", async () => {
    const deps = world();
    const output = new Writable({ write: () => undefined });
    const recording = recordInto(output, "p", 0, deps);
    let closed = false;
    const closing = recording.close().then(() => (closed = true));
    await deps.clock.advance(1_900);
    assert.equal(closed, false);
    await deps.clock.advance(200);
    assert.equal(closed, true);
    await closing;
    assert.ok(output.destroyed);
    assert.match(deps.logged.join(""), /not complete/);
  });
});
