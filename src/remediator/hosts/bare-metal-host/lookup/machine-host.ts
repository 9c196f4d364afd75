import { CLUSTER_API_GROUP, readMachine } from "../../../../api/cluster-api/cluster-api.ts";
import type { BareMetalHost } from "../../../../api/metal3/metal3.ts";
import {
  BARE_METAL_HOST_ANNOTATION,
  parseHostName,
  readBareMetalHost,
  readMetal3Machine,
} from "../../../../api/metal3/metal3.ts";
import { findObject } from "../../../../kube/objects/find-object.ts";
import type { KubeObject } from "../../../../kube/resource.ts";
import type { KubeRuntime } from "../../../../kube/runtime.ts";
import { machineType } from "../../../machine-objects/owner-remediated.ts";
import type { MachineRef } from "../../../../nodes/subject.ts";
import type { Consumer } from "../store/consumer.ts";
import { whyNotOf } from "../store/consumer.ts";
import { BARE_METAL_HOSTS } from "../store/host-store.ts";

/**
 * The BareMetalHost on which a Machine runs, read live by the references of its provider: Machine → Metal3Machine →
 * annotation. Machines of OKD have the annotation themselves. Undefined if any part is missing, and if the host names
 * another consumer: a user who may write to their own Machines must not cause writes to other hosts.
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
  const named = machine.apiVersion.startsWith(`${CLUSTER_API_GROUP}/`)
    ? await metal3Host(runtime, raw, signal)
    : okdHost(raw, namespace);
  const found = named?.host && (await findObject(client, BARE_METAL_HOSTS, named.host, signal));
  if (named === undefined || found === undefined) return undefined;
  const host = readBareMetalHost(found);
  return whyNotOf(host, named.consumer) === undefined ? host : undefined;
}

/** The host that a consumer names. */
interface NamedHost {
  host: { namespace: string; name: string } | undefined;
  consumer: Consumer;
}

function okdHost({ metadata }: KubeObject, namespace: string): NamedHost {
  return {
    host: parseHostName(metadata.annotations?.[BARE_METAL_HOST_ANNOTATION]),
    consumer: { kind: "Machine", namespace, name: metadata.name },
  };
}

async function metal3Host(
  runtime: Pick<KubeRuntime, "client">,
  machine: KubeObject,
  signal: AbortSignal,
): Promise<NamedHost | undefined> {
  const { infrastructureRef, metadata } = readMachine(machine);
  // In Cluster API both are in one namespace. An object in another namespace belongs to another Machine, even if this
  // one names it.
  if (infrastructureRef?.namespace !== metadata.namespace) return undefined;
  const { group, kind, namespace, name } = infrastructureRef;
  const type = await runtime.client.discover(group, kind, signal);
  if (type === undefined) return undefined;
  const found = await findObject(runtime.client, type, { namespace, name }, signal);
  if (found === undefined) return undefined;
  return { host: readMetal3Machine(found).host, consumer: { kind: "Metal3Machine", namespace, name } };
}
