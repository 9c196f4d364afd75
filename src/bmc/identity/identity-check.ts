import type { HostIdentity } from "./host-identity.ts";

/** The result of an identity check. */
export type IdentityCheck =
  | { verified: true; message: string }
  /**
   * Mismatch: another host answers. Unknown: there is nothing to compare with, the device reports no identity, or other
   * hosts report the same one. In this last case `enoughForOn` is set: a host that was verified before its power-off
   * may be powered on.
   */
  | { verified: false; reason: "Mismatch" | "Unknown"; message: string; enoughForOn?: true };

/** Whether a host that was verified before its power-off may be read and powered on. */
export function allowsOn(check: IdentityCheck): boolean {
  return check.verified || check.enoughForOn === true;
}

/** Decides whether the devices of one level power the expected host, from the identities that they report. */
export type IdentityJudge = (answers: readonly HostIdentity[]) => IdentityCheck;
