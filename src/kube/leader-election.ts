import type { Clock } from "../runtime/clock.ts";
import type { Random } from "../runtime/random.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { KubeClient } from "./client.ts";

export interface LeaderElectionDeps {
  client: KubeClient;
  clock: Clock;
  random: Random;
  logger: Logger;
}

export interface LeaderElectionOptions {
  namespace: string;
  name: string;
  identity: string;
  leaseDurationMs?: number;
  renewDeadlineMs?: number;
  retryPeriodMs?: number;
  lead(signal: AbortSignal): Promise<void>;
  onChange?(leader: string | undefined): void;
}

export async function runLeaderElection(
  deps: LeaderElectionDeps,
  options: LeaderElectionOptions,
  signal: AbortSignal,
): Promise<void> {
  throw new Error(`not built yet ${deps.clock.nowMs()} ${options.name} ${signal.aborted}`);
}
