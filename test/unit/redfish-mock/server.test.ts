import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { Agent, request } from "undici";
import { createCertificateAuthority } from "../../../hack/lib/pki.ts";
import { createRack } from "../../../hack/rack/rack.ts";
import type { Rack } from "../../../hack/rack/rack.ts";
import { controlHelp, startControlEndpoint } from "../../../hack/rack/control.ts";
import type { FaultRule } from "../../../hack/redfish-mock/faults.ts";
import { startRedfishMock } from "../../../hack/redfish-mock/server.ts";
import type { RedfishMock } from "../../../hack/redfish-mock/server.ts";
import { sleep } from "../../../src/runtime/clock.ts";
import { systemClock, systemRandom } from "../../../src/runtime/system.ts";

const SYSTEM = "/redfish/v1/Systems/1";
const RESET = `${SYSTEM}/Actions/ComputerSystem.Reset`;
/** How long a test waits for an answer that must not come. */
const SILENCE_MS = 100;
/** How long a call may take to arrive on a busy machine. */
const ARRIVAL_MS_MAX = 20_000;

let agent: Agent;
let rack: Rack;
let mock: RedfishMock;

beforeEach(async () => {
  agent = new Agent({ headersTimeout: 30_000 });
  const deps = { clock: systemClock, random: systemRandom };
  rack = createRack({ ...deps, hosts: [{ name: "a", powerOffDelayMs: 20, powerOnDelayMs: 10, bootMs: 20 }] });
  mock = await startRedfishMock({ ...deps, rack });
});

afterEach(async () => {
  rack.stop();
  await mock.close();
  await agent.destroy();
});

async function send(
  method: "GET" | "POST",
  path: string,
  body?: unknown,
  signal?: AbortSignal,
): Promise<{ status: number; text: string; headers: Record<string, unknown> }> {
  const answer = await request(`${mock.url}${path}`, {
    method,
    dispatcher: agent,
    headers: { authorization: `Basic ${Buffer.from("admin:password").toString("base64")}` },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    ...(signal !== undefined && { signal }),
  });
  return { status: answer.statusCode, text: await answer.body.text(), headers: answer.headers };
}

const forceOff = (signal?: AbortSignal): ReturnType<typeof send> =>
  send("POST", RESET, { ResetType: "ForceOff" }, signal);

/** Waits until the mock has received the call (`arrived`), and then asserts that no answer comes for a while. */
async function assertSilent(call: (signal: AbortSignal) => Promise<unknown>, arrived: () => boolean): Promise<void> {
  const stop = new AbortController();
  let settled = false;
  const done = call(stop.signal).then(
    () => (settled = true),
    () => (settled = true),
  );
  const lateMs = systemClock.monotonicMs() + ARRIVAL_MS_MAX;
  while (!arrived() && systemClock.monotonicMs() < lateMs) await sleep(systemClock, 5, stop.signal);
  assert.ok(arrived(), "the call has arrived");
  await sleep(systemClock, SILENCE_MS, stop.signal);
  assert.equal(settled, false, "no answer has come");
  stop.abort();
  await done;
}

function ordersOf(name: string): string[] {
  return rack.host(name).orders.map(({ type }) => type);
}

