import { METAL3_GROUP, METAL3_VERSIONS, readBareMetalHost } from "../api/metal3.ts";
import type { KubeClient } from "../kube/client.ts";
import { isKubeError } from "../kube/errors.ts";
import type { KubeObject } from "../kube/resource.ts";
import { storedOwner } from "../remediator/targets/bare-metal-host/host-store.ts";
import { maintenanceOf, refusalOf } from "../remediator/targets/bare-metal-host/power-path.ts";
import { findServed } from "../kube/served-kind.ts";
import { renderTable } from "./table.ts";

/** BareMetalHosts as listed; why they are not, where the person may not list them; undefined where the cluster has no such kind. */
export type ListedHosts = KubeObject[] | { problem: string } | undefined;

const KIND = { group: METAL3_GROUP, kind: "BareMetalHost", versions: METAL3_VERSIONS };

/** Another project's kind, and one family's: that it may not be listed keeps nobody from seeing the rest. */
export async function listHosts(client: KubeClient, signal: AbortSignal): Promise<ListedHosts> {
  try {
    const type = await findServed({ client }, KIND, signal);
    return type === undefined ? undefined : (await client.list<KubeObject>(type, {}, signal)).items;
  } catch (error) {
    if (isKubeError(error, "Forbidden")) return { problem: error.message };
    throw error;
  }
}

/** A section of `ironfence status`: who has each host, and what keeps it from being fenced as it is. Empty where there is none. */
export function renderHosts(hosts: ListedHosts): string[] {
  if (hosts === undefined) return [];
  if ("problem" in hosts) return [`BareMetalHost: cannot be shown: ${hosts.problem}`, ""];
  if (hosts.length === 0) return [];
  const rows = hosts.map(readBareMetalHost).map((host) => {
    const { metadata, consumerRef, poweredOn, provisioningState } = host;
    const refusal = refusalOf(host);
    const maintenance = maintenanceOf(host);
    const owner = storedOwner(host);
    return [
      metadata.namespace,
      metadata.name,
      consumerRef?.name ?? "-",
      provisioningState ?? "-",
      poweredOn === undefined ? "-" : poweredOn ? "On" : "Off",
      owner === undefined ? "-" : `${owner.namespace}/${owner.name}`,
      refusal?.reason ?? (maintenance === undefined ? "" : "Maintenance"),
      refusal?.message ?? maintenance ?? "",
    ];
  });
  const header = ["NAMESPACE", "NAME", "CONSUMER", "STATE", "POWER", "OWNER", "REASON", "MESSAGE"];
  return ["BareMetalHost:", ...renderTable(header, rows), ""];
}
