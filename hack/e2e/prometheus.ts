import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { freePorts } from "../lib/ports.ts";
import { startChild, tail } from "../lib/processes.ts";
import { eventually } from "./eventually.ts";
import { repositoryPath } from "./world.ts";

const START_TIMEOUT_MS = 30_000;
const CALL_TIMEOUT_MS = 30_000;

/** One series of a query result: its labels, and its values by time in seconds. */
export interface Series {
  metric: Readonly<Record<string, string>>;
  values: readonly (readonly [seconds: number, value: string])[];
}

/** A real Prometheus that has loaded the rules of deploy/monitoring. */
export interface Prometheus {
  /** Evaluates an expression at each second of a range. @throws Error with the message of Prometheus. */
  range(expr: string, fromSeconds: number, toSeconds: number): Promise<readonly Series[]>;
  /** The loaded rules, and the result of their last evaluation. */
  rules(): Promise<readonly { name: string; health: string; lastError?: string }[]>;
  /** The alerts that are pending or firing. */
  alerts(): Promise<readonly { labels: Readonly<Record<string, string>>; state: string }[]>;
  /** The number of agents that it scrapes without an error. */
  targetsUp(): Promise<number>;
  stop(): Promise<void>;
}

/**
 * Starts a Prometheus that scrapes the metrics of agents once per second.
 *
 * @param folder for its data.
 * @param rules by default, those of deploy/monitoring.
 */
export async function startPrometheus(agents: readonly string[], folder: string, rules?: object): Promise<Prometheus> {
  const [port] = await freePorts(1);
  const address = `127.0.0.1:${port}`;
  const config = join(folder, "prometheus.yaml");
  const ruleFile = rules === undefined ? repositoryPath("deploy/monitoring/rules.yaml") : join(folder, "rules.yaml");
  if (rules !== undefined) await writeFile(ruleFile, JSON.stringify(rules));
  // YAML is a superset of JSON.
  await writeFile(
    config,
    JSON.stringify({
      global: { scrape_interval: "1s", scrape_timeout: "1s", evaluation_interval: "1s" },
      rule_files: [ruleFile],
      scrape_configs: [{ job_name: "ironfence", static_configs: [{ targets: agents }] }],
    }),
  );
  const child = startChild(
    "prometheus",
    "prometheus",
    [
      `--config.file=${config}`,
      `--storage.tsdb.path=${join(folder, "prometheus")}`,
      `--web.listen-address=${address}`,
      "--log.level=warn",
    ],
    { logFile: join(folder, "prometheus.log") },
  );
  const call = async (path: string, parameters: Readonly<Record<string, string>> = {}): Promise<unknown> => {
    const response = await fetch(`http://${address}/api/v1/${path}?${new URLSearchParams(parameters).toString()}`, {
      signal: AbortSignal.timeout(CALL_TIMEOUT_MS),
    });
    const answer = (await response.json()) as { status: string; error?: string; data: unknown };
    if (answer.status !== "success") throw new Error(`${path} ${parameters["query"] ?? ""}: ${answer.error}`);
    return answer.data;
  };
  await eventually(
    "Prometheus is ready",
    START_TIMEOUT_MS,
    async () => (await fetch(`http://${address}/-/ready`).catch(() => undefined))?.ok,
    () => Promise.resolve(tail(child.logFile)),
  );
  return {
    range: async (query, fromSeconds, toSeconds) => {
      const times = { start: String(fromSeconds), end: String(toSeconds), step: "1" };
      return ((await call("query_range", { query, ...times })) as { result: Series[] }).result;
    },
    rules: async () => {
      const { groups } = (await call("rules")) as { groups: { rules: { name: string; health: string }[] }[] };
      return groups.flatMap(({ rules }) => rules);
    },
    alerts: async () => ((await call("alerts")) as { alerts: Awaited<ReturnType<Prometheus["alerts"]>> }).alerts,
    targetsUp: async () => {
      const { activeTargets } = (await call("targets")) as { activeTargets: { health: string }[] };
      return activeTargets.filter(({ health }) => health === "up").length;
    },
    stop: () => child.stop(),
  };
}
