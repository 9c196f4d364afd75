import type { Clock } from "../runtime/clock.ts";
import { parseTimeMs } from "../runtime/time.ts";
import { isKubeError } from "./errors.ts";
import type { KubeTransport, TransportRequest } from "./transport.ts";

/** What the answers of an API server say of itself. */
export interface Contact {
  /** Monotonic time since which it has answered without an outage that this process noticed; Infinity before its first answer. */
  sinceMs: number;
  /** What its own clock reads now, at least; undefined if its answers have no date. */
  serverTimeMs: number | undefined;
  /** Monotonic time since which that clock has not been seen to jump: how old a stamp of before is, nobody can tell. */
  clockSteadySinceMs: number;
}

/** Contact is lost where calls fail and none is answered for longer than this: one that fails among others is no outage. */
const OUTAGE_MIN_MS = 5_000;
/** A clock that is so far from where it should be has been set; what is nearer may be an answer that was long on its way. */
const CLOCK_JUMP_MIN_MS = 5_000;
/** What a load balancer or a server that is going down answers in place of the API server. */
const NOT_SERVED: ReadonlySet<number> = new Set([502, 503, 504]);
/** What a server answers that cannot read its etcd, or is overloaded: watches get no news meanwhile. */
const NOT_READ: ReadonlySet<number> = new Set([429, 500]);

/** The same transport; it also takes note of when its server answers, and of that server's clock. */
export function followContact(
  transport: KubeTransport,
  clock: Clock,
): { transport: KubeTransport; contact: () => Contact } {
  let sinceMs = Infinity;
  let answeredMs = -Infinity;
  let hasFailed = true;
  let date: { serverMs: number; atMs: number } | undefined;
  let clockSteadySinceMs = -Infinity;
  const serverTimeAt = (atMs: number): number | undefined => date && date.serverMs + atMs - date.atMs;
  const onAnswer = (header: string | undefined): void => {
    const atMs = clock.monotonicMs();
    if (hasFailed && atMs - answeredMs > OUTAGE_MIN_MS) sinceMs = atMs;
    hasFailed = false;
    answeredMs = atMs;
    const serverMs = parseTimeMs(header);
    // Whole seconds, rounded down, and set before the answer was on its way: its clock reads at least that.
    if (serverMs === undefined) return;
    if (Math.abs(serverMs - (serverTimeAt(atMs) ?? serverMs)) > CLOCK_JUMP_MIN_MS) clockSteadySinceMs = atMs;
    date = { serverMs, atMs };
  };
  const follow = async <T extends { status: number; headers: Readonly<Record<string, string>> }>(
    { method }: Pick<TransportRequest, "method">,
    call: Promise<T>,
  ): Promise<T> => {
    try {
      const answer = await call;
      const isUnread = NOT_READ.has(answer.status);
      // A write may be failed by a webhook, which says nothing of etcd: it is neither contact nor an outage.
      if (NOT_SERVED.has(answer.status) || (isUnread && method === "GET")) hasFailed = true;
      else if (!isUnread) onAnswer(answer.headers["date"]);
      return answer;
    } catch (error) {
      if (isKubeError(error, "Network", "Timeout")) hasFailed = true;
      throw error;
    }
  };
  return {
    contact: () => ({ sinceMs, serverTimeMs: serverTimeAt(clock.monotonicMs()), clockSteadySinceMs }),
    transport: {
      send: (request, signal) => follow(request, transport.send(request, signal)),
      stream: (request, signal) => follow(request, transport.stream(request, signal)),
      close: () => transport.close(),
    },
  };
}
