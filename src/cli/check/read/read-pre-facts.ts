import { FENCING_TARGETS } from "../../../api/ironfence/fencing-target.ts";
import type { FencingTarget } from "../../../api/ironfence/fencing-target.ts";
import { readBareMetalHost } from "../../../api/metal3/metal3.ts";
import { NODE_HEALTH_CHECKS } from "../../../api/ironfence/node-health-check.ts";
import { parseBmcAddress } from "../../../bmc/interface/address.ts";
import { reachDevice } from "../../../bmc/devices/reach-device.ts";
import type { SnmpConfig, TlsVersion } from "../../../bmc/interface/device-config.ts";
import type { BmcAddress } from "../../../bmc/interface/address.ts";
import { FAMILIES } from "../../../config/parsers.ts";
import { findObject } from "../../../kube/objects/find-object.ts";
import { reviewPermissions } from "../../../kube/reviews/permission-review.ts";
import type { KubeRuntime } from "../../../kube/runtime.ts";
import { hostText } from "../../../remediator/hosts/bare-metal-host/store/power-path.ts";
import { withDeadline } from "../../../runtime/deadline.ts";
import { inParallel } from "../../../runtime/in-parallel.ts";
import { listKind } from "../../status/objects/foreign.ts";
import { HOST_KIND } from "../../status/objects/hosts.ts";
import { readFamilyKinds } from "../../cluster/unread-versions.ts";
import { CRDS, crdName } from "./custom-resources.ts";
import type { Fact, PortFinding, PreFacts } from "../facts.ts";
import { isUnread } from "../facts.ts";
import { installerPermissions } from "./permissions.ts";
import type { ReadDeps } from "./read-facts.ts";
import { factOf, listAll, POLICIES, readApi } from "./read-facts.ts";

/** The deadline of all reads of the cluster together. Connections to BMCs have deadlines of their own. */
const READ_TIMEOUT_MS = 60_000;
const REACH_TIMEOUT_MS = 5_000;
const DEVICES_AT_ONCE_MAX = 32;

/**
 * Reads what `--pre` needs, once.
 *
 * @param named addresses of BMCs that the user named. The objects in the cluster need not name them.
 * @throws KubeError, DeadlineError if the API server does not answer.
 */
export async function readPreFacts(
  deps: ReadDeps,
  named: readonly BmcAddress[],
  signal: AbortSignal,
): Promise<PreFacts> {
  const { runtime } = deps;
  const facts = await withDeadline(runtime.clock, "reading the cluster", READ_TIMEOUT_MS, signal, (within) =>
    readCluster(deps, within),
  );
  const { devices, ...rest } = facts;
  const known = isUnread(devices) ? [] : devices;
  const ports = await tryPorts(runtime, [...named.map(({ text }) => ({ address: text })), ...known], signal);
  return { ...rest, ports, portsUnread: isUnread(devices) ? devices.unread : undefined };
}

interface DeviceAddress extends Pick<PortFinding, "owner" | "address"> {
  minVersion?: TlsVersion | undefined;
  snmpVersion?: SnmpConfig["version"];
}
type WithDevices = Omit<PreFacts, "ports" | "portsUnread"> & { devices: Fact<DeviceAddress[]> };

async function readCluster(deps: ReadDeps, signal: AbortSignal): Promise<WithDevices> {
  const { client } = deps.runtime;
  const { group, version, kind } = POLICIES;
  const wanted = installerPermissions(deps.options.namespace);
  const [policies, familyKinds, healthCheckCrd, permissions, devices] = await Promise.all([
    client.discover(`${group}/${version}`, kind, signal),
    readFamilyKinds({ client }, FAMILIES, signal),
    factOf(() => findObject(client, CRDS, { name: crdName(NODE_HEALTH_CHECKS) }, signal)),
    factOf(() => reviewPermissions(client, "self", wanted, signal)),
    factOf(() => listDevices(deps, signal)),
  ]);
  const api = await readApi(deps, signal);
  return { ...api, servesAdmissionPolicies: policies !== undefined, familyKinds, healthCheckCrd, permissions, devices };
}

async function listDevices(
  { runtime, options: { namespace } }: ReadDeps,
  signal: AbortSignal,
): Promise<DeviceAddress[]> {
  const { client } = runtime;
  const targets = await listAll<FencingTarget>(client, FENCING_TARGETS, { namespace }, signal);
  const hosts = (await listKind(client, HOST_KIND, signal)) ?? [];
  return [
    ...targets.flatMap(({ metadata, spec }) =>
      spec.devices.map(({ address, tls, snmp }) => ({
        owner: `FencingTarget ${namespace}/${metadata.name}`,
        address,
        minVersion: tls?.minVersion,
        snmpVersion: snmp?.version,
      })),
    ),
    ...hosts.map(readBareMetalHost).flatMap((host) => {
      const { address } = host.bmc;
      return address === undefined ? [] : [{ owner: hostText(host), address }];
    }),
  ];
}

function tryPorts(
  { clock }: KubeRuntime,
  devices: readonly DeviceAddress[],
  signal: AbortSignal,
): Promise<PortFinding[]> {
  return inParallel(
    devices,
    DEVICES_AT_ONCE_MAX,
    async ({ minVersion, snmpVersion, ...device }): Promise<PortFinding> => {
      let address: BmcAddress;
      try {
        address = parseBmcAddress(device.address);
      } catch (error) {
        return { ...device, reach: { state: "invalid", why: error instanceof Error ? error.message : "not valid" } };
      }
      const reach = await reachDevice(address, { clock, timeoutMs: REACH_TIMEOUT_MS, minVersion, snmpVersion }, signal);
      return { ...device, reach };
    },
  );
}
