import { HOST_OWNER, LAST_REBOOT, POWER_OFF_REQUEST, REMOVED_IMAGE } from "../../../../api/names/annotations.ts";
import type { BareMetalHost } from "../../../../api/metal3/metal3.ts";
import {
  POWER_OFF_ANNOTATION_PREFIX,
  METAL3_GROUP,
  METAL3_VERSIONS,
  powerOffAnnotation,
  readBareMetalHost,
} from "../../../../api/metal3/metal3.ts";
import type { JsonPatchOperation } from "../../../../kube/client.ts";
import { isKubeError, KubeError } from "../../../../kube/errors.ts";
import { pointer } from "../../../../kube/objects/json-pointer.ts";
import type { KubeObject, ResourceType } from "../../../../kube/resource.ts";
import type { KubeRuntime } from "../../../../kube/runtime.ts";
import { toMicroTime, toTime } from "../../../../runtime/time.ts";
import type { FencedHost, HostRelease, OrderCheck } from "../../model/host.ts";
import { HostRefusal } from "../../model/host.ts";
import { isActiveOwner } from "../../model/active-owner.ts";
import { HARD, isOffRequested, storedOwner, storedRequest } from "./host-annotations.ts";
import { hostText, powerOffRefusal } from "./power-path.ts";
import type { HostOwner } from "../../../machine/model/facts/host-facts.ts";

// All writes to a BareMetalHost: only our own annotations, each by compare-and-swap on the live object. Two owners
// cannot both win, and nothing is requested of a host that has changed since it was read.

export const BARE_METAL_HOSTS: ResourceType = {
  group: METAL3_GROUP,
  version: METAL3_VERSIONS[0],
  kind: "BareMetalHost",
  plural: "baremetalhosts",
  namespaced: true,
};

/** How often one write is tried before its last error is thrown. The operator writes to its hosts as well. */
const WRITE_TRIES_MAX = 6;

type HostRef = FencedHost["ref"];

/** Claims the host for `owner`, unless another live remediation has it (see `claimTarget`). */
export async function claimBareMetalHost(
  runtime: KubeRuntime,
  ref: HostRef,
  owner: HostOwner,
  signal: AbortSignal,
): ReturnType<FencedHost["claim"]> {
  let otherOwner: HostOwner | undefined;
  const change = async (host: BareMetalHost): Promise<AnnotationChange | undefined> => {
    const present = storedOwner(host);
    otherOwner = undefined;
    if (present?.uid === owner.uid) return undefined;
    if (present !== undefined && (await isActiveOwner(runtime, present, signal))) {
      const { uid, kind, namespace, name } = present;
      otherOwner = { uid, kind, namespace, name };
      return undefined;
    }
    return { [HOST_OWNER]: ownerJson(runtime, owner, undefined) };
  };
  await updateAnnotations(runtime, ref, change, signal);
  return otherOwner === undefined ? { owned: true } : { owned: false, by: otherOwner };
}

