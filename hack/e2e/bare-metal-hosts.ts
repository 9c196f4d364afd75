import { ALLOW_PROVIDER_ID } from "../../src/api/names/annotations.ts";
import { PROVISIONED_STATUS } from "../rack/bare-metal-host-status.ts";
import type { KubeApi } from "../lib/kube-api.ts";
import type { SimulatedHosts } from "./simulated-hosts.ts";

/** Delays of the BareMetalHost operator, shorter than a real one's. */
export const OPERATOR = {
  lookMs: 300,
  reconcileMs: 10_000,
  orderDelayMs: 300,
  mirrorDelayMs: 1_000,
  deprovisionMs: 1_000,
};
/** In each namespace with BareMetalHosts. */
const CREDENTIALS = "bmc";

/** Makes the Secret of the BMCs' account in a namespace of BareMetalHosts. */
export async function createCredentials(api: KubeApi, namespace: string, { login }: SimulatedHosts): Promise<void> {
  await api.create(`/api/v1/namespaces/${namespace}/secrets`, {
    apiVersion: "v1",
    kind: "Secret",
    // As its operator labels the Secrets that it uses.
    metadata: { name: CREDENTIALS, labels: { "environment.metal3.io": "baremetal" } },
    stringData: login,
  });
}

/** What is installed on hosts. */
export const IMAGE = { url: "http://image.example/os.raw" };

/** Who uses a host. */
export interface ConsumerRef {
  apiVersion: string;
  kind: string;
  namespace: string;
  name: string;
}

/** A BareMetalHost to be made; it has the name of its host of the rack. */
export interface BareMetalHostSpec {
  name: string;
  /** Available ones are off, and nothing is installed on them. */
  state?: "provisioned" | "externally provisioned" | "available";
  consumerRef?: ConsumerRef;
}

/** Gives an available host to a consumer, as the consumer's provider does: its operator installs it. */
export async function giveHost(api: KubeApi, namespace: string, name: string, consumerRef: ConsumerRef): Promise<void> {
  await api.mergePatch(pathOf(namespace, name), { spec: { image: IMAGE, online: true, consumerRef } });
}

/** Takes a host back from its consumer, which begins with its deprovisioning. @returns whether that is done. */
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

/** Makes the BareMetalHost of a host of the rack, as its operator would have left it. */
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
    // Its owner allows that a Node's providerID leads to a host without a consumer.
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
