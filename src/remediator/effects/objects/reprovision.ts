import { POWER_OFF_REQUEST } from "../../../api/names/annotations.ts";
import type { BareMetalRemediation } from "../../../api/ironfence/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../../../api/ironfence/bare-metal-remediation.ts";
import { PAUSED_ANNOTATION } from "../../../api/cluster-api/cluster-api.ts";
import { integerAt } from "../../../api/schema/read-fields.ts";
import { powerOffAnnotation, readBareMetalHost } from "../../../api/metal3/metal3.ts";
import type { BareMetalHost } from "../../../api/metal3/metal3.ts";
import type { JsonPatchOperation } from "../../../kube/client.ts";
import { isKubeError } from "../../../kube/errors.ts";
import { findObject } from "../../../kube/objects/find-object.ts";
import { pointer } from "../../../kube/objects/json-pointer.ts";
import type { KubeObject, OwnerReference } from "../../../kube/resource.ts";
import { keyOf } from "../../../kube/watched.ts";
import { parseTimeMs } from "../../../runtime/time.ts";
import type { EffectContext } from "../context/effect-context.ts";
import { isReady } from "../../../nodes/ready.ts";
import { getNode } from "../../clusters/node-writes.ts";
import { handToOwner, machineType } from "../../machine-objects/owner-remediated.ts";
import { hostOfMachine } from "../../hosts/bare-metal-host/lookup/machine-host.ts";
import { readAnyMachine } from "../../machine-objects/read-machine.ts";
import type { Observations } from "../../machine/model/facts/observations.ts";
import { findMachine } from "./find-machine.ts";
import type { MachineRef } from "../../../nodes/subject.ts";
import { groupOf } from "../../../nodes/subject.ts";
import { BARE_METAL_HOSTS } from "../../hosts/bare-metal-host/store/host-store.ts";
import { imageOf, noteImage, putBack, savedImage } from "../../hosts/bare-metal-host/store/removed-image.ts";
import type { Effect } from "../../machine/model/decision/decision.ts";

// Effects on what a reprovision acts on: Machines and BareMetalHosts, in the cluster that holds the remediation.

export type ReprovisionEffect = Extract<
  Effect,
  {
    do:
      | "findMachine"
      | "examineMachine"
      | "askToReplace"
      | "handToOwner"
      | "deleteMachine"
      | "checkReplacement"
      | "examineHost"
      | "takeImageOff"
      | "putImageBack"
      | "deleteSelf";
  }
>;

/** Runs one effect once and reports the result. Failures of the API server are thrown as KubeErrors. */
export async function runReprovisionEffect(
  context: EffectContext,
  effect: ReprovisionEffect,
  signal: AbortSignal,
): Promise<void> {
  const { session, runtime } = context;
  const { machine } = session.status;
  switch (effect.do) {
    case "askToReplace": {
      const admission = context.admissions.askToReplace(session.remediation);
      return session.observe({ type: "ReplacementAdmission", admission, atMs: session.now().monotonicMs });
    }
    case "findMachine":
      return session.observe({ type: "NodeMachineRead", machine: await findMachine(context, signal) });
    case "examineMachine":
      if (machine === undefined) return;
      return session.observe({ type: "MachineExamined", machine: await examineMachine(context, machine, signal) });
    case "handToOwner":
      if (machine !== undefined) await handToOwner(runtime, machine, effect.message, signal);
      return session.observe({ type: "OwnerInformed" });
    case "deleteMachine":
      if (machine === undefined) return;
      // Forgets the Machine first, so that it is read again even if the answer is lost.
      session.observe({ type: "MachineExamined", machine: undefined });
      return deleteMachine(context, machine, signal);
    case "checkReplacement":
      if (machine === undefined) return;
      return session.observe({
        type: "ReplacementChecked",
        replacement: await findReplacement(context, machine, signal),
      });
    case "examineHost":
      return session.observe({ type: "InstallationExamined", installed: await examineHost(context, signal) });
    case "takeImageOff":
      session.observe({ type: "InstallationExamined", installed: undefined });
      return takeImageOff(context, signal);
    case "putImageBack":
      session.observe({ type: "InstallationExamined", installed: undefined });
      return putImageBack(context, signal);
    case "deleteSelf":
      return deleteSelf(context, signal);
  }
}

