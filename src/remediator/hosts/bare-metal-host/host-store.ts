import { HOST_OWNER, LAST_REBOOT, POWER_OFF_REQUEST, REMOVED_IMAGE } from "../../../api/annotations.ts";
import { textAt } from "../../../api/foreign.ts";
import type { BareMetalHost } from "../../../api/metal3.ts";
import {
  HOLD_KEY_PREFIX,
  METAL3_GROUP,
  METAL3_VERSIONS,
  REBOOT_ANNOTATION_PREFIX,
  holdKey,
  readBareMetalHost,
} from "../../../api/metal3.ts";
import type { JsonPatchOperation } from "../../../kube/client.ts";
import { isKubeError, KubeError } from "../../../kube/errors.ts";
import { pointer } from "../../../kube/json-pointer.ts";
import type { KubeObject, ResourceType } from "../../../kube/resource.ts";
import type { KubeRuntime } from "../../../kube/runtime.ts";
import { toMicroTime, toTime } from "../../../runtime/time.ts";
import type { FencedHost, HostRelease, OrderGate } from "../host.ts";
import { HostRefusal } from "../host.ts";
import { isLive } from "../target-store.ts";
import { hostText, refusalOf } from "./power-path.ts";
import type { HostOwner } from "../../machine/model/host-facts.ts";

// Every write to a BareMetalHost: annotations of ours alone, each by compare-and-swap on the live object, so no two owners can
// both win, and nothing is asked of a host that has changed since it was looked at.

export const BARE_METAL_HOSTS: ResourceType = {
  group: METAL3_GROUP,
  version: METAL3_VERSIONS[0],
  kind: "BareMetalHost",
  plural: "baremetalhosts",
  namespaced: true,
};

/** Tries of one write before its last error is the caller's: the operator writes to its hosts, too. */
const WRITE_TRIES_MAX = 6;

const HARD = JSON.stringify({ mode: "hard" });

type HostRef = FencedHost["ref"];

/** Keys of others that hold the host off, or are about to reboot it. */
export function foreignHolds({ metadata }: BareMetalHost): string[] {
  const isForeign = (key: string): boolean =>
    (key.startsWith(REBOOT_ANNOTATION_PREFIX) || `${key}/` === REBOOT_ANNOTATION_PREFIX) &&
    !key.startsWith(HOLD_KEY_PREFIX);
  return Object.keys(metadata.annotations ?? {}).filter(isForeign);
}

/** The owner by the host's annotation, and the system UUID that it found the host to have. */
export interface StoredOwner extends HostOwner {
  systemUUID: string | undefined;
}

/** Undefined where there is none. One that cannot be read is somebody nobody knows, who may be alive. */
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

/** What the status said when the operator was asked to hold the host off; undefined for a request that is not this owner's. */
export function storedRequest(
  { metadata }: BareMetalHost,
  owner: HostOwner,
): { poweredOn: string | undefined; lastUpdated: string | undefined } | undefined {
  const stored = parseJson(metadata.annotations?.[POWER_OFF_REQUEST]);
  if (textAt(stored, "uid") !== owner.uid) return undefined;
  return { poweredOn: textAt(stored, "poweredOn"), lastUpdated: textAt(stored, "lastUpdated") };
}

/** Takes the host for `owner`, unless another live remediation has it (see `claimTarget`). */
export async function claimHost(
  runtime: KubeRuntime,
  ref: HostRef,
  owner: HostOwner,
  signal: AbortSignal,
): ReturnType<FencedHost["claim"]> {
  let rival: HostOwner | undefined;
  const change = async (host: BareMetalHost): Promise<AnnotationChange | undefined> => {
    const present = storedOwner(host);
    rival = undefined;
    if (present?.uid === owner.uid) return undefined;
    if (present !== undefined && (await isLive(runtime, present, signal))) {
      const { uid, kind, namespace, name } = present;
      rival = { uid, kind, namespace, name };
      return undefined;
    }
    return { [HOST_OWNER]: ownerJson(runtime, owner, undefined) };
  };
  await updateAnnotations(runtime, ref, change, signal);
  return rival === undefined ? { owned: true } : { owned: false, by: rival };
}

