import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { Chronicle } from "../../../hack/demo/chronicle.ts";
import { observe } from "../../../hack/demo/observe.ts";
import { play, SCENES } from "../../../hack/demo/scenes.ts";
import type { World } from "../../../hack/demo/world.ts";
import { startWorld } from "../../../hack/demo/world.ts";
import { axeViolations, startChromium } from "../../../hack/e2e/chromium.ts";
import { pictureOf } from "../../../hack/e2e/picture.ts";
import { repositoryPath } from "../../../hack/e2e/world.ts";
import { startAgent } from "../../../hack/lib/agent-process.ts";
import { startDashboard } from "../../../hack/lib/dashboard-process.ts";
import type { Child } from "../../../hack/lib/processes.ts";
import { LocalGuard } from "../../../src/cli/dashboard/serve/local-guard.ts";
import { serveDashboard } from "../../../src/cli/dashboard/serve/server.ts";
import type { Overview } from "../../../src/cli/status/objects/read.ts";
import { toTime } from "../../../src/runtime/time.ts";
import { systemClock, systemRandom } from "../../../src/runtime/system.ts";
import { node, remediation, target } from "../../unit/cli/dashboard/fixture.ts";
import { OVERVIEW } from "../../unit/cli/overview-fixture.ts";

// The dashboard in a real browser, during the outages of the demo and with a cluster of 5,000 nodes.

const SHOWN_TIMEOUT_MS = 30_000;
const PHONE = { width: 390, height: 844 };
/** Users notice a longer frame as a stall. The limit allows for other tests on the machine. */
const STALL_MS = 250;
/** Screenshots are not kept in the repository. */
const SCREENSHOTS = repositoryPath("dist/dashboard");

let browser: Browser;
before(async () => {
  browser = await startChromium();
  await mkdir(SCREENSHOTS, { recursive: true });
});
after(() => browser?.close());

/** Opens the address in a browser. Returns the page and all errors in it. */
async function open(url: string, options: Parameters<Browser["newContext"]>[0] = {}) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const errors: string[] = [];
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") errors.push(message.text());
  });
  const foreign: string[] = [];
  page.on("request", (request) => {
    const { origin, protocol } = new URL(request.url());
    if (protocol !== "data:" && origin !== new URL(url).origin) foreign.push(request.url());
  });
  await page.goto(url);
  await page.waitForURL((to) => to.pathname === "/");
  return { context, page, errors, foreign };
}

const shot = (page: Page, name: string): Promise<unknown> =>
  page.screenshot({ path: join(SCREENSHOTS, `${name}.png`), fullPage: true });

/** The folder of the pictures in the docs; set only to replace them. */
const PICTURES = process.env["IRONFENCE_PICTURES"];
const picture = async (page: Page, name: string, title: string): Promise<void> => {
  const text = await pictureOf(page, title);
  assert.match(text, /<text /);
  await writeFile(join(PICTURES === undefined ? SCREENSHOTS : repositoryPath(PICTURES), `${name}.svg`), text);
};

