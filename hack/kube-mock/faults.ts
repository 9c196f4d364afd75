import { parseRoute } from "./routes.ts";

/** The verb of a request, as in RBAC rules. */
export type Verb = "get" | "list" | "watch" | "create" | "update" | "patch" | "delete";

/** Selects the requests that a fault affects. An absent field matches every request. */
export interface RequestMatch {
  method?: string | undefined;
  verbs?: readonly Verb[] | undefined;
  /** The resource as in RBAC rules: `nodes` or `nodes/status`. */
  resource?: string | undefined;
  /** The beginning of the path without its query, for example `/api/v1/nodes`. */
  pathPrefix?: string | undefined;
  /** The whole path without its query. The path of a collection matches its lists and watches, but not its objects. */
  path?: string | undefined;
  /** The beginning of the client's name (its User-Agent). */
  client?: string | undefined;
  /** Only watches, or only other requests. */
  watch?: boolean | undefined;
}

/**
 * What happens to a request that a fault affects.
 *
 * status: the server answers with this status, without any effect. hang: no answer until the client gives up, without
 * any effect. drop: the connection breaks before any effect. loseAnswer: the request takes effect, then the connection
 * breaks. delay: the request is delayed and then handled normally. late: the connection breaks at once, and the request
 * still takes effect after a delay.
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
  /** How many matching requests it affects before it ends. */
  times: number;
  action: FaultAction;
}

/** Injects faults into the API server. */
export interface Faults {
  /**
   * Adds a fault after the existing ones. The first fault that matches a request affects it.
   *
   * @returns a function that removes the fault. Requests that it has already affected do not change.
   */
  inject(fault: Fault): () => void;
  /**
   * Delays events of matching watches, including open ones, by `lagMs`; 0 ends the delay. With Infinity the watches
   * stay open and send nothing, not even bookmarks, as if the watch cache hangs. The newest call counts.
   */
  lagWatches(match: RequestMatch, lagMs: number): void;
  /** Breaks matching watches. @returns how many. */
  cutWatches(match: RequestMatch): number;
  /** Removes all faults and delays. */
  clear(): void;
}

/** The properties of a request by which faults are matched. */
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

/** Holds the active faults, and the open watches that they may affect. */
export class ActiveFaults implements Faults {
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

  /** The action of the first matching fault. Counts one use of the fault. */
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

  /** Lets faults affect an open watch. @returns a function that ends this. */
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
