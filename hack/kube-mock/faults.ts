/** Which requests a fault is for; an absent field fits every request. */
export interface RequestMatch {
  method?: string;
  /** How the path begins, query not counted, e.g. `/api/v1/nodes`. */
  pathPrefix?: string;
  /** How the client's name (its User-Agent) begins. */
  client?: string;
  /** Only watches, or only what is no watch. */
  watch?: boolean;
}

/**
 * What happens to a request that a fault meets.
 *
 * status: that answer, and nothing is done. hang: no answer until the client gives up, and nothing is done.
 * drop: the connection breaks before anything is done. loseAnswer: the request takes effect, then the connection breaks.
 * delay: the request is held for so long, then goes its way.
 */
export type FaultAction =
  | { kind: "status"; status: number; retryAfterSeconds?: number }
  | { kind: "hang" }
  | { kind: "drop" }
  | { kind: "loseAnswer" }
  | { kind: "delay"; delayMs: number };

export interface Fault {
  match: RequestMatch;
  /** How many matching requests it meets before it is spent. */
  times: number;
  action: FaultAction;
}

/** Things that go wrong on command. */
export interface Faults {
  /** Adds a fault behind those that are there; the first one that fits a request is the one that meets it. */
  inject(fault: Fault): void;
  /** Holds events of matching watches, those under way included, back for `lagMs`; 0 ends it. The newest call counts. */
  lagWatches(match: RequestMatch, lagMs: number): void;
  /** Breaks matching watches off. @returns how many. */
  cutWatches(match: RequestMatch): number;
  /** Takes all faults and lags back. */
  clear(): void;
}