/** Releases the claim if `owner` has it, and withdraws the off requests unless the host is handed over as it is. */
export async function releaseHost(
  runtime: KubeRuntime,
  ref: HostRef,
  owner: HostOwner,
  { asItIs }: HostRelease,
  signal: AbortSignal,
): Promise<void> {
  const change = (host: BareMetalHost): AnnotationChange | undefined => {
    const isOwner = storedOwner(host)?.uid === owner.uid;
    const withdrawn = asItIs
      ? {}
      : offRequestsRemoved(host, isOwner ? () => true : (key) => key === powerOffAnnotation(owner));
    // The note is no longer needed: the image was restored before, or another user has given the host an image.
    const isNoted = isOwner && host.metadata.annotations?.[REMOVED_IMAGE] !== undefined;
    const changed = { ...withdrawn, ...(isOwner && { [HOST_OWNER]: null }), ...(isNoted && { [REMOVED_IMAGE]: null }) };
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
 * Asks the operator to keep the host off for `owner`, which must own it. A repeated request makes the operator check a
 * host that it considers off: it reconciles a host at once when its annotations change, and otherwise once a minute.
 *
 * @param systemUUID the UUID of the host that the BMC powers, stored for times without a Node to compare with.
 * @param check checked between the read and each write.
 * @throws HostRefusal if the live host must not be powered off.
 */
export function requestOff(
  runtime: KubeRuntime,
  ref: HostRef,
  owner: HostOwner,
  systemUUID: string | undefined,
  signal: AbortSignal,
  check?: OrderCheck,
): Promise<BareMetalHost> {
  const change = (host: BareMetalHost): AnnotationChange | undefined => {
    check?.ensureDue();
    requireOwner(host, owner);
    const refusal = powerOffRefusal(host);
    if (refusal !== undefined) throw refusal;
    const key = powerOffAnnotation(owner);
    const knows = systemUUID === undefined || storedOwner(host)?.systemUUID === systemUUID;
    const asked = isOffRequested(host, owner) ? storedRequest(host, owner) : undefined;
    const { poweredOn, lastUpdated } = host;
    // The host is off already, perhaps because of an earlier request. The status must then still be newer than that
    // earlier request.
    const before = poweredOn === false && asked !== undefined ? asked : { poweredOn: String(poweredOn), lastUpdated };
    const request = { uid: owner.uid, at: toMicroTime(runtime.clock.nowMs()), ...before };
    return {
      ...offRequestsRemoved(host, (other) => other !== key),
      [key]: HARD,
      [POWER_OFF_REQUEST]: JSON.stringify(request),
      ...(!knows && { [HOST_OWNER]: ownerJson(runtime, owner, systemUUID) }),
    };
  };
  return updateAnnotations(runtime, ref, change, signal);
}

/**
 * Withdraws every off request of ironfence from a host that `owner` owns, including those of earlier owners that handed
 * it over as it was or are gone. Requests of others stay.
 */
export function withdrawOffRequests(
  runtime: KubeRuntime,
  ref: HostRef,
  owner: HostOwner,
  signal: AbortSignal,
): Promise<BareMetalHost> {
  const change = (host: BareMetalHost): AnnotationChange | undefined => {
    requireOwner(host, owner);
    const withdrawn = offRequestsRemoved(host, () => true);
    return Object.keys(withdrawn).length === 0 ? undefined : withdrawn;
  };
  return updateAnnotations(runtime, ref, change, signal);
}

/** Reads the host live. @throws KubeError, NotFound if it was deleted, or deleted and created again. */
export async function readHost(runtime: KubeRuntime, ref: HostRef, signal: AbortSignal): Promise<BareMetalHost> {
  const key = { namespace: ref.namespace, name: ref.name };
  const host = readBareMetalHost(await runtime.client.get<KubeObject>(BARE_METAL_HOSTS, key, signal));
  if (host.metadata.uid === ref.uid) return host;
  throw new KubeError("NotFound", `${hostText(host)} was deleted and created again`);
}

/** Annotations to set; null removes one. */
type AnnotationChange = Record<string, string | null>;

function offRequestsRemoved({ metadata }: BareMetalHost, selects: (key: string) => boolean): AnnotationChange {
  const present = Object.keys(metadata.annotations ?? {});
  const keys = present.filter((key) => key.startsWith(POWER_OFF_ANNOTATION_PREFIX) && selects(key));
  // If another user has removed the annotation, the stored request is left behind, so it is removed too.
  const isStale =
    present.includes(POWER_OFF_REQUEST) &&
    !present.some((key) => key.startsWith(POWER_OFF_ANNOTATION_PREFIX) && !keys.includes(key));
  const withdrawn = isStale ? [...keys, POWER_OFF_REQUEST] : keys;
  return Object.fromEntries(withdrawn.map((key) => [key, null]));
}

function requireOwner(host: BareMetalHost, owner: HostOwner): void {
  const present = storedOwner(host);
  if (present?.uid === owner.uid) return;
  const whose =
    present === undefined ? "has no owner in" : `belongs to ${present.kind} ${present.namespace}/${present.name} by`;
  throw new HostRefusal("NotTheOwner", `${hostText(host)} ${whose} its annotation ${HOST_OWNER}`);
}

function ownerJson(
  runtime: KubeRuntime,
  { uid, kind, namespace, name }: HostOwner,
  systemUUID: string | undefined,
): string {
  return JSON.stringify({ uid, kind, namespace, name, since: toTime(runtime.clock.nowMs()), systemUUID });
}

/**
 * Reads the live host, calls `change`, and writes the result to the version that was read. If the host has changed, it
 * starts again.
 *
 * @returns the host after the write.
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
      // If there is no answer, the caller decides again: a power order must not be sent minutes after its checks.
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
