import { METAL3_GROUP, METAL3_VERSIONS, readBareMetalHost } from "../api/metal3.ts";
import { storedOwner } from "../remediator/hosts/bare-metal-host/host-store.ts";
import { maintenanceOf, refusalOf } from "../remediator/hosts/bare-metal-host/power-path.ts";
import type { Listed } from "./status-foreign.ts";
import { renderForeign } from "./status-foreign.ts";

export const HOST_KIND = { group: METAL3_GROUP, kind: "BareMetalHost", versions: METAL3_VERSIONS };

const HEADER = ["NAMESPACE", "NAME", "CONSUMER", "STATE", "POWER", "OWNER", "REASON", "MESSAGE"];

/** A section of `ironfence status`: who has each host, and what keeps it from being fenced as it is. Empty where there is none. */
export function renderHosts(hosts: Listed): string[] {
  return renderForeign("BareMetalHost", hosts, HEADER, (raw) => {
    const host = readBareMetalHost(raw);
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
}
