import { parseRoute } from "./routes.ts";

/** What a request does, in the words of RBAC rules. */
export type Verb = "get" | "list" | "watch" | "create" | "update" | "patch" | "delete";

/** Which requests a fault is for; an absent field fits every request. */
export interface RequestMatch {
  method?: string | undefined;
  verbs?: readonly Verb[] | undefined;
  /** As RBAC rules name it: `nodes`, or `nodes/status`. */
  resource?: string | undefined;
  /** How the path begins, query not counted, for example `/api/v1/nodes`. */
  pathPrefix?: string | undefined;
  /** The whole path, query not counted: that of a collection fits lists and watches of it, and no object in it. */
  path?: string | undefined;
  /** How the client's name (its User-Agent) begins. */
  client?: string | undefined;
  /** Only watches, or only other requests. */
  watch?: boolean | undefined;
}

/**
 * What happens to a request that a fault meets.
 *
 * status: that answer, and nothing is done. hang: no answer until the client gives up, and nothing is done.
 * drop: the connection breaks before anything is done. loseAnswer: the request takes effect, then the connection
 * breaks. delay: the request is held for so long, then goes its way. late: the connection breaks at once, and the
 * request takes effect anyway, so much later.
 */
export type FaultAction =
  | { kind: "status"; status: number; retryAfterSeconds?: number | undefined; message?: string }
  | { kind: "hang" }
  | { kind: "drop" }
  | { kind: "loseAnswer" }
  | { kind: "delay"; delayMs: number }
  | { kind: "late"; delayMs: number };

export interface Fault {
  match: RequestMatch;
  /** How many matching requests it meets before it is spent. */
  times: number;
  action: FaultAction;
}

/** Things that go wrong on command. */
export interface Faults {
  /**
   * Adds a fault behind those that are there; the first one that fits a request is the one that meets it.
   *
   * @returns takes it back: requests that it has met by then stay as they are.
   */
  inject(fault: Fault): () => void;
  /**
   * Holds events of matching watches, those under way included, back for `lagMs`; 0 ends it. With Infinity they are
   * open and silent, without bookmarks, as where a watch cache is stuck. The newest call counts.
   */
  lagWatches(match: RequestMatch, lagMs: number): void;
  /** Breaks matching watches off. @returns how many. */
  cutWatches(match: RequestMatch): number;
  /** Takes all faults and lags back. */
  clear(): void;
}

/** One request, as faults see it. */
export interface FaultSubject {
  method: string;
  path: string;
  client: string;
  watch: boolean;
}

interface LiveWatch {
  subject: FaultSubject;
  watch: { lag(lagMs: number): void; cut(): void };
}

/** Keeps the faults that were asked for, and the watches that they may meet. */
export class FaultPlan implements Faults {
  #faults: Fault[] = [];
  #lags: { match: RequestMatch; lagMs: number }[] = [];
  readonly #watches = new Set<LiveWatch>();

  inject(fault: Fault): () => void {
    const injected = { ...fault };
    this.#faults.push(injected);
    return () => this.#remove(injected);
  }

  lagWatches(match: RequestMatch, lagMs: number): void {
    this.#lags.push({ match, lagMs });
    for (const { subject, watch } of this.#watches) {
      if (fits(match, subject)) watch.lag(lagMs);
    }
  }

  cutWatches(match: RequestMatch): number {
    const met = [...this.#watches].filter(({ subject }) => fits(match, subject));
    for (const { watch } of met) watch.cut();
    return met.length;
  }

  clear(): void {
    this.#faults = [];
    this.#lags = [];
    for (const { watch } of this.#watches) watch.lag(0);
  }

  /** Uses up one time of the first fault that fits. */
  take(subject: FaultSubject): FaultAction | undefined {
    const fault = this.#faults.find(({ match }) => fits(match, subject));
    if (fault === undefined) return undefined;
    fault.times -= 1;
    if (fault.times <= 0) this.#remove(fault);
    return fault.action;
  }

  #remove(fault: Fault): void {
    this.#faults = this.#faults.filter((other) => other !== fault);
  }

  /** Lets faults meet an open watch until the function it returns is called. */
  track(subject: FaultSubject, watch: LiveWatch["watch"]): () => void {
    const live = { subject, watch };
    this.#watches.add(live);
    const lag = this.#lags.findLast(({ match }) => fits(match, subject));
    if (lag !== undefined) watch.lag(lag.lagMs);
    return () => this.#watches.delete(live);
  }
}

function fits(match: RequestMatch, subject: FaultSubject): boolean {
  return (
    (match.path === undefined || subject.path === match.path) &&
    (match.method === undefined || match.method === subject.method) &&
    (match.pathPrefix === undefined || subject.path.startsWith(match.pathPrefix)) &&
    (match.client === undefined || subject.client.startsWith(match.client)) &&
    (match.watch === undefined || match.watch === subject.watch) &&
    (match.resource === undefined || match.resource === resourceOf(subject)) &&
    (match.verbs === undefined || match.verbs.includes(verbOf(subject)))
  );
}

function resourceOf({ path }: FaultSubject): string | undefined {
  const route = parseRoute(path);
  if (route.kind !== "resource") return undefined;
  return route.subresource === "" ? route.plural : `${route.plural}/${route.subresource}`;
}

const VERBS: Readonly<Record<string, Verb>> = { POST: "create", PUT: "update", PATCH: "patch", DELETE: "delete" };

function verbOf({ method, path, watch }: FaultSubject): Verb {
  const verb = VERBS[method];
  if (verb !== undefined) return verb;
  const route = parseRoute(path);
  if (watch) return "watch";
  return route.kind === "resource" && route.name === "" ? "list" : "get";
}
