import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { request } from "undici";
import { LivePages } from "../../../../src/cli/dashboard/serve/live-pages.ts";
import { LocalGuard } from "../../../../src/cli/dashboard/serve/local-guard.ts";
import { serveDashboard } from "../../../../src/cli/dashboard/serve/server.ts";
import { eventText } from "../../../../src/cli/dashboard/serve/event-stream.ts";
import type { Overview } from "../../../../src/cli/status/objects/read.ts";
import { systemClock, systemRandom } from "../../../../src/runtime/system.ts";
import { AT, OVERVIEW } from "../overview-fixture.ts";
import { node, remediation, target } from "./fixture.ts";

const SHOWN: Overview = { ...OVERVIEW, nodes: [node("w1")], targets: [target("w1")] };
const EVENTS_TIMEOUT_MS = 10_000;

describe("the server of the dashboard", () => {
  const guard = new LocalGuard(systemRandom);
  let server: Awaited<ReturnType<typeof serveDashboard>>;
  let overview: () => Promise<Overview> = () => Promise.resolve(SHOWN);
  let cookie = "";
  before(async () => {
    const source = { readOverview: () => overview(), readDecisions: () => Promise.reject(new Error("not today")) };
    const deps = { clock: systemClock, source, guard: guard.guard, certificate: undefined };
    server = await serveDashboard({ host: "127.0.0.1", port: 0 }, deps);
    guard.port = server.port;
    cookie = String((await get("/open", {}, new URL(guard.url).search)).headers["set-cookie"]).split(";")[0] ?? "";
  });
  after(() => server.close());

  async function get(
    path: string,
    headers: Record<string, string> = { cookie },
    query = "",
    method: "GET" | "POST" = "GET",
  ) {
    const response = await request(`http://127.0.0.1:${server.port}${path}${query}`, { headers, method });
    return { status: response.statusCode, headers: response.headers, text: await response.body.text() };
  }

  it("the server of the dashboard shows nothing, not even what there is, without the secret of its address", async () => {
    for (const path of [
      "/",
      "/nodes",
      "/nodes?q=w1",
      "/rows",
      "/nodes/w1",
      "/events",
      "/page.js",
      "/nothing",
      "/open",
      "/open?key=",
      "/open?key=guess",
    ]) {
      const { status, text } = await get(path, {});
      assert.equal(status, 401, path);
      assert.doesNotMatch(text, /w1/);
    }
    assert.equal((await get("/", { cookie: `${cookie}x` })).status, 401);
  });

  it("the server of the dashboard exchanges the secret for a cookie that no script and no other site can use", async () => {
    const { status, headers, text } = await get("/open", {}, new URL(guard.url).search);
    assert.equal(status, 200);
    assert.match(String(headers["set-cookie"]), /; Path=\/; HttpOnly; SameSite=Strict$/);
    const key = new URL(guard.url).searchParams.get("key") ?? "";
    assert.ok(key.length >= 43, "256 bits");
    assert.ok(!text.includes(key) && !String(headers["set-cookie"]).includes(key));
  });

  it("the server of the dashboard answers to its own name alone, so that no name of an attacker leads to it", async () => {
    for (const host of [
      "evil.example",
      `evil.example:${server.port}`,
      "127.0.0.1",
      `127.0.0.1.evil.example:${server.port}`,
    ]) {
      const { status, text } = await get("/", { cookie, host });
      assert.equal(status, 403, host);
      assert.doesNotMatch(text, /w1/);
    }
    assert.equal((await get("/", { cookie, host: `localhost:${server.port}` })).status, 200);
  });

  it("the server of the dashboard answers no request that another website made", async () => {
    for (const origin of ["https://evil.example", "null", `http://localhost:${server.port}`]) {
      assert.equal((await get("/", { cookie, origin })).status, 403, origin);
    }
    assert.equal((await get("/", { cookie, origin: `http://127.0.0.1:${server.port}` })).status, 200);
  });

  it("the server of the dashboard lets a browser load and run only what it serves itself, in no frame", async () => {
    for (const path of ["/", "/nodes", "/nodes/w1", "/nothing", "/page.css"]) {
      const { headers } = await get(path);
      assert.match(
        String(headers["content-security-policy"]),
        /^default-src 'none'; script-src 'self'; style-src 'self';/,
      );
      assert.match(String(headers["content-security-policy"]), /frame-ancestors 'none'/);
      assert.equal(headers["x-content-type-options"], "nosniff");
      assert.equal(headers["cache-control"], "no-store");
      assert.equal(headers["referrer-policy"], "no-referrer");
    }
  });

  it("the server of the dashboard only reads", async () => {
    for (const path of ["/", "/nodes/w1", "/events"])
      assert.equal((await get(path, { cookie }, "", "POST")).status, 405);
  });

  it("the server of the dashboard has a page for all nodes and for each node, and none for a node that nothing knows", async () => {
    assert.match((await get("/")).text, /Could we fence\?/);
    assert.match((await get("/nodes")).text, /href="\/nodes\/w1"/);
    assert.match((await get("/nodes?q=w1")).text, /1 of 1 nodes match/);
    assert.doesNotMatch((await get("/nodes?q=other")).text, /href="\/nodes\/w1"/);
    assert.match((await get("/rows?from=0")).text, /^<li><a href="\/nodes\/w1">/);
    const { text } = await get("/nodes/w1");
    assert.match(text, /Preconditions of a fence of this node/);
    assert.match(text, /decisions of health checks are not shown: not today/);
    for (const path of ["/nodes/w2", "/nodes/%E0%A4%A", "/nodes/__proto__", "/toString"]) {
      assert.equal((await get(path)).status, 404, path);
    }
  });

  it("the server of the dashboard sends a page when it has changed, when it was read, and when it cannot be read", async () => {
    const { body } = await request(`http://127.0.0.1:${server.port}/events?page=/`, { headers: { cookie } });
    let text = "";
    body.on("data", (chunk: Buffer) => (text += chunk.toString()));
    body.on("error", () => undefined);
    const until = async (pattern: RegExp): Promise<void> => {
      const endMs = performance.now() + EVENTS_TIMEOUT_MS;
      while (!pattern.test(text)) {
        assert.ok(performance.now() < endMs, `${String(pattern)} is not in ${text.slice(0, 500)}`);
        await delay(20);
      }
    };
    await until(/event: page\nid: \S+\ndata: <section id="agent"[\s\S]*event: beat\ndata: 2026-01-01T00:00:00Z\n\n/);
    text = "";
    await until(/event: beat/);
    assert.doesNotMatch(text, /event: page/, "it has not changed");
    overview = () => Promise.reject(new Error("no route to\nevent: page\ndata: hack"));
    await until(/event: trouble\ndata: no route to event: page data: hack\n\n/);
    overview = () => Promise.resolve({ ...SHOWN, stopSwitch: { paused: true, reason: "paused by ann" } });
    text = "";
    await until(/event: page[\s\S]*paused by ann/);
    overview = () => Promise.resolve(SHOWN);
    body.destroy();
  });

  it("the server of the dashboard sends no line of others that could begin an event", () => {
    assert.equal(
      eventText("page", "a\r\nevent: x\rdata: y\n", "v"),
      "event: page\nid: v\ndata: a\ndata: event: x\ndata: data: y\ndata: \n\n",
    );
  });
});

