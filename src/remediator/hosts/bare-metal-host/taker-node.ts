import type { BareMetalHost, Metal3Machine } from "../../../api/metal3.ts";
import type { KubeRuntime } from "../../../kube/runtime.ts";
import { readOwnerMachine } from "../../machine-objects/read-machine.ts";
import type { Subject } from "../../../nodes/subject.ts";
import { machineOwners } from "../../../nodes/subject.ts";
import { hostText } from "./power-path.ts";

/**
 * Why a node that leads to a host by itself is not the one of the Machine that has taken it. One that was found by its Machine is:
 * that Machine's host is what was looked for.
 */
export async function disputeWithTaker(
  runtime: Pick<KubeRuntime, "client">,
  host: BareMetalHost,
  taker: Metal3Machine | undefined,
  { machine, nodeName }: Subject,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (machine !== undefined || taker === undefined || machineOwners(taker.metadata.ownerReferences).length === 0) {
    return undefined;
  }
  const found = await readOwnerMachine(runtime, taker.metadata, signal);
  if (!found.found) return `nobody can tell whose node ${hostText(host)} is: ${found.message}`;
  const { metadata, nodeName: owner } = found.machine;
  if (owner === nodeName) return undefined;
  const whose = owner === undefined ? "has not become a node" : `is node ${owner}`;
  return `node ${nodeName} leads to ${hostText(host)}, but Machine ${metadata.namespace}/${metadata.name}, which has taken that, ${whose}: correct what is wrong there, since neither is trusted`;
}
