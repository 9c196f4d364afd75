import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import type { TestContext } from "node:test";
import { parseAllDocuments } from "yaml";
import { eventually } from "../../hack/e2e/eventually.ts";
import { startPrometheus } from "../../hack/e2e/prometheus.ts";
import type { Prometheus } from "../../hack/e2e/prometheus.ts";
import type { RackWorld } from "../../hack/e2e/rack-world.ts";
import { createHealthCheck, startRackWorld } from "../../hack/e2e/rack-world.ts";
import { TARGETS } from "../../hack/e2e/scenario.ts";
import { ALL_SIMULATED } from "../../hack/e2e/simulated-hosts.ts";
import { NAMESPACE, repositoryPath } from "../../hack/e2e/world.ts";
import type { Manifest } from "../../hack/lib/apply.ts";
import { applyObject, waitUntilEstablished } from "../../hack/lib/apply.ts";
import { readForeignCrds } from "../../hack/lib/crds.ts";
import { freePorts } from "../../hack/lib/ports.ts";
import type { Alert } from "../../hack/monitoring/alerts.ts";
import { ALERTS, runbookOf } from "../../hack/monitoring/alerts.ts";
import type { Rule } from "../../hack/monitoring/rules.ts";
import { plainRules } from "../../hack/monitoring/rules.ts";
import type { RedfishMock } from "../../hack/redfish-mock/server.ts";
import { startRedfishMock } from "../../hack/redfish-mock/server.ts";
import type { CheckResult } from "../../src/cli/check/check.ts";
import { Secret } from "../../src/runtime/secret.ts";
import { systemClock, systemRandom } from "../../src/runtime/system.ts";
import { cli } from "../integration/cli-fixture.ts";

// A night on call: faults are injected on a real control plane. For each of them, an alert fires in a real Prometheus
// (after one second instead of its waiting time), its runbook exists, and the page, `ironfence status`, `ironfence
// check` and `ironfence explain node` give the same answer with the same reason. When the fault is fixed, the alert
// ends and the answer is yes again.

export const WORKERS = ["worker-1", "worker-2", "worker-3", "worker-4", "worker-5"];
/** A target is probed at most every 5 s, a node is Unknown after 6 s, and a fence takes about 15 s. */
const SHOWN_MS = 60_000;
const MENDED_MS = 90_000;
export const TEMPLATES = `/apis/ironfence.io/v1alpha1/namespaces/${NAMESPACE}/baremetalremediationtemplates`;
export const REMEDIATIONS = `/apis/ironfence.io/v1alpha1/namespaces/${NAMESPACE}/baremetalremediations`;

export interface Fault {
  name: string;
  /** The node whose answer is checked; undefined if the fault does not belong to a node. */
  node: string | undefined;
  /** The expected answer and reason of the node; without a node, the reason of the object. */
  says: string;
  alert: Alert["name"];
  /** Expected labels of the alert, usually `reason`. */
  labels?: Readonly<Record<string, string>>;
  /** How long it takes until everything shows the fault, if that is longer than usual. */
  shownMs?: number;
  make: () => Promise<unknown>;
  mend: () => Promise<unknown>;
}

/** A healthy cluster, a Prometheus that scrapes its agent, and a page of `ironfence dashboard`. */
export interface Night {
  world: RackWorld;
  /** The address of the metrics of the agent, and of every later agent. */
  metrics: string;
  /** A BMC for all workers, whose certificate has expired. */
  expired: RedfishMock;
  /** The remediation template of the health check. */
  template: Manifest;
  target(name: string, nodeName?: string): Manifest;
  /** Gives the FencingTarget of a node another address or another Secret; the right ones by default. */
  patchDevice(node: string, address?: string, secret?: string): Promise<unknown>;
  command(...inputs: string[]): ReturnType<typeof cli>;
  answersAre(node: string, says: string): Promise<unknown>;
  /** The state of an alert: `inactive`, `pending` or `firing`. */
  stateOf(alert: Alert["name"]): Promise<string>;
  /** Injects all faults at once, checks that each is shown everywhere, and fixes them. */
  play(t: TestContext, faults: readonly Fault[]): Promise<void>;
  stop(): Promise<void>;
}

