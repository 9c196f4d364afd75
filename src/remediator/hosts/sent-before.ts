import type { FencingTarget } from "../../api/fencing-target.ts";

/** Reasons of the condition Reachable by which a device has not even been spoken to. */
const NEVER_SENT: ReadonlySet<string> = new Set([
  "AddressInvalid",
  "AddressNotAllowed",
  "SecretInvalid",
  "SecretNotFound",
  "SecretUnreadable",
]);

/**
 * Whether 0.1.0, which knows no annotation on Secrets, has taken this host and has sent its Secrets to the very addresses of its
 * spec: an upgrade in the middle of a fence would leave the host off otherwise. It ends with that fence. Pure.
 *
 * Both is read from the status, which nobody who may only write FencingTargets can write: the owner bears no state version, and the
 * devices of this generation of the spec have been spoken to. An edit makes a new generation, of which that is not said. Of several
 * devices a failure of one may hide that of another, so all must have answered.
 */
export function wasSentByFirstVersion({ metadata, spec, status }: FencingTarget): boolean {
  if (status?.owner === undefined || status.owner.stateVersion !== undefined) return false;
  const reachable = status.conditions?.find(({ type }) => type === "Reachable");
  if (reachable === undefined || reachable.observedGeneration !== metadata.generation) return false;
  if (reachable.status === "True") return true;
  return spec.devices.length === 1 && !NEVER_SENT.has(reachable.reason);
}
