import type { BareMetalRemediationStatus } from "../../../api/bare-metal-remediation.ts";
import type { MachineRef } from "../../../nodes/subject.ts";

// What a reprovision sees of the objects that it acts on, each by a live look of this process. Times are monotonic.

export type MachineOwner = NonNullable<BareMetalRemediationStatus["replacement"]>["owner"];

/** The Machine that a node names, if that names the node. `message` says what to do. */
export type NodeMachine = { found: true; ref: MachineRef } | { found: false; message: string };

/** The remediation's Machine. */
export interface MachineLook {
  /** Deleting: somebody has deleted it, and its finalizers keep it. Gone: there is none, or another one of that name. */
  state: "Present" | "Deleting" | "Gone";
  /** RFC 3339: when it was deleted, as far as it tells. */
  deletedAt: string | undefined;
  /** The Node that it names; OKD's forgets one that was deleted. */
  nodeName: string | undefined;
  isControlPlane: boolean;
  /** Its controller; undefined where it has none. */
  owner: MachineOwner | undefined;
  /** Whether the owner makes another Machine in its place at once: a MachineSet that is there, wants some, and is not paused. */
  isReplaced: boolean;
  externallyProvisioned: boolean;
  atMs: number;
}

/** What is installed on a BareMetalHost. */
export interface InstalledHost {
  isGone: boolean;
  provisioningState: string | undefined;
  /** JSON of the fields that say what is installed; undefined where none does. */
  image: string | undefined;
  /** `kind namespace/name` of who uses it. */
  consumer: string | undefined;
  externallyProvisioned: boolean;
  errorMessage: string | undefined;
  atMs: number;
}

/** What has become of a Machine that was deleted. */
export interface ReplacementLook {
  /** The Ready Node of a Machine that the same owner has made since. */
  nodeName: string | undefined;
  /** Whether the host need not be held off for the old Machine any more: it is being deprovisioned, or the Machine is gone. */
  mayLetGo: boolean;
  atMs: number;
}

/** How old a look may be that something is decided by which cannot be taken back. */
const LOOK_AGE_MAX_MS = 5_000;
/** Between looks at what takes minutes. */
export const LOOK_AGAIN_MS = 10_000;

/** Whether a look is there, and fresh enough. */
export function isFresh<T extends { atMs: number }>(
  look: T | undefined,
  nowMs: number,
  ageMaxMs = LOOK_AGE_MAX_MS,
): look is T {
  return look !== undefined && nowMs - look.atMs <= ageMaxMs;
}
