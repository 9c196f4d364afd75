import { HOST_OWNER, LAST_REBOOT, POWER_OFF_REQUEST } from "../../../../api/names/annotations.ts";
import type { BareMetalHost } from "../../../../api/metal3/metal3.ts";
import {
  POWER_OFF_ANNOTATION_PREFIX,
  REBOOT_ANNOTATION_PREFIX,
  powerOffAnnotation,
} from "../../../../api/metal3/metal3.ts";
import { parseJson, textAt } from "../../../../api/schema/read-fields.ts";
import type { HostOwner } from "../../../machine/model/facts/host-facts.ts";
import type { FencedHost } from "../../model/host.ts";

// What the annotations of a BareMetalHost say: its owner, its last reboot, and who requests it to be off. Pure.
// `host-store.ts` writes them.

/** The value of an off request. */
export const HARD = JSON.stringify({ mode: "hard" });

/** Off requests of others (any other annotation of Metal3 that keeps a host off), and requests to reboot it. */
export function foreignOffRequests({ metadata }: BareMetalHost): string[] {
  const isForeign = (key: string): boolean =>
    (key.startsWith(REBOOT_ANNOTATION_PREFIX) || `${key}/` === REBOOT_ANNOTATION_PREFIX) &&
    !key.startsWith(POWER_OFF_ANNOTATION_PREFIX);
  return Object.keys(metadata.annotations ?? {}).filter(isForeign);
}

/** The owner in the annotation of the host, with the system UUID that the owner has read from the host. */
export interface StoredOwner extends HostOwner {
  systemUUID: string | undefined;
}

/** Undefined if there is no owner. An owner that cannot be parsed counts as live. */
export function storedOwner({ metadata }: BareMetalHost): StoredOwner | undefined {
  const text = metadata.annotations?.[HOST_OWNER];
  if (text === undefined) return undefined;
  const stored = parseJson(text);
  return {
    uid: textAt(stored, "uid") ?? "unknown",
    kind: textAt(stored, "kind") ?? "an unknown",
    namespace: textAt(stored, "namespace") ?? "",
    name: textAt(stored, "name") ?? `owner (correct the annotation ${HOST_OWNER})`,
    systemUUID: textAt(stored, "systemUUID"),
  };
}

export function storedReboot({ metadata }: BareMetalHost): FencedHost["lastReboot"] {
  const stored = parseJson(metadata.annotations?.[LAST_REBOOT]);
  const time = textAt(stored, "time");
  const offConfirmedAt = textAt(stored, "offConfirmedAt");
  if (time === undefined || offConfirmedAt === undefined) return undefined;
  const nodeUID = textAt(stored, "nodeUID");
  const bootID = textAt(stored, "bootID");
  return { time, offConfirmedAt, ...(nodeUID !== undefined && { nodeUID }), ...(bootID !== undefined && { bootID }) };
}

/**
 * The status at the time when the operator was asked to keep the host off; undefined for a request of another owner.
 */
export function storedRequest(
  { metadata }: BareMetalHost,
  owner: HostOwner,
): { poweredOn: string | undefined; lastUpdated: string | undefined } | undefined {
  const stored = parseJson(metadata.annotations?.[POWER_OFF_REQUEST]);
  if (textAt(stored, "uid") !== owner.uid) return undefined;
  return { poweredOn: textAt(stored, "poweredOn"), lastUpdated: textAt(stored, "lastUpdated") };
}

/** Whether the object shows an off request of this owner. */
export function isOffRequested({ metadata }: BareMetalHost, owner: Pick<HostOwner, "uid">): boolean {
  return metadata.annotations?.[powerOffAnnotation(owner)] === HARD;
}

/**
 * Whether a host belongs to this owner and has no off request of ironfence. Nothing is then removed before a power-on.
 */
export function isOwnedWithoutOffRequest(host: BareMetalHost, owner: Pick<HostOwner, "uid">): boolean {
  return storedOwner(host)?.uid === owner.uid && offRequestersOf(host).length === 0;
}

/** UIDs of the remediations that request a host to be off. */
export function offRequestersOf({ metadata }: BareMetalHost): string[] {
  const keys = Object.keys(metadata.annotations ?? {}).filter((key) => key.startsWith(POWER_OFF_ANNOTATION_PREFIX));
  return keys.map((key) => key.slice(POWER_OFF_ANNOTATION_PREFIX.length));
}
