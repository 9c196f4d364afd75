import type { Enrolment, FencingTarget } from "../../src/api/ironfence/fencing-target.ts";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
import type { OutletIdentity } from "../../src/bmc/interface/driver.ts";
import { enrolledSpecDigest } from "../../src/remediator/hosts/model/enrolment.ts";
import type { Outlet } from "./pdus.ts";
import type { Cluster } from "./cluster.ts";
import { NAMESPACE } from "./cluster.ts";

// Hosts whose targets have outlets of a PDU in addition to their BMC.

export const OUTLETS = ["snmp://pdu-1/1", "snmp://pdu-1/2"] as const;

export const QUICK = {
  retryLimit: 0,
  powerOffTimeout: "60s",
  powerOnTimeout: "30s",
  drainTimeout: "20s",
  timeout: "60s",
};

const key = (name: string) => ({ namespace: NAMESPACE, name });

/** Adds outlets that feed a host to its target. */
export function giveOutlets(
  world: Cluster,
  host: string,
  {
    addresses = OUTLETS,
    level = 2,
    call = "15s",
    identity = {},
  }: { addresses?: readonly string[]; level?: number; call?: string; identity?: Partial<OutletIdentity> } = {},
): Outlet[] {
  const credentialsSecretRef = { name: "bmc" };
  const address = world.target(host)?.spec.devices[0]?.address ?? `redfish://${host}`;
  const bmc = { address, credentialsSecretRef, timeouts: { call } };
  const outlets = addresses.map((address) => ({ address, level, credentialsSecretRef }));
  world.server
    .collection<FencingTarget>(FENCING_TARGETS)
    .mergePatch(key(host), { spec: { devices: [bmc, ...outlets] } });
  return addresses.map((address) => world.devices.pdus.plug(address, [host], identity));
}

/** Stores or removes the enrolment of the target's present outlets, as `ironfence enroll` does. */
export function storeEnrolment(world: Cluster, host: string, change: Partial<Enrolment> | null = {}): void {
  const target = world.target(host);
  if (target === undefined) throw new Error(`no target ${host}`);
  const node = world.node(host);
  const addresses = target.spec.devices.map(({ address }) => address).filter((address) => address.startsWith("snmp:"));
  const enrolment: Enrolment = {
    time: "2026-01-01T00:00:00Z",
    nodeName: host,
    nodeUID: node?.metadata.uid ?? "",
    systemUUID: world.rack.host(host).spec.systemUUID,
    bootIDBefore: "before",
    bootIDAfter: node?.status.nodeInfo?.bootID ?? "",
    specDigest: enrolledSpecDigest(target),
    outlets: addresses.map((address) => {
      const { pdu, outlet, label, metered } = world.devices.pdus.outlet(address);
      const isMetered = metered !== undefined && { metered };
      return { address, pdu, outlet, ...(label !== undefined && { label }), ...isMetered };
    }),
  };
  world.server
    .collection<FencingTarget>(FENCING_TARGETS)
    .mergePatch(key(host), { status: { enrolment: change === null ? null : { ...enrolment, ...change } } }, "status");
}