void describe("the dashboard in Chromium, through the outages of the demo", () => {
  let folder: string;
  let world: World;
  let agent: Child;
  let dashboard: Awaited<ReturnType<typeof startDashboard>>;
  let opened: Awaited<ReturnType<typeof open>>;
  const chronicle = new Chronicle(systemClock);

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "ironfence-chromium-"));
    world = await startWorld(folder);
    agent = startAgent({ kubeconfig: world.kubeconfigPath, logFile: join(folder, "agent.log") });
    dashboard = await startDashboard({ kubeconfig: world.kubeconfigPath, logFile: join(folder, "dashboard.log") });
    opened = await open(dashboard.url);
  });
  after(async () => {
    await opened?.context.close();
    await dashboard?.child.stop();
    await agent?.stop();
    await world?.stop();
    if (folder !== undefined) await rm(folder, { recursive: true });
  });

  void test("the secret is in no address that the browser keeps, and every node could be fenced", async () => {
    const { page } = opened;
    assert.doesNotMatch(page.url(), /key/);
    await page.locator("#summary", { hasText: "6 yes" }).waitFor({ timeout: SHOWN_TIMEOUT_MS });
    assert.deepEqual(await axeViolations(page), []);
    await shot(page, "quiet");
    await picture(page, "quiet", "Every node could be fenced");
  });

  for (const [index, scene] of SCENES.entries()) {
    void test(`the dashboard in Chromium shows the fence of scene ${index + 1} (${scene.title}) without a reload, and then under the last 30 days`, async () => {
      const { page } = opened;
      const observed = observe(world, chronicle);
      try {
        const played = play(scene, index + 1, world, chronicle);
        const card = page.locator("#now li").filter({ hasText: scene.host });
        // A fence without a BMC fails after a few seconds. On a busy machine, one read may take as long.
        if (scene.expected.includes("off")) {
          await card.first().waitFor({ timeout: SHOWN_TIMEOUT_MS });
          assert.match((await card.first().textContent()) ?? "", /Safe to disconnect the power by hand\?\s*no/);
          await shot(page, `scene-${index + 1}-now`);
          await picture(page, `scene-${index + 1}-now`, `Scene ${index + 1}, ${scene.title}: the fence is under way`);
          assert.deepEqual(await axeViolations(page), []);
        }
        const { problems } = await played;
        const timeline = chronicle.entries.map(({ atMs, host, text }) => `${atMs} ms ${host}: ${text}`).join("\n");
        assert.deepEqual(problems, [], timeline);
        await page.locator("#ended li").filter({ hasText: scene.host }).first().waitFor({ timeout: SHOWN_TIMEOUT_MS });
        await shot(page, `scene-${index + 1}-ended`);
        await picture(page, `scene-${index + 1}-ended`, `Scene ${index + 1}, ${scene.title}: the fence has ended`);
        assert.deepEqual(await axeViolations(page), []);
      } finally {
        observed.stop();
      }
    });
  }

  void test("the page of a node shows its fence as a picture, and what its BMC has shown", async () => {
    const { page } = opened;
    await page.locator("#ended a", { hasText: "node-3" }).first().click();
    await page.getByRole("heading", { name: "Node node-3" }).waitFor();
    assert.ok((await page.locator("svg rect").count()) > 5, "steps in the picture");
    assert.match((await page.locator("#evidence").textContent()) ?? "", /redfish\+https:\/\/127\.0\.0\.1/);
    assert.deepEqual(await axeViolations(page), []);
    await shot(page, "node");
    await picture(page, "node", "The page of a node after its fence");
  });

  void test("the page is the same in the dark, on a phone and without scripts", async () => {
    const { port } = new URL(dashboard.url);
    for (const [name, options] of [
      ["dark", { colorScheme: "dark" }],
      ["phone", { viewport: PHONE, isMobile: true, hasTouch: true }],
      ["without-scripts", { javaScriptEnabled: false }],
    ] as const) {
      const { context, page, errors } = await open(dashboard.url, options);
      await page.getByRole("heading", { name: "Could we fence?" }).waitFor();
      if (name !== "without-scripts") assert.deepEqual(await axeViolations(page), [], name);
      for (const path of ["/", "/nodes/node-2"]) {
        await page.goto(`http://127.0.0.1:${port}${path}`);
        const overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
        if (name === "phone") assert.equal(await page.evaluate(overflow), 0, `${path} scrolls sideways`);
      }
      await shot(page, name);
      assert.deepEqual(errors, [], name);
      await context.close();
    }
  });

  void test("every link is reached with the keyboard, the one that skips to the content first", async () => {
    const { page } = opened;
    await page.goto(`${new URL(page.url()).origin}/`);
    await page.keyboard.press("Tab");
    const focused = (): Promise<string> => page.evaluate("document.activeElement.textContent.trim()");
    assert.equal(await focused(), "Skip to the content");
    const reached = new Set<string>();
    for (let press = 0; press < 60; press++) {
      await page.keyboard.press("Tab");
      reached.add(await focused());
    }
    for (const name of ["Overview", "All nodes", "node-1"])
      assert.ok(reached.has(name), `${name} of ${[...reached].join()}`);
  });

  void test("the page says when it gets no news, and the browser has found nothing wrong all along", async () => {
    const { page, errors, foreign } = opened;
    assert.deepEqual(errors, []);
    assert.deepEqual(foreign, [], "nothing is loaded from elsewhere");
    await dashboard.child.stop();
    await page.locator("#news", { hasText: /No updates from the server/ }).waitFor({ timeout: SHOWN_TIMEOUT_MS });
    await shot(page, "no-news");
  });
});

