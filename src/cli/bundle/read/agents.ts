import { PODS } from "../../../api/kubernetes/core-types.ts";
import { OF_IRONFENCE } from "../../../api/names/labels.ts";
import { objectPath } from "../../../kube/api-client/api-paths.ts";
import type { KubeObject } from "../../../kube/resource.ts";
import type { KubeTransport, TransportRequest } from "../../../kube/transport.ts";
import type { Part, PartDeps, PartFile, PartResult } from "../part.ts";

/** A log has at most this many lines and characters. The newest are kept. */
const LOG_LINES_MAX = 20_000;
const LOG_CHARACTERS_MAX = 8 * 1_024 * 1_024;
const METRICS_CHARACTERS_MAX = 4 * 1_024 * 1_024;
const CALL_TIMEOUT_MS = 20_000;
/** How many pods are read. If a cluster has more pods with this label, some of them do not belong to ironfence. */
const PODS_MAX = 6;
const CONTAINER = "ironfence";
/** Port of the metrics, unless the pod names another one. */
const METRICS_PORT = 8_080;

/** The log and the metrics of each replica of the agent. */
export const AGENT_PARTS: readonly Part[] = [
  { name: "logs", timeoutMs: 60_000, read: readLogs },
  { name: "metrics", timeoutMs: 30_000, read: readMetrics },
];

interface AgentPod extends KubeObject {
  spec?: { containers?: { ports?: { name?: string; containerPort: number }[] }[] };
  status?: { containerStatuses?: { name: string; restartCount?: number }[] };
}

async function readPods({ runtime, options }: PartDeps, signal: AbortSignal): Promise<AgentPod[]> {
  const selection = { namespace: options.namespace, ...OF_IRONFENCE };
  const { items } = await runtime.client.list<AgentPod>(PODS, selection, signal);
  if (items.length === 0) throw new Error(`namespace ${options.namespace} has no pod of ironfence`);
  return items.slice(0, PODS_MAX);
}

async function readLogs(deps: PartDeps, signal: AbortSignal): Promise<PartResult> {
  const pods = await readPods(deps, signal);
  const wanted = pods.flatMap((pod) => {
    const restarts = pod.status?.containerStatuses?.find(({ name }) => name === CONTAINER)?.restartCount ?? 0;
    return restarts > 0
      ? [
          { pod, previous: false },
          { pod, previous: true },
        ]
      : [{ pod, previous: false }];
  });
  return readEach(wanted, async ({ pod, previous }) => {
    const { name, namespace = "" } = pod.metadata;
    const query = new URLSearchParams({
      container: CONTAINER,
      tailLines: String(LOG_LINES_MAX),
      timestamps: "true",
      ...(previous && { previous: "true" }),
    }).toString();
    const path = `${objectPath(PODS, { namespace, name }, { subresource: "log" })}?${query}`;
    const text = await readText(deps.transport, path, LOG_CHARACTERS_MAX, signal);
    return {
      path: `logs/${name}${previous ? ".previous" : ""}.log`,
      log: text.split("\n").filter((line) => line !== ""),
    };
  });
}

/** Reads the metrics through the API server, so that no port of a pod has to be reachable from here. */
async function readMetrics(deps: PartDeps, signal: AbortSignal): Promise<PartResult> {
  const pods = await readPods(deps, signal);
  return readEach(pods, async ({ metadata: { name, namespace = "" }, spec }) => {
    const ports = spec?.containers?.flatMap((container) => container.ports ?? []) ?? [];
    // The proxy of the API server does not resolve the names of a pod's ports.
    const port = ports.find((candidate) => candidate.name === "metrics")?.containerPort ?? METRICS_PORT;
    const path = `${objectPath(PODS, { namespace, name: `${name}:${port}` }, { subresource: "proxy" })}/metrics`;
    return { path: `metrics/${name}.txt`, text: await readText(deps.transport, path, METRICS_CHARACTERS_MAX, signal) };
  });
}

/** If one pod does not answer, the others are still read. */
async function readEach<T>(wanted: readonly T[], read: (one: T) => Promise<PartFile>): Promise<PartResult> {
  const results = await Promise.allSettled(wanted.map(read));
  const files = results.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
  const gaps = results.flatMap((result) =>
    result.status === "rejected"
      ? [result.reason instanceof Error ? result.reason.message : String(result.reason)]
      : [],
  );
  return { files, gaps };
}

/** Reads a text of any length and keeps its end. */
async function readText(
  transport: KubeTransport,
  path: string,
  charactersMax: number,
  signal: AbortSignal,
): Promise<string> {
  const request: TransportRequest = { method: "GET", path, lane: "api", timeoutMs: CALL_TIMEOUT_MS };
  const { status, body } = await transport.stream(request, signal);
  let text = "";
  for await (const chunk of body) {
    signal.throwIfAborted();
    text += chunk;
    if (text.length > 2 * charactersMax) text = text.slice(-charactersMax);
  }
  if (status !== 200) throw new Error(`GET ${path.split("?", 1)[0]}: ${status}: ${text.slice(0, 300)}`);
  return text.slice(-charactersMax);
}
