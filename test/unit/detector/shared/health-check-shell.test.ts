import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type {
  HealthCheckDecision,
  RecordAttempts,
} from "../../../../src/detector/shared/model/health-check-decision.ts";
import type { HealthCheckFamily } from "../../../../src/detector/shared/shell/health-check-shell.ts";
import { HealthCheckShell } from "../../../../src/detector/shared/shell/health-check-shell.ts";
import { KubeError } from "../../../../src/kube/errors.ts";
import type { KubeErrorCode } from "../../../../src/kube/errors.ts";
import type { KubeObject } from "../../../../src/kube/resource.ts";
import { settle, VirtualClock } from "../../../lib/virtual-clock.ts";
import type { Logger } from "../../../../src/telemetry/logger.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { evenRandom, silentLogger } from "../../kube/support.ts";

// The shell alone, with a family whose decisions are scripted, and a log of what the shell does.

const CHECK: KubeObject = {
  apiVersion: "example/v1",
  kind: "Check",
  metadata: { name: "c", uid: "uid-c", resourceVersion: "1" },
};

interface Deed {
  type: string;
  /** Throws this error instead of having an effect. */
  fails?: KubeErrorCode;
}
type Decision = HealthCheckDecision<Deed>;

const decisionOf = (...actions: (Deed | RecordAttempts)[]): Decision => ({
  actions,
  nextCheckMs: undefined,
  standing: [{ key: "found", type: "Normal", reason: "Found", note: "" }],
  transitions: [{ key: "shown", type: "Normal", reason: "Shown", note: "" }],
});

/** Reconciles once with these decisions. The last one is repeated. @returns what happened, in order. */
async function reconcile(
  decisions: readonly Decision[],
  options: { storeFails?: Error; logger?: Logger; forMs?: number } = {},
): Promise<string[]> {
  const log: string[] = [];
  const left = [...decisions];
  const state = { key: "", observations: { addToAll: () => undefined }, announced: new Set<string>() };
  const family: HealthCheckFamily<KubeObject, Deed, string, Decision> = {
    name: "test",
    logField: "check",
    actionsParallelMax: 1,
    nowMs: () => 0,
    store: {
      get: () => CHECK,
      values: () => [CHECK].values(),
      recordAttempts: async (check) => {
        log.push("remember");
        return check;
      },
      close: () => undefined,
    },
    read: async () => {
      log.push("read");
      return {
        state,
        decide: () => {
          log.push("decide");
          return (left.length > 1 ? left.shift() : left[0]) ?? decisionOf();
        },
        run: async function* (_check, { type, fails }) {
          if (fails !== undefined) throw new KubeError(fails, `${type} failed`);
          yield `${type} done`;
        },
        observe: (event) => {
          log.push(`observe ${event}`);
          return [];
        },
        end: ({ type }) => void log.push(`end ${type}`),
        storeStatus: async () => {
          log.push("store");
          if (options.storeFails !== undefined) throw options.storeFails;
        },
      };
    },
    forget: () => undefined,
    keyOf: ({ type }) => type,
    record: (_check, { reason }) => void log.push(`record ${reason}`),
  };
  const stop = new AbortController();
  const clock = new VirtualClock();
  const { logger = silentLogger, forMs = 0 } = options;
  const shell = new HealthCheckShell({ clock, random: evenRandom, logger }, family);
  shell.enqueueAll();
  const run = shell.run(stop.signal);
  await settle();
  if (forMs > 0) await clock.advance(forMs);
  stop.abort();
  await run;
  return log;
}

