import type { FencingTarget } from "../../../api/ironfence/fencing-target.ts";

/** Reasons of the condition Reachable that mean that nothing was sent to a device. */
const NEVER_SENT: ReadonlySet<string> = new Set([
  "AddressInvalid",
  "AddressNotAllowed",
  "SecretInvalid",
  "SecretNotFound",
  "SecretUnreadable",
]);

/**
 * Whether version 0.1.0, which does not know the annotation on Secrets, has claimed this host and has sent its Secrets
 * to the addresses in its spec. Without this, an upgrade in the middle of a fence would leave the host off. It ends
 * with that fence. Pure.
 *
 * The status shows both, and a user who may only write FencingTargets cannot write it: the owner has no state version,
 * and the devices of this generation of the spec have been contacted. An edit makes a new generation. If there are
 * several devices, the failure of one may hide that of another, so all must have answered.
 */
export function wasSentByFirstVersion({ metadata, spec, status }: FencingTarget): boolean {
  if (status?.owner === undefined || status.owner.stateVersion !== undefined) return false;
  const reachable = status.conditions?.find(({ type }) => type === "Reachable");
  if (reachable === undefined || reachable.observedGeneration !== metadata.generation) return false;
  if (reachable.status === "True") return true;
  return spec.devices.length === 1 && !NEVER_SENT.has(reachable.reason);
}
