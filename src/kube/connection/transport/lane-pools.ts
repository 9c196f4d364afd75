import { constants } from "node:crypto";
import { buildConnector, Pool } from "undici";
import { CLIENT_CIPHERS } from "../../../runtime/ciphers.ts";
import { countReading } from "./count-reading.ts";
import { lookupNonLocal } from "./local-addresses.ts";
import type { Lane } from "../../transport.ts";
import type { TlsMaterial } from "../credentials/cluster-access.ts";
import type { WorkAllowance } from "../../answers/read-budget.ts";
import { KubeError } from "../../errors.ts";

/**
 * Connections of each lane. `api` is what bounds how many calls run at once. A watch occupies its connection for as
 * long as it lives; there is one a watched kind. The lease has a second one for the case that the first is found
 * broken.
 */
const CONNECTIONS_MAX: Readonly<Record<Lane, number>> = { api: 16, watch: 128, lease: 2, review: 2, page: 2 };

const CONNECT_TIMEOUT_MS = 5_000;
/** Below the time after which kube-apiserver and usual load balancers close an idle connection (60 s and more). */
const IDLE_CONNECTION_MS = 30_000;
/**
 * The kernel asks a silent peer after this long, then every second, ten times: a server that vanished is noticed in 20
 * s.
 */
const TCP_KEEP_ALIVE_MS = 10_000;

export interface LanePoolsOptions {
  /** Whether loopback and link-local addresses are connected to. */
  allowLocal: boolean;
  /** Is charged for all that is read; not bounded by default. */
  work?: WorkAllowance;
}

/** The connections that share one set of certificates, by lane. */
export class LanePools {
  readonly #origin: string;
  readonly #tls: TlsMaterial;
  readonly #options: LanePoolsOptions;
  readonly #pools = new Map<Lane, Pool>();

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

  /** Takes no new calls; resolves when those under way have ended. */
  async drain(): Promise<void> {
    await Promise.all([...this.#pools.values()].map((pool) => pool.close()));
  }

  async destroy(): Promise<void> {
    await Promise.all([...this.#pools.values()].map((pool) => pool.destroy(closedError())));
  }

  #open(lane: Lane): Pool {
    const { work } = this.#options;
    const connect = this.#connector();
    return new Pool(this.#origin, {
      connections: CONNECTIONS_MAX[lane],
      pipelining: 1,
      // One stalled HTTP/2 connection would stall every call on it; lanes and HTTP/1.1 keep them apart.
      allowH2: false,
      // Deadlines are the callers', on the injected clock; a silent watch is the reflector's to notice.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: IDLE_CONNECTION_MS,
      keepAliveMaxTimeout: IDLE_CONNECTION_MS,
      connect: work === undefined ? connect : countReading(connect, `answers of ${this.#origin}`, work),
    });
  }

  #connector(): buildConnector.connector {
    const { ca, cert, key, serverName, insecureSkipVerify } = this.#tls;
    return buildConnector({
      timeout: CONNECT_TIMEOUT_MS,
      allowH2: false,
      keepAlive: true,
      keepAliveInitialDelay: TCP_KEEP_ALIVE_MS,
      rejectUnauthorized: !insecureSkipVerify,
      ciphers: CLIENT_CIPHERS,
      // With TLS 1.2 a server could ask for one handshake after the other on the same connection.
      secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
      ...(!this.#options.allowLocal && { lookup: lookupNonLocal }),
      ...(ca !== undefined && { ca }),
      ...(cert !== undefined && { cert }),
      ...(key !== undefined && { key }),
      ...(serverName !== undefined && { servername: serverName }),
    });
  }
}

/** What a call fails with once the transport is closed. */
export function closedError(): KubeError {
  return new KubeError("Aborted", "the connection to the API server was closed");
}
