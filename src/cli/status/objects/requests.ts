import { REFUSED } from "../../../api/names/annotations.ts";
import type { BareMetalRemediation } from "../../../api/ironfence/bare-metal-remediation.ts";
import { INFRASTRUCTURE_GROUP, INFRASTRUCTURE_VERSIONS } from "../../../api/metal3/metal3.ts";
import { METAL3_REMEDIATION_KIND, readMetal3Remediation } from "../../../api/metal3/metal3-remediation.ts";
import { EXTERNAL_REMEDIATION_ANNOTATION, OKD_MACHINES } from "../../../api/okd/okd-machine.ts";
import type { KubeClient } from "../../../kube/client.ts";
import type { KubeObject } from "../../../kube/resource.ts";
import { keyOf, keyText } from "../../../kube/watched.ts";
import { childName } from "../../../remediator/requests/request.ts";
import type { ListResult } from "./foreign.ts";
import { listForeign, renderForeign } from "./foreign.ts";

const METAL3_REMEDIATIONS = {
  group: INFRASTRUCTURE_GROUP,
  kind: METAL3_REMEDIATION_KIND,
  versions: INFRASTRUCTURE_VERSIONS,
};

const HEADER = ["NAMESPACE", "NAME", "PHASE", "RETRIES", "SERVED BY", "REFUSED"];

/** Requests of other projects, by kind. */
export interface Requests {
  metal3Remediations: ListResult;
  /** Machines with the annotation for external remediation. */
  okdMachines: ListResult;
}

export async function listRequests(client: KubeClient, signal: AbortSignal): Promise<Requests> {
  const [metal3Remediations, machines] = await Promise.all([
    listForeign(client, METAL3_REMEDIATIONS, signal),
    listForeign(client, OKD_MACHINES, signal),
  ]);
  const okdMachines = Array.isArray(machines) ? machines.filter(isAsked) : machines;
  return { metal3Remediations, okdMachines };
}

function isAsked({ metadata }: KubeObject): boolean {
  return metadata.annotations?.[EXTERNAL_REMEDIATION_ANNOTATION] !== undefined;
}

/**
 * A section of `ironfence status`: the state of each request. Empty if there is none.
 *
 * @param remediations all, including those that serve requests.
 */
export function renderRequests(
  { metal3Remediations, okdMachines }: Requests,
  remediations: readonly BareMetalRemediation[],
): string[] {
  const served = new Set(remediations.map((remediation) => keyText(keyOf(remediation))));
  const rowOf = (raw: KubeObject): string[] => {
    const { namespace = "", name, annotations } = raw.metadata;
    const { phase, retryCount } = readMetal3Remediation(raw);
    const child = childName(raw);
    const servedBy = served.has(keyText({ namespace, name: child })) ? child : "-";
    return [namespace, name, phase ?? "-", String(retryCount ?? "-"), servedBy, annotations?.[REFUSED] ?? ""];
  };
  return [
    ...renderForeign("Metal3Remediation", metal3Remediations, HEADER, rowOf),
    ...renderForeign("OKD Machine to be remediated", okdMachines, HEADER, rowOf),
  ];
}
