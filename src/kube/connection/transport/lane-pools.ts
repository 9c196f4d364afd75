import { constants } from "node:crypto";
import { createSecureContext } from "node:tls";
import { buildConnector, Pool } from "undici";
import { CLIENT_CIPHERS } from "../../../runtime/ciphers.ts";
import { countReading } from "./count-reading.ts";
import { lookupNonLocal } from "./local-addresses.ts";
import type { Lane } from "../../transport.ts";
import type { TlsMaterial } from "../credentials/cluster-access.ts";
import type { WorkAllowance } from "../../answers/read-budget.ts";
import { KubeError } from "../../errors.ts";

/**
 * The largest number of connections of each lane. `api` and `bulk` bound how many calls run at the same time. Each
 * watch occupies a connection for as long as it runs. The lease has a second one in case the first is broken.
 */
export const CONNECTIONS_MAX: Readonly<Record<Lane, number>> = {
  api: 16,
  bulk: 16,
  watch: 128,
  lease: 2,
  review: 2,
  page: 2,
};

/**
 * The same for an untrusted API server. Each connection takes 130 KiB and may receive an answer of 4 MiB, and there may
 * be a hundred such servers. The connections of `bulk` are open only while hosts of the cluster are released.
 */
export const UNTRUSTED_CONNECTIONS_MAX: typeof CONNECTIONS_MAX = { ...CONNECTIONS_MAX, api: 4, bulk: 4 };

const CONNECT_TIMEOUT_MS = 5_000;
/**
 * Shorter than the time after which kube-apiserver and common load balancers close an idle connection (60 s and more).
 */
const IDLE_CONNECTION_MS = 30_000;
/**
 * The kernel probes a silent peer after this time, then every second, ten times. A server that vanished is noticed
 * within 20 s.
 */
const TCP_KEEP_ALIVE_MS = 10_000;

export interface LanePoolsOptions {
  /** Whether connections to loopback and link-local addresses are allowed. */
  allowLocal: boolean;
  /** Is charged for everything that is read; no bound by default. */
  work?: WorkAllowance;
}

/** The connections with one set of certificates, by lane. */
export class LanePools {
  readonly #origin: string;
  readonly #tls: TlsMaterial;
  readonly #options: LanePoolsOptions;
  readonly #pools = new Map<Lane, Pool>();
  #connect: buildConnector.connector | undefined;

  constructor(origin: string, tls: TlsMaterial, options: LanePoolsOptions) {
    this.#origin = origin;
    this.#tls = tls;
    this.#options = options;
  }

  serves(tls: TlsMaterial): boolean {
    const mine = this.#tls;
    return (
      mine.ca === tls.ca &&
      mine.cert === tls.cert &&
      mine.key === tls.key &&
      mine.serverName === tls.serverName &&
      mine.insecureSkipVerify === tls.insecureSkipVerify
    );
  }

  pool(lane: Lane): Pool {
    let pool = this.#pools.get(lane);
    if (pool === undefined) {
      pool = this.#open(lane);
      this.#pools.set(lane, pool);
    }
    return pool;
  }

  /** Accepts no new calls. Resolves when the calls in progress have ended. */
  async drain(): Promise<void> {
    await Promise.all([...this.#pools.values()].map((pool) => pool.close()));
  }

  async destroy(): Promise<void> {
    await Promise.all([...this.#pools.values()].map((pool) => pool.destroy(closedError())));
  }

  #open(lane: Lane): Pool {
    const { work } = this.#options;
    const connect = (this.#connect ??= this.#connector());
    return new Pool(this.#origin, {
      connections: (work === undefined ? CONNECTIONS_MAX : UNTRUSTED_CONNECTIONS_MAX)[lane],
      pipelining: 1,
      // A stalled HTTP/2 connection would stall all of its calls. With HTTP/1.1 each call has its own connection.
      allowH2: false,
      // The callers set deadlines on the injected clock, and the reflector notices a silent watch.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: IDLE_CONNECTION_MS,
      keepAliveMaxTimeout: IDLE_CONNECTION_MS,
      connect: work === undefined ? connect : countReading(connect, `answers of ${this.#origin}`, work),
    });
  }

  /** Connections of all lanes share the TLS context, which takes 22 to 34 KiB. */
  #connector(): buildConnector.connector {
    const { ca, cert, key, serverName, insecureSkipVerify } = this.#tls;
    return buildConnector({
      timeout: CONNECT_TIMEOUT_MS,
      allowH2: false,
      keepAlive: true,
      keepAliveInitialDelay: TCP_KEEP_ALIVE_MS,
      rejectUnauthorized: !insecureSkipVerify,
      ...(this.#origin.startsWith("https:") && {
        secureContext: createSecureContext({
          ciphers: CLIENT_CIPHERS,
          // With TLS 1.2, a server could request any number of handshakes on one connection.
          secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
          ...(ca !== undefined && { ca }),
          ...(cert !== undefined && { cert }),
          ...(key !== undefined && { key }),
        }),
      }),
      ...(!this.#options.allowLocal && { lookup: lookupNonLocal }),
      ...(serverName !== undefined && { servername: serverName }),
    });
  }
}

/** The error of calls after the transport was closed. */
export function closedError(): KubeError {
  return new KubeError("Aborted", "the connection to the API server was closed");
}