describe("the shell of health checks", () => {
  it("the shell of health checks reads, decides, announces, runs, observes, decides again, stores and announces what it has stored", async () => {
    assert.deepEqual(await reconcile([decisionOf({ type: "create" }), decisionOf()]), [
      "read",
      "decide",
      "record Found",
      "observe create done",
      "end create",
      "decide",
      "store",
      "record Shown",
    ]);
  });

  it("the shell of health checks logs why a health check does nothing once, as long as the cause lasts", async () => {
    const lines: string[] = [];
    const logger = createLogger("info", { write: (line) => void lines.push(line) });
    const standing = [{ key: "threshold", type: "Warning", reason: "RemediationSkipped", note: "too few" }] as const;
    const storeFails = new KubeError("Conflict", "a newer version");
    const log = await reconcile([{ ...decisionOf(), standing }], { logger, storeFails, forMs: 400 });
    assert.ok(log.filter((entry) => entry === "store").length > 1, log.join(", "));
    assert.equal(lines.length, 1, lines.join(""));
    const { check, reason, note, msg } = JSON.parse(lines[0] ?? "");
    assert.deepEqual([check, reason, note], ["c", "RemediationSkipped", "too few"]);
    assert.equal(msg, "announced by a health check");
  });

  it("the shell of health checks runs an action that stays decided once in a reconcile", async () => {
    const log = await reconcile([decisionOf({ type: "create" })]);
    assert.equal(log.filter((entry) => entry === "end create").length, 1);
  });

  it("the shell of health checks decides at most five times in a reconcile, whatever the actions bring about", async () => {
    const endless = Array.from({ length: 9 }, (_, index) => decisionOf({ type: `step ${index}` }));
    assert.equal((await reconcile(endless)).filter((entry) => entry === "decide").length, 5);
  });

  it("the shell of health checks runs and stores the rest if one action fails", async () => {
    const log = await reconcile([
      decisionOf({ type: "delete", fails: "Unavailable" }, { type: "create" }),
      decisionOf(),
    ]);
    assert.deepEqual(log.slice(3), [
      "end delete",
      "observe create done",
      "end create",
      "decide",
      "store",
      "record Shown",
    ]);
  });

  it("the shell of health checks repeats an action soon and logs no warning if another writer was faster", async () => {
    const lines: string[] = [];
    const logger = createLogger("warn", { write: (line) => void lines.push(line) });
    const decisions = [decisionOf({ type: "mark", fails: "Conflict" }), decisionOf(), decisionOf({ type: "mark" })];
    const log = await reconcile(decisions, { logger, forMs: 1_000 });
    assert.ok(log.includes("observe mark done"), log.join(", "));
    assert.deepEqual(lines, []);
  });

  it("the shell of health checks repeats an action more and more rarely, and warns, if each try ends in a conflict", async () => {
    const lines: string[] = [];
    const logger = createLogger("warn", { write: (line) => void lines.push(line) });
    const log = await reconcile([decisionOf({ type: "mark", fails: "Conflict" })], { logger, forMs: 60_000 });
    const tries = log.filter((entry) => entry === "end mark").length;
    assert.ok(tries > 10 && tries < 40, `${tries} tries`);
    assert.ok(lines.length > 0);
  });

  it("the shell of health checks repeats a write of the status soon, then more and more rarely, and warns, if each try ends in a conflict", async () => {
    const lines: string[] = [];
    const logger = createLogger("warn", { write: (line) => void lines.push(line) });
    const storeFails = new KubeError("Conflict", "a newer version");
    const triesWithin = async (forMs: number): Promise<number> => {
      const log = await reconcile([decisionOf()], { logger, storeFails, forMs });
      return log.filter((entry) => entry === "store").length;
    };
    assert.equal(await triesWithin(100), 3);
    assert.deepEqual(lines, []);
    const tries = await triesWithin(60_000);
    assert.ok(tries > 10 && tries < 40, `${tries} tries`);
    assert.ok(lines.length > 0);
  });

  it("the shell of health checks remembers attempts in one write, before it decides again", async () => {
    const attempts: RecordAttempts = { type: "recordAttempts", key: "n1", attempts: [] };
    const log = await reconcile([decisionOf(attempts, { type: "delete" }), decisionOf()]);
    assert.deepEqual(log.slice(3, 7), ["observe delete done", "end delete", "remember", "decide"]);
  });

  it("the shell of health checks announces nothing that a status write was to show and did not", async () => {
    const log = await reconcile([decisionOf()], { storeFails: new KubeError("Conflict", "a newer version") });
    assert.deepEqual(log, ["read", "decide", "record Found", "store"]);
  });
});
