import type { Clock } from "../../runtime/clock.ts";
import { parseTimeMs } from "../../runtime/time.ts";
import type { ClusterContact } from "../contact.ts";
import { isKubeError } from "../errors.ts";
import type { KubeTransport, TransportRequest } from "../transport.ts";

/**
 * Contact is lost if calls fail and no call is answered for longer than this. One failed call among others is not an
 * outage.
 */
const OUTAGE_MIN_MS = 5_000;
/**
 * If the server's clock differs from its expected time by more than this, it was set. A smaller difference may come
 * from an answer that took long to arrive.
 */
const CLOCK_JUMP_MIN_MS = 5_000;
/** Answers of a load balancer, or of an API server that is shutting down. */
const NOT_SERVED: ReadonlySet<number> = new Set([502, 503, 504]);
/**
 * Answers of an API server that cannot read from etcd, or is overloaded. Its watches receive no events until it
 * recovers.
 */
const NOT_READ: ReadonlySet<number> = new Set([429, 500]);
/**
 * The prefix of etcd errors that the API server passes on with a 500 (etcd, api/v3rpc/rpctypes/error.go), for example
 * "etcdserver: mvcc: database space exceeded". No kubelet can renew its lease then, although everything can still be
 * read.
 */
const ETCD_ERROR = "etcdserver: ";
/** A call that takes longer shows that the API server is overloaded, unless the call is a list. */
const SLOW_MS = 1_000;
/**
 * How long an answer counts for the earliest time of all API servers: at least this long, and at most twice as long.
 * After a clock is corrected, its old time must not delay the end of a period for long.
 */
const CLOCK_KEPT_MS = 25_000;
/**
 * The same for the difference between the clocks. Watches are reopened within minutes, and may then reach any of the
 * API servers.
 */
const SPREAD_KEPT_MS = 600_000;
/**
 * Clocks of API servers that differ by more are not synchronized. Less may come from dates in whole seconds and from
 * slow answers.
 */
const SPREAD_MAX_MS = 5_000;

/** Wraps a transport, and records when its server answers and what the server's clock shows. */
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
  /** The calls without an answer, except lists, the oldest first. */
  const unanswered = new Set<{ sentMs: number }>();
  const isSlow = ({ sentMs }: { sentMs: number }): boolean => clock.monotonicMs() - sentMs > SLOW_MS;
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
    // The date is rounded down to whole seconds and was set before the answer was sent, so the server's clock shows at
    // least this time now.
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
    const sent = { sentMs: clock.monotonicMs() };
    const isList = method === "GET" && path.includes("?");
    if (!isList) unanswered.add(sent);
    try {
      const answer = await call;
      if (answer.status === 429 || answer.status >= 500) troubledAtMs = clock.monotonicMs();
      const isUnread = NOT_READ.has(answer.status);
      // A webhook may fail a write, and this shows nothing about etcd. Such an answer counts neither as contact nor as
      // an outage.
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
    } finally {
      // A call that was given up because it was slow counts too.
      if (unanswered.delete(sent) && isSlow(sent)) troubledAtMs = clock.monotonicMs();
    }
  };
  return {
    contact: () => {
      const atMs = clock.monotonicMs();
      const [oldest] = unanswered;
      const earliestServerTimeMs = offsets.smallestMs(atMs);
      const [least, most] = [behind.smallestMs(atMs) ?? 0, -(ahead.smallestMs(atMs) ?? 0)];
      return {
        sinceMs,
        serverTimeMs: serverTimeAt(atMs),
        earliestServerTimeMs: earliestServerTimeMs === undefined ? undefined : earliestServerTimeMs + atMs,
        latestServerTimeMs: date === undefined ? undefined : most + atMs,
        clockSteadySinceMs,
        troubledAtMs: oldest !== undefined && isSlow(oldest) ? atMs : troubledAtMs,
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
 * Whether etcd refused a write to a Lease or a Node. Other kinds may have a separate etcd (`--etcd-servers-overrides`
 * of the API server, mostly for Events), and if that one is full, kubelets can still renew their leases.
 */
function isRefusedByEtcd(
  method: TransportRequest["method"],
  path: string,
  { status, body }: { status: number; body: unknown },
): boolean {
  return status === 500 && showsRenewals(method, path) && typeof body === "string" && body.includes(ETCD_ERROR);
}

/** Whether a call writes a Lease or a Node to etcd. Access reviews and dry runs do not write to etcd. */
function showsRenewals(method: TransportRequest["method"], path: string): boolean {
  return method === "PATCH" && /\/(?:leases|nodes)\/[^/?]+$/u.test(path);
}

/**
 * The smallest of the recent values, in constant memory: each value counts for at least `keptMs` and at most twice
 * that.
 */
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
    // Keep the last value until another one arrives: nothing newer is known about that clock.
    if (this.#present.smallest === Infinity) return;
    this.#previous = this.#present.smallest;
    this.#present = { smallest: Infinity, sinceMs: atMs };
  }
}
