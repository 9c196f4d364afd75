import type { KubeClient } from "../../src/kube/client.ts";
import { sleep } from "../../src/runtime/clock.ts";
import type { Clock } from "../../src/runtime/clock.ts";
import type { Random } from "../../src/runtime/random.ts";
import type { Logger } from "../../src/telemetry/logger.ts";
import type { Host } from "./host.ts";
import { LeaseRenewer, postStatus, registerNode } from "./kubelet-node.ts";
import { syncPods } from "./kubelet-pods.ts";
import type { Rack } from "./rack.ts";

/** The API calls of a kubelet. */
export type KubeletClient = Pick<KubeClient, "get" | "list" | "create" | "mergePatch" | "delete">;

export interface KubeletDeps {
  rack: Rack;
  client: KubeletClient;
  /** Returns the client of one host, if hosts have separate clients. */
  clientOf?: (host: string) => KubeletClient;
  clock: Clock;
  logger: Logger;
}

/** Periods of the simulated kubelets. The defaults are those of a real kubelet; the demo uses shorter ones. */
export interface KubeletOptions {
  /** Period of lease renewals; a quarter of the duration of the lease by default. */
  leasePeriodMs?: number;
  /** Adds up to 4 % jitter to that period, as in a real kubelet. Without it there is no jitter. */
  random?: Random;
  /**
   * Whether the volumes of these claims are attached to a host. A real kubelet waits for that. By default they always
   * are.
   */
  areAttached?: (host: string, claims: readonly string[]) => boolean;
  /** By how many milliseconds the clock of each host is ahead. */
  aheadMs?: Readonly<Record<string, number>>;
  /** 40 by default. */
  leaseDurationSeconds?: number;
  /**
   * Period in which the kubelet reads its Node, 10,000 by default. It posts the status if that has changed or is 30
   * periods old.
   */
  statusPeriodMs?: number;
  /** Period in which it reads the pods bound to the node: 1,000 by default. */
  podPeriodMs?: number;
}

/** Pause of a kubelet after a failed registration. */
const REGISTER_RETRY_MS = 500;
/** The most by which a kubelet extends the period of its renewals, so that renewals of many nodes are spread out. */
const LEASE_JITTER = 0.04;
/** An unchanged status is posted again after this many periods, which are 5 minutes for a real kubelet. */
const STATUS_REPORT_PERIODS = 30;

/**
 * Simulates the kubelet of every host in the rack. A kubelet works while the OS of its host runs, and stops when the OS
 * hangs or loses power. It logs errors of the API and continues. Resolves when `signal` has aborted and every kubelet
 * has stopped.
 */
export function startKubelets(deps: KubeletDeps, options: KubeletOptions, signal: AbortSignal): Promise<void> {
  const runs = new Map<string, { bootID: string; stop: AbortController }>();
  const registeredBoots = new Set<string>();
  const settled = new Set<Promise<void>>();

  const follow = (host: Host): void => {
    const run = runs.get(host.name);
    const alive = host.os === "running" && !signal.aborted;
    if (run !== undefined && (!alive || run.bootID !== host.bootID)) {
      run.stop.abort();
      runs.delete(host.name);
    }
    if (!alive || runs.has(host.name)) return;
    const stop = new AbortController();
    runs.set(host.name, { bootID: host.bootID, stop });
    const kubelet = runKubelet(deps, options, host, registeredBoots, stop.signal).finally(() =>
      settled.delete(kubelet),
    );
    settled.add(kubelet);
  };

  const unsubscribe = deps.rack.subscribe((event) => follow(deps.rack.host(event.host)));
  for (const host of deps.rack.hosts) follow(host);

  return new Promise((resolve) => {
    const onAbort = (): void => {
      unsubscribe();
      for (const host of deps.rack.hosts) follow(host);
      void Promise.all(settled).then(() => resolve());
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
  });
}

/** Runs one kubelet from the start or resume of its OS until `signal` aborts. Never rejects. */
async function runKubelet(
  deps: KubeletDeps,
  options: KubeletOptions,
  host: Host,
  registeredBoots: Set<string>,
  signal: AbortSignal,
): Promise<void> {
  const { clock } = deps;
  const client = deps.clientOf?.(host.name) ?? deps.client;
  const logger = deps.logger.child({ node: host.name });
  const { leaseDurationSeconds = 40, statusPeriodMs = 10_000, podPeriodMs = 1_000, random } = options;
  const { leasePeriodMs = leaseDurationSeconds * 250 } = options;
  const leasePauseMs = (): number => leasePeriodMs * (1 + (random === undefined ? 0 : LEASE_JITTER * random.next()));

  // A kubelet registers its Node once. If the Node is deleted while the kubelet runs, it is not created again before
  // the next boot.
  while (!signal.aborted && !registeredBoots.has(host.bootID)) {
    try {
      await registerNode(client, host, signal);
      registeredBoots.add(host.bootID);
    } catch (error) {
      if (!signal.aborted) logger.debug({ err: error }, "the kubelet could not register its node");
      await sleep(clock, REGISTER_RETRY_MS, signal).catch(() => undefined);
    }
  }

  const every = async (pauseMs: () => number, what: string, step: () => Promise<void>): Promise<void> => {
    while (!signal.aborted) {
      try {
        await step();
      } catch (error) {
        if (!signal.aborted) logger.debug({ err: error, what }, "a step of the kubelet failed");
      }
      await sleep(clock, pauseMs(), signal).catch(() => undefined);
    }
  };
  const aheadMs = options.aheadMs?.[host.name] ?? 0;
  const lease = new LeaseRenewer(client, clock, host, { durationSeconds: leaseDurationSeconds, aheadMs });
  await Promise.all([
    every(
      () => statusPeriodMs,
      "status",
      () => postStatus(client, clock, host, statusPeriodMs * STATUS_REPORT_PERIODS, signal),
    ),
    every(leasePauseMs, "lease", () => lease.renew(signal)),
    every(
      () => podPeriodMs,
      "pods",
      () => syncPods({ client, clock, areAttached: options.areAttached ?? (() => true) }, host, signal),
    ),
  ]);
}
