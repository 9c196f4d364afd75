import { CLUSTER_API_GROUP, readMachine } from "../../api/cluster-api.ts";
import type { BareMetalHost } from "../../api/metal3.ts";
import {
  BARE_METAL_HOST_ANNOTATION,
  METAL3_GROUP,
  METAL3_VERSIONS,
  parseHostName,
  readBareMetalHost,
  readMetal3Machine,
} from "../../api/metal3.ts";
import { isKubeError } from "../../kube/errors.ts";
import type { KubeObject, ResourceType } from "../../kube/resource.ts";
import { apiVersionOf } from "../../kube/resource.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import { machineType } from "../owner-remediated.ts";
import type { MachineRef } from "../subject.ts";

/**
 * The BareMetalHost that a Machine runs on, read live, by the way that its provider has written down: Machine → Metal3Machine
 * → annotation; OKD's Machines bear the annotation themselves. Undefined where any part of the way is missing.
 */
export async function hostOfMachine(
  runtime: Pick<KubeRuntime, "client">,
  machine: MachineRef,
  signal: AbortSignal,
): Promise<BareMetalHost | undefined> {
  const { client } = runtime;
  const { namespace, name, uid } = machine;
  const raw = await getOrUndefined(runtime, await machineType(runtime, machine, signal), { namespace, name }, signal);
  if (raw === undefined || raw.metadata.uid !== uid) return undefined;
  const host = machine.apiVersion.startsWith(`${CLUSTER_API_GROUP}/`)
    ? await metal3Host(runtime, raw, signal)
    : parseHostName(raw.metadata.annotations?.[BARE_METAL_HOST_ANNOTATION]);
  const type = await client.discover(`${METAL3_GROUP}/${METAL3_VERSIONS[0]}`, "BareMetalHost", signal);
  if (host === undefined || type === undefined) return undefined;
  const found = await getOrUndefined(runtime, type, host, signal);
  return found === undefined ? undefined : readBareMetalHost(found);
}

async function metal3Host(
  runtime: Pick<KubeRuntime, "client">,
  machine: KubeObject,
  signal: AbortSignal,
): Promise<{ namespace: string; name: string } | undefined> {
  const { infrastructureRef } = readMachine(machine);
  if (infrastructureRef === undefined) return undefined;
  const { group, kind, namespace, name } = infrastructureRef;
  const type = await runtime.client.discover(group, kind, signal);
  if (type === undefined) return undefined;
  const found = await getOrUndefined(runtime, type, { namespace, name }, signal);
  return found === undefined ? undefined : readMetal3Machine(found).host;
}

async function getOrUndefined(
  { client }: Pick<KubeRuntime, "client">,
  type: ResourceType,
  key: { namespace: string; name: string },
  signal: AbortSignal,
): Promise<KubeObject | undefined> {
  try {
    return await client.get(type, key, signal);
  } catch (error) {
    if (isKubeError(error, "NotFound")) return undefined;
    throw error;
  }
}

/** A BareMetalHost as `apiVersion` and plural, for writes. */
export async function bareMetalHostType(
  { client }: Pick<KubeRuntime, "client">,
  signal: AbortSignal,
): Promise<ResourceType | undefined> {
  return client.discover(apiVersionOf({ group: METAL3_GROUP, version: METAL3_VERSIONS[0] }), "BareMetalHost", signal);
}
