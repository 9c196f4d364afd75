import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

// A rack of simulated hosts in a process of its own, so that CPU and memory of a measured client are the client's
// alone.

export const USERNAME = "admin";
export const PASSWORD = "bench-password";

/** One host and how its BMC speaks. */
export interface RackHost {
  name: string;
  protocol: "ipmi" | "redfish" | "redfish+tls";
  /** From the order to the moment of truth, milliseconds. */
  powerOffDelayMs: number;
}

/** Where a host's BMC is. */
export interface BmcAt {
  name: string;
  /** Of 127.0.0.1. */
  port: number;
  /** As `DeviceConfig` takes it. */
  address: string;
}

/** What a BMC and its host have seen since the start or the last `reset`. */
export interface BmcReport {
  name: string;
  /** Wall-clock time at which the host was truly off, milliseconds since the epoch; absent while it is not. */
  offAtMs?: number;
  /** Redfish requests, or IPMI commands with those of the login. */
  requests: number;
  /** Times at which power was asked for, milliseconds since the epoch. */
  powerReadsAtMs: number[];
  logins: number;
  /** Sessions open now. */
  sessions: number;
}

export interface BenchRack {
  readonly bmcs: readonly BmcAt[];
  /** SHA-256 of the certificate that the TLS ones share, where there are any. */
  readonly sha256Fingerprint: string | undefined;
  /** Of the process that simulates them. */
  readonly pid: number;
  report(): Promise<BmcReport[]>;
  /** Forgets what was seen, and puts every host on. */
  reset(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export type RackAnswer =
  | { bmcs: BmcAt[]; sha256Fingerprint: string | undefined }
  | { reports: BmcReport[] }
  | { reset: true };
export type RackRequest = { start: RackHost[] } | { ask: "report" | "reset" };

export async function startBenchRack(hosts: RackHost[]): Promise<BenchRack> {
  const child = fork(fileURLToPath(new URL("bmc-rack-process.ts", import.meta.url)), { serialization: "advanced" });
  const ended = once(child, "exit").then(() => {
    throw new Error("the process of the simulated BMCs has ended");
  });
  ended.catch(() => undefined);
  const ask = async (request: RackRequest): Promise<RackAnswer> => {
    const answer = once(child, "message").then(([message]) => message as RackAnswer);
    child.send(request);
    return Promise.race([answer, ended]);
  };
  const started = await ask({ start: hosts });
  if (!("bmcs" in started)) throw new Error("the simulated BMCs have not started");
  return {
    ...started,
    pid: child.pid ?? -1,
    report: async () => {
      const answer = await ask({ ask: "report" });
      return "reports" in answer ? answer.reports : [];
    },
    reset: async () => {
      await ask({ ask: "reset" });
    },
    [Symbol.asyncDispose]: async () => {
      const gone = once(child, "exit");
      child.kill();
      await gone;
    },
  };
}