/** @param realWait alerts that wait as long as their rules say. All others wait for one second. */
export async function startNight({ realWait = [] }: { realWait?: readonly Alert["name"][] } = {}): Promise<Night> {
  let world: RackWorld;
  let expired: RedfishMock;
  let prometheus: Prometheus;
  let metrics: string;
  let page: { fetch: (path: string) => Promise<string>; stop: () => Promise<unknown> };
  let template: Manifest;

  const command = (...inputs: string[]): ReturnType<typeof cli> =>
    cli([...inputs, "--kubeconfig", world.controlPlane.kubeconfig]);
  const devicesOf = (address: string, secret: string): object[] => [
    { address, credentialsSecretRef: { name: secret }, tls: { caSecretRef: { name: "bmc" } } },
  ];
  const patchDevice = (node: string, address = world.hosts.address(node), secret = "bmc"): Promise<unknown> =>
    world.api.mergePatch(`${TARGETS}/${node}`, { spec: { devices: devicesOf(address, secret) } });
  const target = (name: string, nodeName = name): Manifest => ({
    apiVersion: "ironfence.io/v1alpha1",
    kind: "FencingTarget",
    metadata: { name, namespace: NAMESPACE },
    spec: {
      nodeName,
      identity: { systemUUID: world.rack.host(WORKERS.includes(name) ? name : "spare").spec.systemUUID },
      devices: devicesOf(world.hosts.address(WORKERS.includes(name) ? name : "spare"), "bmc"),
    },
  });

  const stop = async (): Promise<void> => {
    await page?.stop();
    await prometheus?.stop();
    await expired?.close();
    await world?.stop();
  };
  /** The page that `ironfence dashboard` serves. */
  async function openDashboard(): Promise<typeof page> {
    const stop = new AbortController();
    const printed = Promise.withResolvers<string>();
    const onLine = (text: string): void => {
      const [url] = /http:\/\/127\.0\.0\.1:\d+\/open\?key=\S+/.exec(text) ?? [];
      if (url !== undefined) printed.resolve(url);
    };
    const ended = cli(["dashboard", "--kubeconfig", world.controlPlane.kubeconfig], { signal: stop.signal, onLine });
    const url = await Promise.race([printed.promise, ended.then(({ err }) => assert.fail(err))]);
    const opened = await fetch(url, { redirect: "manual" });
    const cookie = opened.headers.get("set-cookie")?.split(";")[0] ?? "";
    const { origin } = new URL(url);
    return {
      fetch: async (path) => (await fetch(origin + path, { headers: { cookie } })).text(),
      stop: () => {
        stop.abort(new Error("the night is over"));
        return ended;
      },
    };
  }

  const firing = async (): Promise<Readonly<Record<string, string>>[]> =>
    (await prometheus.alerts()).filter(({ state }) => state === "firing").map(({ labels }) => labels);
  const alertsText = async (): Promise<string> => JSON.stringify(await prometheus.alerts());

  /** The answers of page, `status`, `check` and `explain` for a node. */
  async function answersOf(node: string): Promise<Record<"page" | "status" | "check" | "explain", string>> {
    const [html, status, checks, explained] = await Promise.all([
      page.fetch(`/nodes/${node}`),
      command("status"),
      findings(),
      command("explain", "node", node, "-o", "json"),
    ]);
    const [, answer, reason] = /Could we fence it\?.*?>(yes|no|unknown)<\/span>\s*(\w*)/s.exec(html) ?? [];
    const { couldFence } = JSON.parse(explained.out) as { couldFence?: { answer: string; reason: string } };
    return {
      page: words(answer, reason),
      status: named(status.out.split("\n"), /^ {2}(no|unknown): (\w+): (.*)$/, node),
      check: named(checks.get("could-fence") ?? [], /^(no|unknown): (\w+) \(\d+\): ([^:]*):/, node),
      explain: words(couldFence?.answer, couldFence?.reason),
    };
  }

  /** The findings of each check. */
  async function findings(): Promise<Map<string, string[]>> {
    const { out, err } = await command("check", "-o", "json");
    assert.match(out, /^\{"time"/, err);
    const { checks } = JSON.parse(out) as { checks: CheckResult[] };
    return new Map(checks.map(({ id, findings: found }) => [id, found.map(({ message }) => message)]));
  }

  const answersAre = (node: string, says: string, timeoutMs = SHOWN_MS): Promise<boolean> =>
    eventually(
      `page, status, check and explain say ${says} of ${node}`,
      timeoutMs,
      async () => Object.values(await answersOf(node)).every((answer) => answer === says),
      async () => JSON.stringify({ answers: await answersOf(node), alerts: await alertsText() }),
    );

  /** Whether page, `status` and `check` show a problem of an object that does not belong to a node. */
  async function areObjectsNamed(reason: string): Promise<boolean> {
    const [html, status, checks] = await Promise.all([page.fetch("/"), command("status"), findings()]);
    return [html, status.out, [...checks.values()].flat().join("\n")].every((text) => text.includes(reason));
  }

  const isFiring = async ({ alert, labels = {} }: Fault): Promise<boolean> =>
    (await firing()).some(
      (found) =>
        found["alertname"] === alert && Object.entries(labels).every(([label, value]) => found[label] === value),
    );

  /** Injects all faults at once, checks each, and fixes them. */
  async function play(t: TestContext, faults: readonly Fault[]): Promise<void> {
    const startMs = systemClock.nowMs();
    for (const { make } of faults) await make();
    for (const fault of faults) {
      const { name, node, says, alert } = fault;
      await eventually(`${alert} fires for: ${name}`, SHOWN_MS, () => isFiring(fault), alertsText);
      const firesAfterMs = systemClock.nowMs() - startMs;
      if (node === undefined) {
        await eventually(`${says} is shown everywhere`, SHOWN_MS, () => areObjectsNamed(says));
      } else await answersAre(node, says, fault.shownMs);
      const runbook = runbookOf({ name: alert });
      assert.ok(existsSync(repositoryPath(runbook)), runbook);
      const seconds = (ms: number): string => (ms / 1_000).toFixed(0);
      const where = node === undefined ? "page, status and check" : "page, status, check and explain";
      const rule = ALERTS.find((known) => known.name === alert);
      t.diagnostic(
        `${name}: ${alert} ${JSON.stringify(fault.labels ?? {})} within ${seconds(firesAfterMs)} s (its rule waits ${rule?.forMinutes} min); ${where} say "${says}" within ${seconds(systemClock.nowMs() - startMs)} s; ${runbook}`,
      );
    }
    for (const { mend } of faults) await mend();
    for (const { node } of faults) if (node !== undefined) await answersAre(node, "yes", MENDED_MS);
    for (const fault of faults) {
      // This alert fires for an hour, so that an operator can still read why a remediation has failed.
      if (fault.alert === "IronfenceRemediationFailed") continue;
      await eventually(`${fault.alert} ends`, MENDED_MS, async () => !(await isFiring(fault)), alertsText);
    }
  }

  try {
    world = await startRackWorld(
      [
        ...WORKERS.map((name) => ({ name, labels: { role: "worker" }, bootMs: 1_000 })),
        // This host has no node.
        { name: "spare", power: "Off" as const },
      ],
      { targets: WORKERS.map((name) => ({ name })) },
    );
    const { api, rack, authority, hosts, controlPlane } = world;
    const tls = await authority.issue({
      commonName: "bmc",
      ipAddresses: ["127.0.0.1"],
      usage: "server",
      validDays: -1,
    });
    const { username, password } = hosts.login;
    const deps = { clock: systemClock, random: systemRandom };
    expired = await startRedfishMock({ ...deps, rack, tls, username, password: new Secret(password) });
    await createHealthCheck(world, { type: "Reboot" }, { minHealthy: 1 });
    template = await api.get<Manifest>(`${TEMPLATES}/reboot`);
    await api.create(`/api/v1/namespaces/${NAMESPACE}/secrets`, {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "bmc-wrong", annotations: { "ironfence.io/allowed-addresses": ALL_SIMULATED } },
      stringData: { ...hosts.login, password: "not-the-password" },
    });
    for (const text of await readForeignCrds()) {
      for (const document of parseAllDocuments(text)) {
        const crd = document.toJS() as Manifest;
        if (crd.metadata.name !== "baremetalhosts.metal3.io") continue;
        await applyObject(api, crd);
        await waitUntilEstablished(api, crd.metadata.name);
      }
    }
    const [port] = await freePorts(1);
    metrics = `127.0.0.1:${port}`;
    await world.startAgent([`--metrics-bind-address=${metrics}`]);
    prometheus = await startPrometheus([metrics], controlPlane.folder, hurriedRules(realWait));
    page = await openDashboard();
    for (const node of WORKERS) await answersAre(node, "yes");
    await eventually("no alert fires", SHOWN_MS, async () => (await firing()).length === 0, alertsText);
    const stateOf = async (alert: Alert["name"]): Promise<string> => {
      const found = (await prometheus.alerts()).find(({ labels }) => labels["alertname"] === alert);
      return found?.state ?? "inactive";
    };
    return { world, metrics, expired, template, target, patchDevice, command, answersAre, stateOf, play, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function hurriedRules(realWait: readonly Alert["name"][]): object {
  const { groups } = plainRules();
  const hurry = (rule: Rule): Rule =>
    rule.for === undefined || realWait.includes(rule.alert) ? rule : { ...rule, for: "1s" };
  return { groups: groups.map((group) => ({ ...group, rules: group.rules.map(hurry) })) };
}

const words = (answer = "", reason = ""): string => `${answer} ${reason}`.trim();

/** The line that names the node. If there is none, the answer is yes. */
function named(lines: readonly string[], form: RegExp, node: string): string {
  const found = lines.flatMap((line) => {
    const [, answer, reason, names = ""] = form.exec(line) ?? [];
    return names.split(/, | and /).includes(node) ? [words(answer, reason)] : [];
  });
  return found.join(" and ") || "yes";
}
