import type { Clock } from "../../runtime/clock.ts";
import { parseTimeMs } from "../../runtime/time.ts";
import type { ClusterContact } from "../contact.ts";
import { isKubeError } from "../errors.ts";
import type { KubeTransport, TransportRequest } from "../transport.ts";

/**
 * Contact is lost when calls fail and none is answered for longer than this: one failed call among others is not an
 * outage.
 */
const OUTAGE_MIN_MS = 5_000;
/**
 * A clock that is so far from where it should be has been set; what is nearer may be an answer that was long on its
 * way.
 */
const CLOCK_JUMP_MIN_MS = 5_000;
/** What a load balancer or a server that is going down answers in place of the API server. */
const NOT_SERVED: ReadonlySet<number> = new Set([502, 503, 504]);
/** What a server answers that cannot read its etcd, or is overloaded: watches receive no events until it recovers. */
const NOT_READ: ReadonlySet<number> = new Set([429, 500]);
/**
 * How the errors of etcd begin that the API server passes on with a 500 (etcd, api/v3rpc/rpctypes/error.go), for
 * instance "etcdserver: mvcc: database space exceeded": then no kubelet can renew its lease, although everything can
 * still be read.
 */
const ETCD_ERROR = "etcdserver: ";
/** A call that takes longer shows an API server that is overloaded, unless it lists. */
const SLOW_MS = 1_000;
/**
 * How long, once to twice, the clock of an API server that answered counts as one of the cluster's. A clock that was
 * corrected must not hold up for long what ends by it.
 */
const CLOCK_KEPT_MS = 25_000;
/**
 * The same for the spread of all clocks: watches are opened again within minutes, and then reach any of the API
 * servers.
 */
const SPREAD_KEPT_MS = 600_000;
/**
 * Clocks of API servers that differ by more are not in step. Dates have whole seconds, and an answer takes its time.
 */
const SPREAD_MAX_MS = 5_000;

/** The same transport; it also takes note of when its server answers, and of that server's clock. */
export function followContact(
  transport: KubeTransport,
  clock: Clock,
): { transport: KubeTransport; contact: () => ClusterContact } {
  let sinceMs = Infinity;
  let answeredMs = -Infinity;
  let hasFailed = true;
  let isRefused = false;
  let date: { serverMs: number; atMs: number } | undefined;
  let clockSteadySinceMs = -Infinity;
  let troubledAtMs = -Infinity;
  const offsets = new RecentSmallest(CLOCK_KEPT_MS);
  const behind = new RecentSmallest(SPREAD_KEPT_MS);
  const ahead = new RecentSmallest(SPREAD_KEPT_MS);
  const serverTimeAt = (atMs: number): number | undefined => date && date.serverMs + atMs - date.atMs;
  const onAnswer = (header: string | undefined): void => {
    const atMs = clock.monotonicMs();
    if (!isRefused && hasFailed && atMs - answeredMs > OUTAGE_MIN_MS) sinceMs = atMs;
    hasFailed = false;
    answeredMs = atMs;
    const serverMs = parseTimeMs(header);
    // Whole seconds, rounded down, and set before the answer was on its way: its clock reads at least that.
    if (serverMs === undefined) return;
    if (Math.abs(serverMs - (serverTimeAt(atMs) ?? serverMs)) > CLOCK_JUMP_MIN_MS) clockSteadySinceMs = atMs;
    date = { serverMs, atMs };
    const offsetMs = serverMs - atMs;
    offsets.note(offsetMs, atMs);
    behind.note(offsetMs, atMs);
    ahead.note(-offsetMs, atMs);
  };
  const follow = async <T extends { status: number; headers: Readonly<Record<string, string>>; body: unknown }>(
    { method, path }: Pick<TransportRequest, "method" | "path">,
    call: Promise<T>,
  ): Promise<T> => {
    const startedMs = clock.monotonicMs();
    try {
      const answer = await call;
      const endedMs = clock.monotonicMs();
      const isSlow = endedMs - startedMs > SLOW_MS && !path.includes("?");
      if (isSlow || answer.status === 429 || answer.status >= 500) troubledAtMs = endedMs;
      const isUnread = NOT_READ.has(answer.status);
      // A write may be failed by a webhook, which says nothing of etcd: it is neither contact nor an outage.
      if (isRefusedByEtcd(method, path, answer)) {
        isRefused = true;
        sinceMs = Infinity;
      } else if (isRefused && answer.status === 200 && showsRenewals(method, path)) {
        isRefused = false;
        sinceMs = clock.monotonicMs();
      }
      if (NOT_SERVED.has(answer.status) || (isUnread && method === "GET")) hasFailed = true;
      else if (!isUnread) onAnswer(answer.headers["date"]);
      return answer;
    } catch (error) {
      if (isKubeError(error, "Network", "Timeout")) {
        hasFailed = true;
        troubledAtMs = clock.monotonicMs();
      }
      throw error;
    }
  };
  return {
    contact: () => {
      const atMs = clock.monotonicMs();
      const earliestServerTimeMs = offsets.smallestMs(atMs);
      const [least, most] = [behind.smallestMs(atMs) ?? 0, -(ahead.smallestMs(atMs) ?? 0)];
      return {
        sinceMs,
        serverTimeMs: serverTimeAt(atMs),
        earliestServerTimeMs: earliestServerTimeMs === undefined ? undefined : earliestServerTimeMs + atMs,
        latestServerTimeMs: date === undefined ? undefined : most + atMs,
        clockSteadySinceMs,
        troubledAtMs,
        areClocksApart: most - least > SPREAD_MAX_MS,
      };
    },
    transport: {
      send: (request, signal) => follow(request, transport.send(request, signal)),
      stream: (request, signal) => follow(request, transport.stream(request, signal)),
      close: () => transport.close(),
    },
  };
}

/**
 * Whether etcd has refused a write of a kind that kubelets renew or that is kept with those. Some kinds have an etcd of
 * their own (`--etcd-servers-overrides` of the API server, mostly for Events): one that is full says nothing of the
 * others.
 */
function isRefusedByEtcd(
  method: TransportRequest["method"],
  path: string,
  { status, body }: { status: number; body: unknown },
): boolean {
  return status === 500 && showsRenewals(method, path) && typeof body === "string" && body.includes(ETCD_ERROR);
}

/** Whether a call writes a Lease or a Node to etcd. Reviews of access and dry runs are answered without that. */
function showsRenewals(method: TransportRequest["method"], path: string): boolean {
  return method === "PATCH" && /\/(?:leases|nodes)\/[^/?]+$/u.test(path);
}

/** The smallest of the values of a time that has passed once to twice, in constant memory. */
class RecentSmallest {
  readonly #keptMs: number;
  #present = { smallest: Infinity, sinceMs: -Infinity };
  #previous = Infinity;

  constructor(keptMs: number) {
    this.#keptMs = keptMs;
  }

  note(value: number, atMs: number): void {
    this.#expire(atMs);
    this.#present.smallest = Math.min(this.#present.smallest, value);
  }

  smallestMs(atMs: number): number | undefined {
    this.#expire(atMs);
    const smallest = Math.min(this.#present.smallest, this.#previous);
    return smallest === Infinity ? undefined : smallest;
  }

  #expire(atMs: number): void {
    const ageMs = atMs - this.#present.sinceMs;
    if (ageMs < this.#keptMs) return;
    // A value lasts until another one follows: no later value of that clock has been received.
    if (this.#present.smallest === Infinity) return;
    this.#previous = this.#present.smallest;
    this.#present = { smallest: Infinity, sinceMs: atMs };
  }
}