/** Gives the host up if `owner` has it, and lets it be powered on again unless it is handed over as it is. */
export async function releaseHost(
  runtime: KubeRuntime,
  ref: HostRef,
  owner: HostOwner,
  { asItIs }: HostRelease,
  signal: AbortSignal,
): Promise<void> {
  const change = (host: BareMetalHost): AnnotationChange | undefined => {
    const isOwner = storedOwner(host)?.uid === owner.uid;
    const lifted = asItIs ? {} : liftHolds(host, isOwner ? () => true : (key) => key === holdKey(owner));
    // What is noted to be put back was put back before, or somebody else has given the host an image.
    const isNoted = isOwner && host.metadata.annotations?.[REMOVED_IMAGE] !== undefined;
    const changed = { ...lifted, ...(isOwner && { [HOST_OWNER]: null }), ...(isNoted && { [REMOVED_IMAGE]: null }) };
    return Object.keys(changed).length === 0 ? undefined : changed;
  };
  try {
    await updateAnnotations(runtime, ref, change, signal);
  } catch (error) {
    if (!isKubeError(error, "NotFound")) throw error;
  }
}

/** Records a reboot that was proven off. */
export async function recordHostReboot(
  runtime: KubeRuntime,
  ref: HostRef,
  reboot: NonNullable<FencedHost["lastReboot"]>,
  signal: AbortSignal,
): Promise<void> {
  await updateAnnotations(runtime, ref, () => ({ [LAST_REBOOT]: JSON.stringify(reboot) }), signal);
}

/**
 * Asks the operator to hold the host off for `owner`, who must own it. Asking again wakes an operator that takes the host for
 * off: it looks at a host whose annotations have changed at once, and else once in a minute.
 *
 * @param systemUUID whom the BMC was found to power, kept for times without a Node to compare with.
 * @param gate asked between the read and each write.
 * @throws HostRefusal where the live host must not be powered off.
 */
export function holdOff(
  runtime: KubeRuntime,
  ref: HostRef,
  owner: HostOwner,
  systemUUID: string | undefined,
  signal: AbortSignal,
  gate?: OrderGate,
): Promise<BareMetalHost> {
  const change = (host: BareMetalHost): AnnotationChange | undefined => {
    gate?.ensureDue();
    requireOwner(host, owner);
    const refusal = refusalOf(host);
    if (refusal !== undefined) throw refusal;
    const key = holdKey(owner);
    const knows = systemUUID === undefined || storedOwner(host)?.systemUUID === systemUUID;
    const asked = isHeld(host, owner) ? storedRequest(host, owner) : undefined;
    const { poweredOn, lastUpdated } = host;
    // Off already, perhaps by what was asked before: that stays the request which the status has to be news to.
    const before = poweredOn === false && asked !== undefined ? asked : { poweredOn: String(poweredOn), lastUpdated };
    const request = { uid: owner.uid, at: toMicroTime(runtime.clock.nowMs()), ...before };
    return {
      ...liftHolds(host, (other) => other !== key),
      [key]: HARD,
      [POWER_OFF_REQUEST]: JSON.stringify(request),
      ...(!knows && { [HOST_OWNER]: ownerJson(runtime, owner, systemUUID) }),
    };
  };
  return updateAnnotations(runtime, ref, change, signal);
}

/**
 * Takes every hold of ironfence off a host that `owner` owns: those of earlier owners, too, who handed it over as it was or are
 * gone. Holds of others stay.
 */
export function liftHold(
  runtime: KubeRuntime,
  ref: HostRef,
  owner: HostOwner,
  signal: AbortSignal,
): Promise<BareMetalHost> {
  const change = (host: BareMetalHost): AnnotationChange | undefined => {
    requireOwner(host, owner);
    const lifted = liftHolds(host, () => true);
    return Object.keys(lifted).length === 0 ? undefined : lifted;
  };
  return updateAnnotations(runtime, ref, change, signal);
}

/** Whether a host is held off by this owner, by what the object says. */
export function isHeld({ metadata }: BareMetalHost, owner: Pick<HostOwner, "uid">): boolean {
  return metadata.annotations?.[holdKey(owner)] === HARD;
}

/** Whether a host is this owner's and nobody of ironfence holds it off: nothing needs to be lifted before it is powered on. */
export function isUnheld(host: BareMetalHost, owner: Pick<HostOwner, "uid">): boolean {
  return storedOwner(host)?.uid === owner.uid && heldBy(host).length === 0;
}

