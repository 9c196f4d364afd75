import { METAL3_GROUP, METAL3_VERSIONS, readBareMetalHost } from "../../../api/metal3/metal3.ts";
import { storedOwner } from "../../../remediator/hosts/bare-metal-host/store/host-annotations.ts";
import { maintenanceOf, powerOffRefusal } from "../../../remediator/hosts/bare-metal-host/store/power-path.ts";
import type { ListResult } from "./foreign.ts";
import { renderForeign } from "./foreign.ts";

export const HOST_KIND = { group: METAL3_GROUP, kind: "BareMetalHost", versions: METAL3_VERSIONS };

const HEADER = ["NAMESPACE", "NAME", "CONSUMER", "STATE", "POWER", "OWNER", "REASON", "MESSAGE"];

/**
 * A section of `ironfence status`: the owner of each host, and what keeps it from being fenced. Empty if there is none.
 */
export function renderHosts(hosts: ListResult): string[] {
  return renderForeign("BareMetalHost", hosts, HEADER, (raw) => {
    const host = readBareMetalHost(raw);
    const { metadata, consumerRef, poweredOn, provisioningState } = host;
    const refusal = powerOffRefusal(host);
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
