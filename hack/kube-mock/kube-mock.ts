import type { Clock } from "../../src/runtime/clock.ts";
import type { Random } from "../../src/runtime/random.ts";
import type { ApiServer } from "./api-server.ts";

export interface KubeMockOptions {
  clock: Clock;
  random: Random;
  /** Port on 127.0.0.1; a free one where absent. */
  port?: number;
  /** Speaks HTTPS with a certificate of a throw-away CA. */
  tls?: boolean;
  /** The one bearer token that is let in; absent: everybody is. */
  token?: string;
  /** The server to put behind the front; a new one where absent. */
  server?: ApiServer;
}

/** An API server that listens. */
export interface KubeMock {
  /** E.g. `http://127.0.0.1:40123`. */
  url: string;
  /** Text of a kubeconfig that leads here. */
  kubeconfig: string;
  server: ApiServer;
  /** Ends watches and connections, and stops listening. */
  close(): Promise<void>;
}

/** Starts an in-memory API server on 127.0.0.1. */
export function startKubeMock(_options: KubeMockOptions): Promise<KubeMock> {
  throw new Error("not there yet");
}
