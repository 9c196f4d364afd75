import type { Clock } from "../../../runtime/clock.ts";
import type { ClusterAccess, Credentials } from "./cluster-access.ts";

/**
 * The age at which credentials are loaded again, which reads a few small files. A pod's token lives for at least 10
 * minutes and is replaced at 80 % of that time, so any value well below 2 minutes is short enough.
 */
const AGE_MAX_MS = 30_000;

/**
 * The shortest time between two replacements of refused credentials, so that a server that refuses everything does not
 * cause a run of the plugin for each call.
 */
const REPLACE_INTERVAL_MIN_MS = 5_000;

/**
 * The credentials of one cluster, shared by all calls. They are loaded again when they are old or refused, and never
 * twice at the same time.
 */
export class CredentialCache {
  readonly #cluster: ClusterAccess;
  readonly #clock: Clock;
  #held: { credentials: Credentials; loadedMs: number } | undefined;
  #loading: Promise<Credentials> | undefined;
  #replacedMs = Number.NEGATIVE_INFINITY;

  constructor(cluster: ClusterAccess, clock: Clock) {
    this.#cluster = cluster;
    this.#clock = clock;
  }

  /** @throws KubeError Unauthorized if the source provides no credentials. */
  async current(): Promise<Credentials> {
    const held = this.#held;
    if (held === undefined) return await this.#load(false);
    if (this.#clock.monotonicMs() - held.loadedMs < AGE_MAX_MS) return held.credentials;
    try {
      return await this.#load(false);
    } catch {
      // A file may be in the middle of a replacement, or a plugin may have no network. The old credentials may still be
      // valid.
      return held.credentials;
    }
  }

  /** Credentials that differ from those that the server refused; undefined if there are none now. */
  async replacementFor(refused: Credentials): Promise<Credentials | undefined> {
    let candidate = (await this.#loading) ?? this.#held?.credentials ?? refused;
    if (isSame(candidate, refused)) {
      const nowMs = this.#clock.monotonicMs();
      if (nowMs - this.#replacedMs < REPLACE_INTERVAL_MIN_MS) return undefined;
      this.#replacedMs = nowMs;
      candidate = await this.#load(true);
    }
    return isSame(candidate, refused) ? undefined : candidate;
  }

  #load(discardCached: boolean): Promise<Credentials> {
    this.#loading ??= this.#cluster
      .loadCredentials({ discardCached })
      .then((credentials) => {
        this.#held = { credentials, loadedMs: this.#clock.monotonicMs() };
        return credentials;
      })
      .finally(() => {
        this.#loading = undefined;
      });
    return this.#loading;
  }
}

function isSame(a: Credentials, b: Credentials): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}
