import { ALLOW_PROVIDER_ID } from "../../src/api/names/annotations.ts";
import { PROVISIONED_STATUS } from "../rack/bare-metal-host-status.ts";
import type { KubeApi } from "../lib/kube-api.ts";
import type { SimulatedHosts } from "./simulated-hosts.ts";

/** Delays of the simulated BareMetalHost operator. They are shorter than those of the real one. */
export const OPERATOR = {
  lookMs: 300,
  reconcileMs: 10_000,
  orderDelayMs: 300,
  mirrorDelayMs: 1_000,
  deprovisionMs: 1_000,
};
/** The name of the Secret in each namespace with BareMetalHosts. */
const CREDENTIALS = "bmc";

/** Creates the Secret with the account of the BMCs in a namespace with BareMetalHosts. */
export async function createCredentials(api: KubeApi, namespace: string, { login }: SimulatedHosts): Promise<void> {
  await api.create(`/api/v1/namespaces/${namespace}/secrets`, {
    apiVersion: "v1",
    kind: "Secret",
    // Metal3's operator puts this label on the Secrets that it uses.
    metadata: { name: CREDENTIALS, labels: { "environment.metal3.io": "baremetal" } },
    stringData: login,
  });
}

/** The image that is installed on hosts. */
export const IMAGE = { url: "http://image.example/os.raw" };

/** The consumer of a host. */
export interface ConsumerRef {
  apiVersion: string;
  kind: string;
  namespace: string;
  name: string;
}

/** A BareMetalHost that is to be created. Its name is that of its host in the rack. */
export interface BareMetalHostSpec {
  name: string;
  /** Available hosts are off, and nothing is installed on them. */
  state?: "provisioned" | "externally provisioned" | "available";
  consumerRef?: ConsumerRef;
}

/** Gives an available host to a consumer, as the consumer's provider does. Metal3's operator then installs the host. */
export async function giveHost(api: KubeApi, namespace: string, name: string, consumerRef: ConsumerRef): Promise<void> {
  await api.mergePatch(pathOf(namespace, name), { spec: { image: IMAGE, online: true, consumerRef } });
}

/** Deprovisions a host, and removes its consumer when that is done. Call it until it returns true. */
export async function takeHostBack(api: KubeApi, namespace: string, name: string): Promise<boolean> {
  const path = pathOf(namespace, name);
  const { status } = await api.get<{ status: { provisioning: { state: string } } }>(path);
  const isBack = status.provisioning.state === "available";
  await api.mergePatch(path, { spec: { image: null, online: false, ...(isBack && { consumerRef: null }) } });
  return isBack;
}

function pathOf(namespace: string, name: string): string {
  return `/apis/metal3.io/v1alpha1/namespaces/${namespace}/baremetalhosts/${name}`;
}

/** Creates the BareMetalHost of a host in the rack, in the state in which Metal3's operator would have left it. */
export async function createBareMetalHost(
  api: KubeApi,
  namespace: string,
  hosts: SimulatedHosts,
  { name, state = "provisioned", consumerRef }: BareMetalHostSpec,
): Promise<void> {
  const path = `/apis/metal3.io/v1alpha1/namespaces/${namespace}/baremetalhosts`;
  const isOn = state !== "available";
  await api.create(path, {
    apiVersion: "metal3.io/v1alpha1",
    kind: "BareMetalHost",
    // This annotation allows a Node to refer to a host without a consumer by its providerID.
    metadata: { name, ...(consumerRef === undefined && { annotations: { [ALLOW_PROVIDER_ID]: "true" } }) },
    spec: {
      online: isOn,
      bmc: { address: hosts.address(name), credentialsName: CREDENTIALS },
      ...(state === "provisioned" && { image: IMAGE }),
      ...(state === "externally provisioned" && { externallyProvisioned: true }),
      ...(consumerRef && { consumerRef }),
    },
  });
  await api.mergePatch(`${path}/${name}/status`, {
    status: {
      ...PROVISIONED_STATUS,
      poweredOn: isOn,
      provisioning: { ...PROVISIONED_STATUS.provisioning, state },
      lastUpdated: "2026-01-01T00:00:00Z",
      hardware: { systemVendor: { serialNumber: hosts.rack.host(name).spec.serialNumber } },
    },
  });
}
