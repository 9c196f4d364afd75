import type { Clock } from "../../src/runtime/clock.ts";
import type { Random } from "../../src/runtime/random.ts";
import type { Secret } from "../../src/runtime/secret.ts";
import type { Rack } from "../rack/rack.ts";
import type { FaultRule } from "./faults.ts";

export interface RedfishMockOptions {
  rack: Rack;
  clock: Clock;
  random: Random;
  /** The hosts that this one server fronts, one System each; all of the rack where absent. */
  hosts?: readonly string[];
  /** 0, any free port, where absent. It listens on 127.0.0.1. */
  port?: number;
  /** PEM; plain HTTP where absent. */
  tls?: { certPem: string; keyPem: string };
  /** `admin` where absent. */
  username?: string;
  /** `password` where absent. */
  password?: Secret;
  /** Size of the session table: 8 where absent. */
  sessionsMax?: number;
}

/** One request as the mock saw it. */
export interface LoggedRequest {
  /** Wall-clock time of its arrival, milliseconds since the epoch. */
  atMs: number;
  method: string;
  path: string;
  /** Undefined while there is no answer, and for good where there never was one. */
  status: number | undefined;
}

export interface RedfishMock {
  /** E.g. `https://127.0.0.1:40123`. */
  readonly url: string;
  /** Adds a fault; returns the way to take it away. The newest matching one is applied. */
  addFault(rule: FaultRule): () => void;
  clearFaults(): void;
  /** Requests received, oldest first. */
  readonly requests: readonly LoggedRequest[];
  /** Sessions open now. */
  readonly sessionCount: number;
  close(): Promise<void>;
}

/** Starts one simulated BMC that speaks Redfish for hosts of a rack. */
export async function startRedfishMock(options: RedfishMockOptions): Promise<RedfishMock> {
  await Promise.resolve(options);
  throw new Error("not there yet");
}
