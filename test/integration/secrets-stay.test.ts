import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import type { TestContext } from "node:test";
import { startAgent } from "../../hack/lib/agent-process.ts";
import type { BareMetalRemediation } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { NAMESPACE, startSocketWorld, until } from "./agent-fixture.ts";
import { addressIn } from "./child-agent.ts";
import { cli } from "./cli-fixture.ts";

// The password of a BMC and the tokens of its sessions must not appear in anything that the agent writes, serves or
// shows while it uses them.

/**
 * Fences a host with an agent that logs as much as possible.
 *
 * @returns all readable texts of the agent by their place, and the tokens of its sessions.
 */
async function fence(t: TestContext, password?: string): Promise<{ seen: Map<string, string>; tokens: Set<string> }> {
  const hosts = [{ name: "n1" }];
  const options = { hosts, monitorGracePeriodMs: 1_500, ...(password !== undefined && { password }) };
  const world = await startSocketWorld(t, options, () => Promise.resolve());
  const written: string[] = [];
  world.server.onChange(({ object }) => {
    if (object.kind !== "Secret") written.push(JSON.stringify(object));
  });
  const asked: string[] = [];
  world.server.onRequest(({ path }) => asked.push(path));
  const folder = await mkdtemp(join(tmpdir(), "ironfence-secrets-"));
  const { kubeconfig } = world;
  const flags = ["--namespace", NAMESPACE, "--log-level", "trace"];
  const agent = startAgent({ kubeconfig, logFile: join(folder, "agent.log"), flags });
  t.after(async () => {
    await agent.stop();
    await rm(folder, { recursive: true });
  });
  const metrics = await addressOf("serving metrics");
  const probes = await addressOf("serving probes");
  await until("the node is Ready", () => world.ready("n1") === "True");
  world.rack.host("n1").hang();
  await until("the node is Unknown", () => world.ready("n1") === "Unknown");
  const remediations = world.server.collection<BareMetalRemediation>(BARE_METAL_REMEDIATIONS);
  const strategy = { retryLimit: 0, timeout: "20s", powerOffTimeout: "10s" };
  remediations.create({ metadata: { namespace: NAMESPACE, name: "n1" }, spec: { strategy } });
  await until("there is a verdict", () => /^(Succeeded|Failed)$/.test(phase() ?? ""));
  assert.equal(phase(), password === undefined ? "Succeeded" : "Failed");
  const read = (path: string): string => readFileSync(path, "utf8");
  const page = async (url: string): Promise<string> => (await fetch(url)).text();
  const status = await cli(["status", "-o", "json", "--kubeconfig", kubeconfig]);
  const seen = new Map([
    ["the log", read(agent.logFile)],
    ["objects", written.join("\n")],
    ["paths of requests", asked.join("\n")],
    ["metrics", await page(`${metrics}/metrics`)],
    ["readiness", await page(`${probes}/readyz`)],
    ["arguments", read(`/proc/${agent.pid}/cmdline`)],
    ["environment", read(`/proc/${agent.pid}/environ`)],
    ["ironfence status", status.out],
  ]);
  return { seen, tokens: new Set(world.tokens) };

  function phase(): string | undefined {
    return remediations.get({ namespace: NAMESPACE, name: "n1" })?.status?.phase;
  }
  async function addressOf(line: string): Promise<string> {
    let found: string | undefined;
    await until(line, () => (found = addressIn(agent, line)) !== undefined);
    return found ?? "";
  }
}

/** The password in the forms in which it is stored and sent. */
function formsOf(password: string): string[] {
  const base64 = (text: string): string => Buffer.from(text).toString("base64");
  return [password, base64(password), base64(`fencing:${password}`), encodeURIComponent(`${password}!`).slice(0, -1)];
}

describe("the password of a BMC and the token of a session", () => {
  for (const [what, password] of [
    ["while a host is fenced with it", undefined],
    ["while the BMC refuses it", "a-typo-of-it"],
  ] as const) {
    it(`the password of a BMC and the tokens of its sessions are in no log, object, path, page, argument or variable of the agent (${what})`, async (t) => {
      const { seen, tokens } = await fence(t, password);
      assert.equal(tokens.size > 0, password === undefined, "a session was opened");
      for (const [where, text] of seen) {
        assert.ok(text !== "" || where === "readiness", where);
        for (const form of [...formsOf(password ?? "correct-horse"), ...tokens])
          assert.ok(!text.includes(form), `${where}: ${form}`);
      }
      assert.match(seen.get("the log") ?? "", /redfish answer/, "it logs what it asks of the BMC");
    });
  }
});
