import type { BareMetalRemediationStatus } from "../../../../api/ironfence/bare-metal-remediation.ts";
import type { MachineRef } from "../../../../nodes/subject.ts";

// What a reprovision knows about the objects that it changes. Each fact is a live read. Times are monotonic.

export type MachineOwner = NonNullable<BareMetalRemediationStatus["replacement"]>["owner"];

/** The Machine of a node, if each of the two names the other. `message` says what to do. */
export type NodeMachine = { found: true; ref: MachineRef } | { found: false; message: string };

/** The remediation's Machine. */
export interface MachineReport {
  /** Deleting: finalizers still keep the deleted Machine. Gone: there is none, or a new one has its name. */
  state: "Present" | "Deleting" | "Gone";
  /** When it was deleted, in RFC 3339; undefined if that is not known. */
  deletedAt: string | undefined;
  /** The Node that it names. A Machine of OKD no longer names a Node that was deleted. */
  nodeName: string | undefined;
  isControlPlane: boolean;
  /** The controller of the Machine; undefined if it has none. */
  owner: MachineOwner | undefined;
  /** Whether the owner creates another Machine at once: a MachineSet that has replicas and is not paused. */
  isReplaced: boolean;
  externallyProvisioned: boolean;
  atMs: number;
}

/** What is installed on a BareMetalHost. */
export interface InstalledHost {
  isGone: boolean;
  provisioningState: string | undefined;
  /** JSON of the fields that say what is installed; undefined if there are none. */
  image: string | undefined;
  /** The consumer of the host, as `kind namespace/name`. */
  consumer: string | undefined;
  externallyProvisioned: boolean;
  errorMessage: string | undefined;
  atMs: number;
}

/** What happened to a Machine that was deleted. */
export interface ReplacementReport {
  /** The Ready Node of a Machine that the same owner has created since. */
  nodeName: string | undefined;
  /** Whether the agent may stop keeping the host off: it is being deprovisioned, or the old Machine is gone. */
  mayLetGo: boolean;
  atMs: number;
}

/** Maximum age of a report on which an irreversible decision is based. */
const REPORT_AGE_MAX_MS = 5_000;
/** Interval between checks of something that takes minutes. */
export const REREAD_MS = 10_000;

/** Whether there is a report that is fresh enough. */
export function isFresh<T extends { atMs: number }>(
  report: T | undefined,
  nowMs: number,
  ageMaxMs = REPORT_AGE_MAX_MS,
): report is T {
  return report !== undefined && nowMs - report.atMs <= ageMaxMs;
}
