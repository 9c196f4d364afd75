import type { BareMetalRemediationStatus } from "../../../../api/ironfence/bare-metal-remediation.ts";
import type { MachineRef } from "../../../../nodes/subject.ts";

// What a reprovision sees of the objects that it acts on, each by a live read of this process. Times are monotonic.

export type MachineOwner = NonNullable<BareMetalRemediationStatus["replacement"]>["owner"];

/** The Machine that a node names, if that names the node. `message` says what to do. */
export type NodeMachine = { found: true; ref: MachineRef } | { found: false; message: string };

/** The remediation's Machine. */
export interface MachineReport {
  /** Deleting: it was deleted, and its finalizers keep it. Gone: there is none, or another one of that name. */
  state: "Present" | "Deleting" | "Gone";
  /** RFC 3339: when it was deleted, as far as it is known. */
  deletedAt: string | undefined;
  /** The Node that it names; OKD's forgets one that was deleted. */
  nodeName: string | undefined;
  isControlPlane: boolean;
  /** The controller of the Machine; undefined if it has none. */
  owner: MachineOwner | undefined;
  /**
   * Whether the owner creates another Machine at once: it is a MachineSet that exists, wants at least one Machine, and
   * is not paused.
   */
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
  /** `kind namespace/name` of who uses it. */
  consumer: string | undefined;
  externallyProvisioned: boolean;
  errorMessage: string | undefined;
  atMs: number;
}

/** What happened to a Machine that was deleted. */
export interface ReplacementReport {
  /** The Ready Node of a Machine that the same owner has made since. */
  nodeName: string | undefined;
  /**
   * Whether the host need not be kept off for the old Machine any more: it is being deprovisioned, or the Machine is
   * gone.
   */
  mayLetGo: boolean;
  atMs: number;
}

/** How old a report may be that something is decided by which cannot be taken back. */
const REPORT_AGE_MAX_MS = 5_000;
/** Between checks of what takes minutes. */
export const REREAD_MS = 10_000;

/** Whether there is a report, and fresh enough. */
export function isFresh<T extends { atMs: number }>(
  report: T | undefined,
  nowMs: number,
  ageMaxMs = REPORT_AGE_MAX_MS,
): report is T {
  return report !== undefined && nowMs - report.atMs <= ageMaxMs;
}
