import type { KubeClient } from "../../src/kube/client.ts";
import { sleep } from "../../src/runtime/clock.ts";
import type { Clock } from "../../src/runtime/clock.ts";
import type { Random } from "../../src/runtime/random.ts";
import type { Logger } from "../../src/telemetry/logger.ts";
import type { Host } from "./host.ts";
import { LeaseRenewer, postStatus, registerNode } from "./kubelet-node.ts";
import { syncPods } from "./kubelet-pods.ts";
import type { Rack } from "./rack.ts";

/** What a kubelet asks of the API. */
export type KubeletClient = Pick<KubeClient, "get" | "list" | "create" | "mergePatch" | "delete">;

export interface KubeletDeps {
  rack: Rack;
  client: KubeletClient;
  /** The way to the API of one host, where hosts have ways of their own. */
  clientOf?: (host: string) => KubeletClient;
  clock: Clock;
  logger: Logger;
}

/** Periods of the simulated kubelets; those of a real one by default. A demo scales them down. */
export interface KubeletOptions {
  /** Lease renewal: a quarter of the lease's duration. */
  leasePeriodMs?: number;
  /** What draws the jitter of that period, up to 4 %, as a real kubelet's. Without it there is none. */
  random?: Random;
  /**
   * Whether the volumes of these claims are attached to a host, for which a real kubelet waits. Without it they are.
   */
  areAttached?: (host: string, claims: readonly string[]) => boolean;
  /** How far the clocks of hosts are ahead, by host, in milliseconds. */
  aheadMs?: Readonly<Record<string, number>>;
  /** 40 */
  leaseDurationSeconds?: number;
  /** Look at the own Node, and a post of its status where that has changed or is 30 periods old: 10,000. */
  statusPeriodMs?: number;
  /** Look at the pods bound to the node: 1,000. */
  podPeriodMs?: number;
}

/** What a kubelet waits after a failed registration. */
const REGISTER_RETRY_MS = 500;
/** By how much a kubelet lengthens the period of its renewals at most, so that those of many nodes spread out. */
const LEASE_JITTER = 0.04;
/** A status that has not changed is posted again after this many looks: 5 minutes with a real one's period. */
const STATUS_REPORT_PERIODS = 30;

/**
 * Plays the kubelet of every host of the rack: it works while the host's OS runs, and falls silent when that hangs or
 * loses power. Errors of the API are logged, and the work goes on. Resolves when `signal` has aborted and every kubelet
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

/** One kubelet from the start (or the thawing) of its OS until `signal` aborts. Never rejects. */
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

  // A kubelet registers once in its life: a Node that is deleted under a running one stays away until the next boot.
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