async function examineMachine(
  context: EffectContext,
  machine: MachineRef,
  signal: AbortSignal,
): Promise<NonNullable<Observations["machine"]>> {
  const { runtime, session } = context;
  const { namespace, name, uid } = machine;
  const raw = await findObject(
    runtime.client,
    await machineType(runtime, machine, signal),
    { namespace, name },
    signal,
  );
  if (raw === undefined || raw.metadata.uid !== uid) {
    const atMs = session.now().monotonicMs;
    const nothing = { owner: undefined, isControlPlane: false, isReplaced: false, externallyProvisioned: false };
    return { state: "Gone", deletedAt: undefined, nodeName: undefined, ...nothing, atMs };
  }
  const { metadata, nodeName, isControlPlane } = readAnyMachine(raw);
  const owner = metadata.ownerReferences?.find(({ controller }) => controller === true);
  const [isReplaced, host, target] = await Promise.all([
    owner !== undefined && wouldReplace(context, owner, namespace, signal),
    hostOfMachine(runtime, machine, signal),
    readTarget(context, signal),
  ]);
  return {
    state: metadata.deletionTimestamp === undefined ? "Present" : "Deleting",
    deletedAt: metadata.deletionTimestamp,
    nodeName,
    isControlPlane,
    owner: owner === undefined ? undefined : identityOf(owner),
    isReplaced,
    // The fenced host may have been found in another way than by its Machine, so both hosts are checked.
    externallyProvisioned:
      host?.externallyProvisioned === true || (target !== undefined && readBareMetalHost(target).externallyProvisioned),
    atMs: session.now().monotonicMs,
  };
}

function identityOf({ apiVersion, kind, name, uid }: OwnerReference): NonNullable<Observations["machine"]>["owner"] {
  return { apiVersion, kind, name, uid };
}

/**
 * Whether a controller replaces a deleted Machine: a MachineSet that wants at least one. No other kind is known to do
 * so.
 */
async function wouldReplace(
  context: EffectContext,
  owner: OwnerReference,
  namespace: string,
  signal: AbortSignal,
): Promise<boolean> {
  if (owner.kind !== "MachineSet") return false;
  // Discovered by the group, because the version in an old reference may no longer be served.
  const type = await context.runtime.client.discover(groupOf(owner.apiVersion), owner.kind, signal);
  if (type === undefined) return false;
  const set = await findObject(context.runtime.client, type, { namespace, name: owner.name }, signal);
  if (set === undefined || set.metadata.uid !== owner.uid || set.metadata.deletionTimestamp !== undefined) return false;
  const isPaused = set.metadata.annotations?.[PAUSED_ANNOTATION] !== undefined;
  // The default of Kubernetes if the field is missing.
  return !isPaused && (integerAt(set, "spec", "replicas") ?? 1) > 0;
}

async function deleteMachine({ runtime }: EffectContext, machine: MachineRef, signal: AbortSignal): Promise<void> {
  const { namespace, name, uid } = machine;
  try {
    const type = await machineType(runtime, machine, signal);
    await runtime.client.delete(type, { namespace, name }, { guard: { uid } }, signal);
  } catch (error) {
    // The Machine is gone. The next check shows it.
    if (!isKubeError(error, "NotFound")) throw error;
  }
}

async function findReplacement(
  context: EffectContext,
  machine: MachineRef,
  signal: AbortSignal,
): Promise<NonNullable<Observations["replacement"]>> {
  const { runtime, session } = context;
  const { replacement } = session.status;
  const type = await machineType(runtime, machine, signal);
  const { items } = await runtime.client.list<KubeObject>(type, { namespace: machine.namespace }, signal);
  const isOldThere = items.some(({ metadata }) => metadata.uid === machine.uid);
  const nodeName = await readyNodeOf(context, items, replacement, signal);
  const mayLetGo = !isOldThere || (await isDeprovisioning(context, signal));
  return { nodeName, mayLetGo, atMs: session.now().monotonicMs };
}

/** The Ready Node of a Machine that the owner has created since the old one was deleted. */
async function readyNodeOf(
  { session, nodeRuntime }: EffectContext,
  machines: readonly KubeObject[],
  replacement: NonNullable<EffectContext["session"]["status"]["replacement"]> | undefined,
  signal: AbortSignal,
): Promise<string | undefined> {
  const sinceMs = parseTimeMs(replacement?.deletedAt) ?? Infinity;
  for (const raw of machines) {
    const { ownerReferences, creationTimestamp, deletionTimestamp } = raw.metadata;
    const isOurs = ownerReferences?.some(
      ({ uid, controller }) => controller === true && uid === replacement?.owner.uid,
    );
    const isLater = (parseTimeMs(creationTimestamp) ?? -Infinity) >= sinceMs;
    if (isOurs !== true || !isLater || deletionTimestamp !== undefined) continue;
    const { nodeName } = readAnyMachine(raw);
    if (nodeName === undefined) continue;
    const node = await getNode(nodeRuntime.client, nodeName, signal);
    // The old Node may still exist under the same name. It does not count.
    if (node !== undefined && isReady(node) && node.metadata.uid !== session.status.node?.uid) return nodeName;
  }
  return undefined;
}