void describe("the dashboard in Chromium, with 5,000 nodes", () => {
  const names = Array.from({ length: 5_000 }, (_, index) => `worker-${index}.rack-${index % 40}.example.com`);
  const PROBED = { lastProbeTime: toTime(systemClock.nowMs()) };
  const XSS = `<img src=x onerror="document.title='hacked'">`;
  const overview: Overview = {
    ...OVERVIEW,
    nodes: names.map((name) => node(name)),
    targets: names.map((name, index) =>
      target(name, index % 5 === 0 ? { reason: "BMCTimeout", message: XSS } : { status: PROBED }),
    ),
    remediations: names.slice(0, 60).map((name) => remediation(name, "PoweringOff", XSS)),
  };
  const guard = new LocalGuard(systemRandom);
  let server: Awaited<ReturnType<typeof serveDashboard>>;
  let context: BrowserContext;
  let page: Page;
  /** Prefix of the names of nodes whose BMC has stopped answering. */
  let unreachable = "";
  const targetsNow = (): Overview["targets"] =>
    unreachable === ""
      ? overview.targets
      : names.map((name, index) =>
          name.startsWith(unreachable)
            ? target(name, { reason: "Unreachable", message: "no route" })
            : target(name, index % 5 === 0 ? { reason: "BMCTimeout", message: XSS } : { status: PROBED }),
        );

  before(async () => {
    const source = {
      readOverview: () => Promise.resolve({ ...overview, targets: targetsNow(), nowMs: systemClock.nowMs() }),
      readDecisions: () => Promise.reject(new Error("there are none")),
    };
    const deps = { clock: systemClock, source, guard: guard.guard, certificate: undefined };
    server = await serveDashboard({ host: "127.0.0.1", port: 0 }, deps);
    guard.port = server.port;
    ({ context, page } = await open(guard.url));
  });
  after(async () => {
    await context?.close();
    await server?.close();
  });

  void test("texts from the cluster run no code", async () => {
    await page.getByText(XSS).first().waitFor();
    assert.equal(await page.locator("img").count(), 0);
    assert.doesNotMatch(await page.title(), /hacked/);
  });

  void test("the page asks again after a refusal, and shows news as soon as it is served again", async () => {
    await context.route("**/events?*", (route) => route.fulfill({ status: 503, body: "not now" }));
    await page.reload();
    await page.locator("#news", { hasText: /refused this page/ }).waitFor({ timeout: SHOWN_TIMEOUT_MS });
    await context.unroute("**/events?*");
    await page.locator("body.live").waitFor({ timeout: SHOWN_TIMEOUT_MS });
  });

  void test("all nodes are listed and the first view takes less than 100 KiB in all", async () => {
    const fresh = await context.newPage();
    const cdp = await context.newCDPSession(fresh);
    await cdp.send("Network.enable");
    let bytes = 0;
    cdp.on("Network.dataReceived", ({ dataLength }) => (bytes += dataLength));
    await fresh.goto(`${new URL(page.url()).origin}/nodes`);
    await fresh.locator("body.live").waitFor({ timeout: SHOWN_TIMEOUT_MS });
    await fresh.locator("ul.block:not(.rest, .end) > li").nth(99).waitFor({ timeout: SHOWN_TIMEOUT_MS });
    assert.ok(bytes > 10_000 && bytes < 100 * 1_024, `${bytes} bytes`);
    assert.equal(await fresh.locator("ul.block").count(), 100, "a slice of 50 each");
    assert.deepEqual(await axeViolations(fresh), []);
    await fresh.close();
  });

  void test("5,000 nodes scroll from top to bottom without a stall, and each has its row when it is in sight", async (context) => {
    await page.getByRole("link", { name: "All nodes" }).first().click();
    await page.locator("body.live").waitFor({ timeout: SHOWN_TIMEOUT_MS });
    await page.evaluate(`
      window.tasks = [];
      new PerformanceObserver((list) => window.tasks.push(...list.getEntries().map(({ duration }) => duration)))
        .observe({ type: "longtask" });
    `);
    await page.evaluate(`(async () => {
      for (let y = 0; y < document.documentElement.scrollHeight; y += 800) {
        window.scrollTo({ top: y, behavior: "instant" });
        await new Promise(requestAnimationFrame);
      }
    })()`);
    assert.ok(await page.evaluate<boolean>("window.scrollY > 50000"), "it has scrolled");
    await page.locator("ul.block").last().locator("li").nth(49).waitFor({ timeout: SHOWN_TIMEOUT_MS });
    const inSight = `[...document.querySelectorAll("ul.block")].filter((block) => {
      const { top, bottom } = block.getBoundingClientRect();
      return bottom > 0 && top < innerHeight;
    }).every((block) => block.children.length === 50)`;
    assert.ok(await page.evaluate<boolean>(inSight), "rows at the bottom");
    await page.evaluate(`window.scrollTo({ top: document.documentElement.scrollHeight / 2, behavior: "instant" })`);
    await page.waitForFunction(inSight, undefined, { timeout: SHOWN_TIMEOUT_MS });
    const tasks = await page.evaluate<number[]>("window.tasks");
    context.diagnostic(`long tasks: ${tasks.map(Math.round).join(" ")}`);
    assert.ok(
      tasks.every((durationMs) => durationMs < STALL_MS),
      `${tasks.join()} ms`,
    );
  });

  void test("new data changes the rows that are loaded and keeps the position on the page", async () => {
    const row = page.locator("ul.block > li", { hasText: "worker-2500." }).first();
    await page.getByLabel("Show nodes with").fill("worker-25");
    // The row may still belong to the list of all nodes, which the filtered list then replaces.
    await page.locator("#summary", { hasText: /of 5000 nodes match/ }).waitFor({ timeout: SHOWN_TIMEOUT_MS });
    await row.waitFor({ timeout: SHOWN_TIMEOUT_MS });
    await page.locator("ul.block").last().scrollIntoViewIfNeeded();
    // waitForFunction does not work, because the Content-Security-Policy of the page forbids evaluation.
    await page.locator("ul.rest, ul.end").first().waitFor({ state: "detached", timeout: SHOWN_TIMEOUT_MS });
    const changed = page.locator("ul.block > li", { hasText: "worker-2599." });
    assert.match((await changed.textContent()) ?? "", /yes/);
    // An update may replace the row at any time, so the test scrolls to it without waiting until it is stable.
    await changed.evaluate("(row) => row.scrollIntoView()");
    const before = await page.evaluate<number>("window.scrollY");
    unreachable = "worker-2599.";
    await changed.filter({ hasText: "Unreachable" }).waitFor({ timeout: SHOWN_TIMEOUT_MS });
    unreachable = "";
    assert.ok(before === 0 || (await page.evaluate<number>("window.scrollY")) > 0, "it is not thrown to the top");
  });

  void test("all nodes are reached with the keyboard alone, slice after slice", async () => {
    await page.goto(`${new URL(page.url()).origin}/nodes`);
    await page.locator("body.live").waitFor({ timeout: SHOWN_TIMEOUT_MS });
    await page.locator("ul.block").nth(1).locator("li").nth(49).waitFor({ timeout: SHOWN_TIMEOUT_MS });
    await page.locator("ul.block").first().locator("a").last().focus();
    const reached: string[] = [];
    for (let press = 0; press < 120; press++) {
      await page.keyboard.press("Tab");
      reached.push(await page.evaluate<string>("document.activeElement.textContent"));
      if (press % 40 === 0) await page.waitForTimeout(300);
    }
    const names = reached.filter((text) => text.startsWith("worker-"));
    assert.equal(new Set(names).size, names.length, "each once");
    assert.ok(names.length > 100, `${names.length} of 120`);
  });

  void test("the filter finds a node among all, with the script and without it", async () => {
    await page.getByLabel("Show nodes with").fill("worker-4711.");
    await page.locator("#summary", { hasText: "1 of 5000 nodes match" }).waitFor({ timeout: SHOWN_TIMEOUT_MS });
    assert.equal(await page.locator("ul.block > li").count(), 1);
    assert.match(page.url(), /\/nodes\?q=worker-4711\.$/);
    await shot(page, "filtered");
    const plain = await open(guard.url, { javaScriptEnabled: false });
    await plain.page.goto(`${new URL(page.url()).origin}/nodes`);
    await plain.page.getByRole("link", { name: "Nodes 51 to 100" }).click();
    assert.equal(await plain.page.locator("#nodes-50 > li").count(), 50);
    await plain.page.getByLabel("Show nodes with").fill("worker-4711.");
    await plain.page.getByRole("button", { name: "Show" }).click();
    assert.equal(await plain.page.locator("ul.block > li").count(), 1);
    await plain.context.close();
  });
});
