import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

// Runs a rack of simulated hosts in a separate process, so that a measurement of a client contains only the client's
// CPU and memory.

export const USERNAME = "admin";
export const PASSWORD = "bench-password";

/** One host and the protocol of its BMC. */
export interface RackHost {
  name: string;
  protocol: "ipmi" | "redfish" | "redfish+tls";
  /** Time from the order until the host is really off, in milliseconds. */
  powerOffDelayMs: number;
}

/** The address of the BMC of a host. */
export interface BmcAt {
  name: string;
  /** A port of 127.0.0.1. */
  port: number;
  /** In the form that `DeviceConfig` accepts. */
  address: string;
}

/** What happened at a BMC and its host since the start or the last `reset`. */
export interface BmcReport {
  name: string;
  /** Wall-clock time at which the host was truly off, milliseconds since the epoch; absent while it is not. */
  offAtMs?: number;
  /** Redfish requests, or IPMI commands with those of the login. */
  requests: number;
  /** Times at which a client read the power state, in milliseconds since the epoch. */
  powerReadsAtMs: number[];
  logins: number;
  /** Sessions open now. */
  sessions: number;
}

export interface BenchRack {
  readonly bmcs: readonly BmcAt[];
  /** SHA-256 of the certificate that all BMCs with TLS share; undefined if there is no such BMC. */
  readonly sha256Fingerprint: string | undefined;
  /** Process id of the simulation. */
  readonly pid: number;
  report(): Promise<BmcReport[]>;
  /** Clears the reports, and powers every host on. */
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