describe("the Redfish mock's server", () => {
  it("the Redfish mock's server serves HTTPS with a certificate that its CA vouches for", async () => {
    const deps = { clock: systemClock, random: systemRandom };
    const ca = await createCertificateAuthority(systemClock, "test CA");
    const tls = await ca.issue({ commonName: "bmc", ipAddresses: ["127.0.0.1"], usage: "server" });
    const secure = await startRedfishMock({ ...deps, rack, tls });
    const trusting = new Agent({ connect: { ca: ca.certPem } });
    try {
      assert.match(secure.url, /^https:/);
      const answer = await request(`${secure.url}/redfish/v1`, { dispatcher: trusting });
      assert.equal(answer.statusCode, 200);
      await answer.body.dump();
      await assert.rejects(request(`${secure.url}/redfish/v1`, { dispatcher: agent }), /certificate/);
    } finally {
      await trusting.destroy();
      await secure.close();
    }
  });

  it("the Redfish mock's server logs each request with its status, and no password", async () => {
    await forceOff();
    await send("POST", "/redfish/v1/SessionService/Sessions", { UserName: "admin", Password: "password" });
    assert.deepEqual(
      mock.requests.map(({ method, path, status, body }) => [method, path, status, body]),
      [
        ["POST", RESET, 204, '{"ResetType":"ForceOff"}'],
        ["POST", "/redfish/v1/SessionService/Sessions", 201, ""],
      ],
    );
    assert.equal(mock.sessionCount, 1);
    assert.deepEqual(ordersOf("a"), ["ForceOff"]);
  });

  it("the Redfish mock's server refuses a body that is too large", async () => {
    assert.equal((await send("POST", RESET, { ResetType: "x".repeat(100_000) })).status, 413);
  });

  it("the Redfish mock's server fronts several hosts, each under its own name", async () => {
    const deps = { clock: systemClock, random: systemRandom };
    const pair = createRack({ ...deps, hosts: [{ name: "a" }, { name: "b" }] });
    const shared = await startRedfishMock({ ...deps, rack: pair });
    try {
      assert.equal(shared.systemPath("b"), "/redfish/v1/Systems/b");
      assert.throws(() => shared.systemPath("c"), /does not front a host named c/);
      pair.bmc("b").setReachability("refused");
      const headers = { authorization: `Basic ${Buffer.from("admin:password").toString("base64")}` };
      const get = (name: string): ReturnType<typeof request> =>
        request(`${shared.url}${shared.systemPath(name)}`, { dispatcher: agent, headers });
      const answer = await get("a");
      assert.equal(answer.statusCode, 200);
      await answer.body.dump();
      await assert.rejects(get("b"));
    } finally {
      await shared.close();
    }
  });

  it("the Redfish mock's server is unreachable, in either way, and comes back", async () => {
    rack.bmc("a").setReachability("refused");
    await assert.rejects(send("GET", SYSTEM));
    rack.bmc("a").setReachability("silent");
    const taken = mock.connectionCount;
    await assertSilent(
      (signal) => send("GET", SYSTEM, undefined, signal),
      () => mock.connectionCount > taken,
    );
    rack.bmc("a").setReachability("up");
    assert.equal((await send("GET", SYSTEM)).status, 200);
  });

  it("the Redfish mock's server loses its sessions when it restarts", async () => {
    await send("POST", "/redfish/v1/SessionService/Sessions", { UserName: "admin", Password: "password" });
    rack.bmc("a").restart(0);
    assert.equal(mock.sessionCount, 0);
  });
});