/** Provisioning states of a host on which something is installed and runs. */
const INSTALLED_STATES: readonly (string | undefined)[] = ["provisioned", "externally provisioned"];

/** Whether the host is being deprovisioned. True if the host has no BareMetalHost. */
async function isDeprovisioning(context: EffectContext, signal: AbortSignal): Promise<boolean> {
  const host = await readTarget(context, signal);
  return host === undefined || !INSTALLED_STATES.includes(readBareMetalHost(host).provisioningState);
}

async function examineHost(
  context: EffectContext,
  signal: AbortSignal,
): Promise<NonNullable<Observations["installed"]>> {
  const { session } = context;
  const raw = await readTarget(context, signal);
  const host: BareMetalHost | undefined = raw === undefined ? undefined : readBareMetalHost(raw);
  const { consumerRef } = host ?? {};
  return {
    isGone: host === undefined,
    provisioningState: host?.provisioningState,
    image: raw === undefined ? undefined : savedImage(raw),
    consumer: consumerRef === undefined ? undefined : `${consumerRef.kind} ${consumerRef.name}`,
    externallyProvisioned: host?.externallyProvisioned === true,
    errorMessage: host?.errorMessage,
    atMs: session.now().monotonicMs,
  };
}

/**
 * One guarded patch removes the image and the requests that keep the host off. If the image stayed, the old system
 * would start again. If the requests stayed, the host could not be installed again.
 */
async function takeImageOff(context: EffectContext, signal: AbortSignal): Promise<void> {
  const raw = await readTarget(context, signal);
  if (raw === undefined || readBareMetalHost(raw).consumerRef !== undefined) return;
  // Removes only the saved image, because an undo can restore no other.
  const { image } = context.session.status.installation ?? {};
  if (image === undefined || savedImage(raw) !== image) return;
  const holds = [powerOffAnnotation({ uid: context.session.uid }), POWER_OFF_REQUEST].filter(
    (key) => raw.metadata.annotations?.[key] !== undefined,
  );
  const paths = [
    ...Object.keys(imageOf(raw)).map((field) => pointer("spec", field)),
    ...holds.map((key) => pointer("metadata", "annotations", key)),
  ];
  const operations = paths.map((path) => ({ op: "remove", path }) as const);
  await patchHost(context, raw, [...noteImage(raw, context.session.uid, image), ...operations], signal);
}

async function putImageBack(context: EffectContext, signal: AbortSignal): Promise<void> {
  const { installation } = context.session.status;
  const raw = await readTarget(context, signal);
  // If the host has a consumer now, the consumer decides what is installed on it.
  if (raw === undefined || installation === undefined || readBareMetalHost(raw).consumerRef !== undefined) return;
  // Another client has set an image.
  if (savedImage(raw) !== undefined) return;
  await patchHost(context, raw, putBack(raw, installation.image), signal);
}

async function patchHost(
  { runtime }: EffectContext,
  raw: KubeObject,
  operations: readonly JsonPatchOperation[],
  signal: AbortSignal,
): Promise<void> {
  if (operations.length === 0) return;
  const { uid, resourceVersion } = raw.metadata;
  await runtime.client.patch(BARE_METAL_HOSTS, keyOf(raw), { uid, resourceVersion }, operations, {}, signal);
}

/** The target of the remediation as a BareMetalHost, read live; undefined if it is another kind, or gone. */
async function readTarget(context: EffectContext, signal: AbortSignal): Promise<KubeObject | undefined> {
  const { target } = context.session.status;
  if (target?.kind !== BARE_METAL_HOSTS.kind) return undefined;
  const { namespace, name } = target;
  const raw = await findObject(context.runtime.client, BARE_METAL_HOSTS, { namespace, name }, signal);
  return raw?.metadata.uid === target.uid ? raw : undefined;
}

async function deleteSelf({ runtime, session }: EffectContext, signal: AbortSignal): Promise<void> {
  const key = keyOf(session.remediation);
  const guard = { uid: session.uid };
  await runtime.client.delete(BARE_METAL_REMEDIATIONS, key, { guard }, signal);
  session.learn(await runtime.client.get<BareMetalRemediation>(BARE_METAL_REMEDIATIONS, key, signal));
}
