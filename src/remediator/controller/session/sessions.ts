import type { BareMetalRemediation } from "../../../api/ironfence/bare-metal-remediation.ts";
import type { NodeId } from "../../../nodes/subject.ts";
import { clusterKey } from "../../../nodes/subject.ts";
import type { FenceTracer } from "../../telemetry/fence-tracer.ts";
import type { RemediatorMetrics } from "../../telemetry/metrics.ts";
import type { SessionDeps } from "./session.ts";
import { RemediationSession } from "./session.ts";

export interface SessionsDeps extends SessionDeps {
  metrics: Pick<RemediatorMetrics, "inFlight" | "waitingForInput" | "overdue">;
  tracer: FenceTracer | undefined;
  /** Requests another reconcile of a remediation, by its key. */
  wake: (key: string) => void;
  /** Called when this process no longer works on a remediation; `uid` is undefined if it had no session. */
  onEnd: (uid: string | undefined) => void;
}

/** The sessions of this process: one for each remediation that is worked on, by the key of the remediation. */
export class Sessions {
  readonly #deps: SessionsDeps;
  readonly #sessions = new Map<string, RemediationSession>();
  /** Keys of remediations that wait for a collection to be read. */
  readonly #waitingForInput = new Set<string>();
  /** Keys of remediations that are past the deadline of their state. */
  readonly #overdue = new Set<string>();
  readonly #nodeListeners = new Set<(node: NodeId) => void>();

  constructor(deps: SessionsDeps) {
    this.#deps = deps;
  }

  get(key: string): RemediationSession | undefined {
    return this.#sessions.get(key);
  }

  entries(): IterableIterator<[string, RemediationSession]> {
    return this.#sessions.entries();
  }

  /** The sessions of a node's remediations. */
  ofNode({ cluster, name }: NodeId): RemediationSession[] {
    return [...this.#sessions.values()].filter(
      ({ subject }) => subject.nodeName === name && clusterKey(subject.cluster) === clusterKey(cluster),
    );
  }

  /** @param rewinds of the view that has shown `watched` (`Watched.rewinds`). */
  begin(key: string, watched: BareMetalRemediation, rewinds: number | undefined): RemediationSession {
    const session = new RemediationSession(this.#deps, watched, () => this.#deps.wake(key), rewinds);
    this.#sessions.set(key, session);
    this.#deps.metrics.inFlight(this.#sessions.size);
    return session;
  }

  /** Updates the metrics after a reconcile: whether the remediation waits for a collection or is overdue. */
  count(key: string, { waitsForInput, isOverdue }: Pick<RemediationSession, "waitsForInput" | "isOverdue">): void {
    const { metrics } = this.#deps;
    keepIn(this.#waitingForInput, key, waitsForInput);
    metrics.waitingForInput(this.#waitingForInput.size);
    keepIn(this.#overdue, key, isOverdue);
    metrics.overdue(this.#overdue.size);
  }

  /** Ends the session of a remediation, if it has one. */
  async end(key: string): Promise<void> {
    const session = this.#sessions.get(key);
    this.#sessions.delete(key);
    this.#deps.metrics.inFlight(this.#sessions.size);
    this.count(key, { waitsForInput: false, isOverdue: false });
    this.#deps.onEnd(session?.uid);
    if (session === undefined) return;
    const { cluster, nodeName: name } = session.subject;
    if (name !== undefined) for (const notify of this.#nodeListeners) notify({ cluster, name });
    this.#deps.tracer?.ended(session.uid);
    await session.close();
  }

  /** Calls `listener` with the node of each session that ends. @returns a function that stops that. */
  onNodeLetGo(listener: (node: NodeId) => void): () => void {
    this.#nodeListeners.add(listener);
    return () => this.#nodeListeners.delete(listener);
  }

  /** Closes all sessions when the remediator ends. Never throws. */
  async close(): Promise<void> {
    await Promise.all([...this.#sessions.values()].map((session) => session.close()));
  }
}

function keepIn(keys: Set<string>, key: string, isIn: boolean): void {
  if (isIn) keys.add(key);
  else keys.delete(key);
}