describe("the Redfish mock with faults", () => {
  const noAnswer: [string, FaultRule["action"], number][] = [
    ["before", { type: "hang", effect: "none" }, 0],
    ["after", { type: "hang", effect: "done" }, 1],
  ];
  for (const [when, action, orders] of noAnswer) {
    it(`the Redfish mock with faults sends no answer if it hangs ${when} the effect of an order`, async () => {
      mock.addFault({ match: { method: "POST" }, action });
      await assertSilent(forceOff, () => mock.requests.length === 1);
      assert.equal(ordersOf("a").length, orders);
      assert.equal(mock.requests[0]?.status, undefined);
    });
  }

  const lostAnswer: [string, FaultRule["action"], number][] = [
    ["before", { type: "drop", effect: "none" }, 0],
    ["after", { type: "drop", effect: "done" }, 1],
  ];
  for (const [when, action, orders] of lostAnswer) {
    it(`the Redfish mock with faults breaks the connection ${when} the effect of an order`, async () => {
      mock.addFault({ match: { method: "POST" }, action });
      await assert.rejects(forceOff());
      assert.equal(ordersOf("a").length, orders);
    });
  }

  it("the Redfish mock with faults answers any status instead of the effect, as often as requested", async () => {
    mock.addFault({
      match: { method: "POST", path: "Reset$" },
      times: 2,
      action: { type: "status", status: 503, headers: { "retry-after": "7" } },
    });
    const answer = await forceOff();
    assert.equal(answer.status, 503);
    assert.equal(answer.headers["retry-after"], "7");
    assert.equal((await forceOff()).status, 503);
    assert.deepEqual(ordersOf("a"), []);
    assert.equal((await forceOff()).status, 204);
  });

  it("the Redfish mock with faults is slow, and then does its work", async () => {
    mock.addFault({ action: { type: "delay", delayMs: 100 } });
    const startedMs = systemClock.monotonicMs();
    assert.equal((await send("GET", SYSTEM)).status, 200);
    assert.ok(systemClock.monotonicMs() - startedMs >= 95);
  });

  it("the Redfish mock with faults sets and leaves out properties of an answer", async () => {
    mock.addFault({
      match: { path: SYSTEM },
      action: { type: "override", properties: { PowerState: null }, without: ["UUID"] },
    });
    const body = JSON.parse((await send("GET", SYSTEM)).text) as Record<string, unknown>;
    assert.equal(body["PowerState"], null);
    assert.equal("UUID" in body, false);
  });

  it("the Redfish mock with faults cuts an answer short", async () => {
    mock.addFault({ action: { type: "truncate" } });
    await assert.rejects(send("GET", SYSTEM));
  });

  it("the Redfish mock with faults answers too much, too deeply, or nonsense", async () => {
    mock.addFault({ times: 1, action: { type: "body", text: "<html>" } });
    mock.addFault({ times: 1, action: { type: "deep", depth: 10_000 } });
    mock.addFault({ times: 1, action: { type: "huge", sizeBytes: 1_000_000 } });
    assert.ok((await send("GET", SYSTEM)).text.length > 1_000_000);
    assert.match((await send("GET", SYSTEM)).text, /\[{10000}\]{10000}\}$/);
    assert.equal((await send("GET", SYSTEM)).text, "<html>");
    assert.equal((await send("GET", SYSTEM)).status, 200);
  });

  it("the Redfish mock with faults answers orders with tasks, or refuses those that change nothing", async () => {
    const end = mock.addFault({ action: { type: "refuseNoChange", status: 400 } });
    assert.equal((await send("POST", RESET, { ResetType: "On" })).status, 400);
    end();
    mock.addFault({ action: { type: "task", retryAfterSeconds: 0 } });
    const answer = await forceOff();
    assert.equal(answer.status, 202);
    assert.match(String(answer.headers["location"]), /TaskMonitors\/1$/);
    mock.clearFaults();
    assert.equal((await send("POST", RESET, { ResetType: "ForceOff" })).status, 204);
  });

  it("the Redfish mock with faults refuses a rule that makes no sense", () => {
    assert.throws(() => mock.addFault({ action: { type: "status", status: 99 } }));
    assert.throws(() => mock.addFault({ match: { path: "(" }, action: { type: "truncate" } }));
  });
});

describe("the control endpoint", () => {
  it("the control endpoint reports the state of the host, accepts commands and faults, and explains why it refuses others", async () => {
    const control = await startControlEndpoint({ rack, bmcs: new Map([["a", mock]]), help: controlHelp({}) });
    const call = async (
      method: "GET" | "POST" | "DELETE",
      path: string,
      body?: unknown,
    ): Promise<{ status: number; body: unknown }> => {
      const answer = await request(`${control.url}${path}`, {
        method,
        dispatcher: agent,
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      const text = await answer.body.text();
      return { status: answer.statusCode, body: text.startsWith("GET") ? text : JSON.parse(text) };
    };
    try {
      assert.equal((await call("POST", "/hosts/a", { do: "hang" })).status, 200);
      assert.equal(rack.host("a").os, "hung");
      const hosts = (await call("GET", "/hosts")).body as { canWrite: boolean; os: string }[];
      assert.deepEqual(
        hosts.map(({ os, canWrite }) => [os, canWrite]),
        [["hung", true]],
      );

      assert.equal((await call("POST", "/bmcs/a/faults", { action: { type: "status", status: 500 } })).status, 200);
      assert.equal((await send("GET", SYSTEM)).status, 500);
      assert.equal((await call("DELETE", "/bmcs/a/faults")).status, 200);
      assert.equal((await send("GET", SYSTEM)).status, 200);
      assert.equal(((await call("GET", "/bmcs/a/requests")).body as unknown[]).length, 2);

      assert.equal((await call("POST", "/hosts/a", { do: "fly" })).status, 400);
      assert.equal((await call("POST", "/hosts/x", { do: "hang" })).status, 400);
      assert.equal((await call("DELETE", "/bmcs/x/faults")).status, 404);
      assert.match(String((await call("GET", "/")).body), /^GET {4}\/hosts/);
    } finally {
      await control.close();
    }
  });
});
