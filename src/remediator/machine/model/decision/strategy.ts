import { isDeepStrictEqual } from "node:util";
import type { BareMetalRemediationSpec } from "../../../../api/ironfence/bare-metal-remediation.ts";
import { bareMetalRemediationSpecSchema } from "../../../../api/ironfence/bare-metal-remediation.ts";
import { parseDurationMs } from "../../../../runtime/duration.ts";
import { parseTimeMs } from "../../../../runtime/time.ts";

/** One version of the lease of a node. */
export interface LeaseVersion {
  uid: string;
  resourceVersion: string;
}

/** A strategy with its durations parsed and bounded. */
export interface BoundedStrategy {
  type: "Reboot" | "Reprovision" | "Escalate";
  /** Power cycles beyond the first. */
  retryLimit: number;
  powerOffTimeoutMs: number;
  drainTimeoutMs: number;
  powerOnTimeoutMs: number;
  /** From power-on until the node is Ready. */
  timeoutMs: number;
  workloadRelease: "OutOfServiceTaint" | "DeleteNode";
  podRelease: "Eager" | "GarbageCollector";
  requireReboot: boolean;
  /** How a host is reprovisioned. */
  via: "NetworkBoot" | "BareMetalHost" | "MachineDeletion";
  diagnostics: "None" | "NMI";
  /** How long the first power-off waits for a crash dump. */
  diagnosticsTimeoutMs: number;
  powerOn: "On" | "ACCycle";
  /** How long the power-on waits for a BMC that an AC cycle has interrupted. */
  acCycleTimeoutMs: number;
  /** By the clock of the API server; absent if the remediation did not begin early. */
  powerOnNotBeforeMs?: number;
  /** The version of the lease that was silent when the remediation began early; absent if it does not name one. */
  provenLease?: LeaseVersion;
}

/** Longest duration that counts: the status holds deadlines, and a time too far in the future cannot be formatted. */
const DURATION_MAX_MS = 24 * 3_600_000;
/** Shortest time for the power-on: with less time, the host would stay off because its On is never sent. */
const POWER_ON_TIMEOUT_MIN_MS = 30_000;

/** Longest wait for a crash dump: during the wait, a host that hangs may still write to its disks. */
const DIAGNOSTICS_TIMEOUT_MAX_MS = 10 * 60_000;

/** Longest wait for a BMC after an AC cycle: the slowest BMCs take minutes to boot. */
const AC_CYCLE_TIMEOUT_MAX_MS = 30 * 60_000;

/** A strategy as far as this version knows the spec. `unknown` names the field that it does not know. */
export interface ParsedStrategy {
  strategy: BoundedStrategy;
  unknown: string | undefined;
}

let lastParsed: { spec: unknown; parsed: ParsedStrategy } | undefined;

/**
 * Reads a spec. A field with a value that this version does not know gets its default. Thousands of remediations may
 * have the same spec, so the last one is not parsed again.
 */
export function parseStrategy(spec: unknown): ParsedStrategy {
  if (lastParsed === undefined || !isDeepStrictEqual(lastParsed.spec, spec)) lastParsed = { spec, parsed: parse(spec) };
  return lastParsed.parsed;
}

function parse(spec: unknown): ParsedStrategy {
  const read = bareMetalRemediationSpecSchema.safeParse(spec);
  if (read.success) return { strategy: strategyOf(read.data), unknown: undefined };
  const { issues } = read.error;
  const bad = new Set(issues.map(({ path }) => String(path[1])));
  const { strategy } = (spec ?? {}) as { strategy?: unknown };
  const rest = Object.fromEntries(Object.entries(strategy ?? {}).filter(([field]) => !bad.has(field)));
  const where = ["spec", ...(issues[0]?.path ?? [])].join(".");
  return {
    strategy: strategyOf(bareMetalRemediationSpecSchema.parse({ strategy: rest })),
    unknown: `${where} is of another version: ${issues[0]?.message}`,
  };
}

/** @throws Error if a duration cannot be parsed; the schema of the CRD rejects such a duration. */
export function strategyOf(spec: BareMetalRemediationSpec): BoundedStrategy {
  const { strategy, powerOnNotBefore, earlyProof } = spec;
  const powerOnNotBeforeMs = parseTimeMs(powerOnNotBefore);
  return {
    ...(powerOnNotBeforeMs !== undefined && { powerOnNotBeforeMs }),
    ...(earlyProof !== undefined && {
      provenLease: { uid: earlyProof.leaseUID, resourceVersion: earlyProof.leaseResourceVersion },
    }),
    type: strategy.type,
    retryLimit: strategy.retryLimit,
    powerOffTimeoutMs: durationMs("powerOffTimeout", strategy.powerOffTimeout),
    drainTimeoutMs: durationMs("drainTimeout", strategy.drainTimeout),
    powerOnTimeoutMs: Math.max(durationMs("powerOnTimeout", strategy.powerOnTimeout), POWER_ON_TIMEOUT_MIN_MS),
    timeoutMs: durationMs("timeout", strategy.timeout),
    workloadRelease: strategy.workloadRelease,
    podRelease: strategy.podRelease,
    requireReboot: strategy.requireReboot,
    via: strategy.via,
    powerOn: strategy.powerOn,
    acCycleTimeoutMs: Math.min(durationMs("acCycleTimeout", strategy.acCycleTimeout), AC_CYCLE_TIMEOUT_MAX_MS),
    diagnostics: strategy.diagnostics,
    diagnosticsTimeoutMs: Math.min(
      durationMs("diagnosticsTimeout", strategy.diagnosticsTimeout),
      DIAGNOSTICS_TIMEOUT_MAX_MS,
    ),
  };
}

function durationMs(field: string, text: string): number {
  const parsedMs = parseDurationMs(text);
  if (parsedMs === undefined) throw new Error(`spec.strategy.${field}: "${text}" is not a duration`);
  return Math.min(parsedMs, DURATION_MAX_MS);
}
