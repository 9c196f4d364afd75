import { CLUSTER_API_GROUP, readMachine } from "../api/cluster-api.ts";
import type { BareMetalHost } from "../api/metal3.ts";
import { BARE_METAL_HOST_ANNOTATION, parseHostName, readBareMetalHost, readMetal3Machine } from "../api/metal3.ts";
import { findObject } from "../kube/find-object.ts";
import type { KubeObject } from "../kube/resource.ts";
import type { KubeRuntime } from "../kube/runtime.ts";
import { machineType } from "./owner-remediated.ts";
import type { MachineRef } from "./subject.ts";
import { BARE_METAL_HOSTS } from "./targets/bare-metal-host/host-store.ts";

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
  const raw = await findObject(
    runtime.client,
    await machineType(runtime, machine, signal),
    { namespace, name },
    signal,
  );
  if (raw === undefined || raw.metadata.uid !== uid) return undefined;
  const host = machine.apiVersion.startsWith(`${CLUSTER_API_GROUP}/`)
    ? await metal3Host(runtime, raw, signal)
    : parseHostName(raw.metadata.annotations?.[BARE_METAL_HOST_ANNOTATION]);
  const found = host && (await findObject(client, BARE_METAL_HOSTS, host, signal));
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
  const found = await findObject(runtime.client, type, { namespace, name }, signal);
  return found === undefined ? undefined : readMetal3Machine(found).host;
}