/** UIDs of the remediations that hold a host off. */
export function heldBy({ metadata }: BareMetalHost): string[] {
  const keys = Object.keys(metadata.annotations ?? {}).filter((key) => key.startsWith(HOLD_KEY_PREFIX));
  return keys.map((key) => key.slice(HOLD_KEY_PREFIX.length));
}

/** Reads the host live. @throws KubeError, NotFound where it is gone or was made anew. */
export async function readHost(runtime: KubeRuntime, ref: HostRef, signal: AbortSignal): Promise<BareMetalHost> {
  const key = { namespace: ref.namespace, name: ref.name };
  const host = readBareMetalHost(await runtime.client.get<KubeObject>(BARE_METAL_HOSTS, key, signal));
  if (host.metadata.uid === ref.uid) return host;
  throw new KubeError("NotFound", `${hostText(host)} was deleted and created again`);
}

/** Annotations to set; null takes one off. */
type AnnotationChange = Record<string, string | null>;

function liftHolds({ metadata }: BareMetalHost, lifts: (key: string) => boolean): AnnotationChange {
  const present = Object.keys(metadata.annotations ?? {});
  const keys = present.filter((key) => key.startsWith(HOLD_KEY_PREFIX) && lifts(key));
  // The request outlives a hold that somebody else has taken off.
  const isStale =
    present.includes(POWER_OFF_REQUEST) &&
    !present.some((key) => key.startsWith(HOLD_KEY_PREFIX) && !keys.includes(key));
  const lifted = isStale ? [...keys, POWER_OFF_REQUEST] : keys;
  return Object.fromEntries(lifted.map((key) => [key, null]));
}

function requireOwner(host: BareMetalHost, owner: HostOwner): void {
  const present = storedOwner(host);
  if (present?.uid === owner.uid) return;
  const whose = present === undefined ? "nobody" : `${present.kind} ${present.namespace}/${present.name}`;
  throw new HostRefusal("NotTheOwner", `${hostText(host)} belongs to ${whose} by its annotation ${HOST_OWNER}`);
}

function ownerJson(
  runtime: KubeRuntime,
  { uid, kind, namespace, name }: HostOwner,
  systemUUID: string | undefined,
): string {
  return JSON.stringify({ uid, kind, namespace, name, since: toTime(runtime.clock.nowMs()), systemUUID });
}

/**
 * Asks `change` about the live host, and writes what it says to the very version that was read; anew where that has changed.
 *
 * @returns the host as it is then.
 */
async function updateAnnotations(
  runtime: KubeRuntime,
  ref: HostRef,
  change: (host: BareMetalHost) => AnnotationChange | undefined | Promise<AnnotationChange | undefined>,
  signal: AbortSignal,
): Promise<BareMetalHost> {
  const key = { namespace: ref.namespace, name: ref.name };
  for (let tries = 1; ; tries++) {
    const host = await readHost(runtime, ref, signal);
    const wanted = await change(host);
    if (wanted === undefined) return host;
    const { uid, resourceVersion } = host.metadata;
    try {
      const operations = annotationPatch(host, wanted);
      const guard = { uid, resourceVersion };
      return readBareMetalHost(await runtime.client.patch(BARE_METAL_HOSTS, key, guard, operations, {}, signal));
    } catch (error) {
      // Of no answer the caller judges anew: a power order must not go out minutes after what it rests on was looked at.
      if (tries >= WRITE_TRIES_MAX || !isKubeError(error, "Conflict")) throw error;
    }
  }
}

function annotationPatch({ metadata }: BareMetalHost, wanted: AnnotationChange): JsonPatchOperation[] {
  const present = metadata.annotations ?? {};
  const operations: JsonPatchOperation[] = [];
  if (metadata.annotations === undefined)
    operations.push({ op: "add", path: pointer("metadata", "annotations"), value: {} });
  for (const [name, value] of Object.entries(wanted)) {
    const path = pointer("metadata", "annotations", name);
    if (value !== null) operations.push({ op: "add", path, value });
    else if (name in present) operations.push({ op: "remove", path });
  }
  return operations;
}

/** Undefined for anything that is no JSON: people edit annotations. */
function parseJson(text: string | undefined): unknown {
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