describe("the version of a page", () => {
  it("the version of a page does not change because time passes, else every page would be sent every two seconds", async () => {
    const shown = async (afterMs: number, phase: string): Promise<[string | undefined, boolean | undefined]> => {
      const nowMs = OVERVIEW.nowMs + afterMs;
      const remediations = [remediation("w1", phase, phase, { timeline: [{ step: "s", time: AT }] })];
      const overview: Overview = { ...SHOWN, nowMs, nodes: [node("w1", "Unknown")], remediations };
      const source = {
        readOverview: () => Promise.resolve(overview),
        readDecisions: () => Promise.reject(new Error()),
      };
      const content = await new LivePages(source, systemClock, new AbortController().signal).content("/");
      return [content?.version, content?.html.text.includes(`>${afterMs / 1_000} s</time>`)];
    };
    const [first, isShown] = await shown(41_000, "PoweringOff");
    assert.ok(isShown === true);
    assert.deepEqual(await shown(42_000, "PoweringOff"), [first, true]);
    assert.notEqual((await shown(42_000, "Releasing"))[0], first);
  });
});

describe("the pages of many viewers", () => {
  it("the pages of many viewers are made once for each read, and each page as often as it differs", async () => {
    let nowMs = 0;
    const clock = { ...systemClock, monotonicMs: () => nowMs };
    let reads = 0;
    const source = {
      readOverview: () => {
        reads += 1;
        return Promise.resolve({ ...SHOWN });
      },
      readDecisions: () => Promise.resolve({ problem: "not today" }),
    };
    const pages = new LivePages(source, clock, new AbortController().signal);
    for (const path of ["/", "/nodes", "/nodes?q=w", "/nodes/w1"]) {
      const all = await Promise.all(Array.from({ length: 20 }, () => pages.content(path)));
      assert.ok(all[0] !== undefined);
      for (const content of all) assert.equal(content, all[0], path);
    }
    assert.equal(await pages.content("/nodes?x=1&from=0"), await pages.content("/nodes"), "the same page");
    assert.notEqual((await pages.content("/nodes"))?.html, (await pages.content("/nodes?q=w"))?.html);
    assert.equal(reads, 1);
    const before = await pages.content("/");
    nowMs += 60_000;
    assert.notEqual(await pages.content("/"), before, "after the next read");
    assert.equal(reads, 2);
  });

  it("the pages of many viewers are bounded in number, whatever they ask for", async () => {
    const source = { readOverview: () => Promise.resolve(SHOWN), readDecisions: () => Promise.reject(new Error("no")) };
    const pages = new LivePages(source, systemClock, new AbortController().signal);
    const first = await pages.content("/nodes?q=0");
    for (let index = 1; index < 200; index += 1) await pages.content(`/nodes?q=${index}`);
    assert.notEqual(await pages.content("/nodes?q=0"), first, "it was dropped and made again");
  });
});
