import type { BareMetalHost, Metal3Machine } from "../../../../api/metal3/metal3.ts";
import type { KubeRuntime } from "../../../../kube/runtime.ts";
import { readOwnerMachine } from "../../../machine-objects/read-machine.ts";
import type { Subject } from "../../../../nodes/subject.ts";
import { machineOwners } from "../../../../nodes/subject.ts";
import { hostText } from "../store/power-path.ts";

/**
 * Why a node that itself refers to a host is not the node of the Machine that uses the host. A subject that was found
 * by its Machine is not checked: the host of that Machine is the one in question.
 */
export async function disputeWithConsumer(
  runtime: Pick<KubeRuntime, "client">,
  host: BareMetalHost,
  consumer: Metal3Machine | undefined,
  { machine, nodeName }: Subject,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (
    machine !== undefined ||
    consumer === undefined ||
    machineOwners(consumer.metadata.ownerReferences).length === 0
  ) {
    return undefined;
  }
  const found = await readOwnerMachine(runtime, consumer.metadata, signal);
  if (!found.found) return `cannot determine which node runs on ${hostText(host)}: ${found.message}`;
  const { metadata, nodeName: owner } = found.machine;
  if (owner === nodeName) return undefined;
  const whose = owner === undefined ? "has no node yet" : `is node ${owner}`;
  return `node ${nodeName} refers to ${hostText(host)}, but Machine ${metadata.namespace}/${metadata.name}, which uses that host, ${whose}: ironfence uses neither; correct the wrong one`;
}
