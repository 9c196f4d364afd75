import type { Clock } from "../../../runtime/clock.ts";
import type { ClusterAccess, Credentials } from "./cluster-access.ts";

/**
 * How old credentials may get before files are looked at again. A pod's token is replaced at 80 % of its life, of at
 * least ten minutes, so any value well below two minutes does; every load reads a few small files.
 */
const AGE_MAX_MS = 30_000;

/**
 * Refused credentials are replaced at most this often, so that a server that refuses all does not run a plugin each
 * time.
 */
const REPLACE_INTERVAL_MIN_MS = 5_000;

/** Credentials of one cluster, shared by all calls: read again when old or refused, never twice at once. */
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

  /** @throws KubeError Unauthorized if the source provides none. */
  async current(): Promise<Credentials> {
    const held = this.#held;
    if (held === undefined) return await this.#load(false);
    if (this.#clock.monotonicMs() - held.loadedMs < AGE_MAX_MS) return held.credentials;
    try {
      return await this.#load(false);
    } catch {
      // A file that is just being replaced, or a plugin without network: the server is the judge of what we have.
      return held.credentials;
    }
  }

  /** Other credentials than those that the server refused; undefined if there are none at present. */
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
