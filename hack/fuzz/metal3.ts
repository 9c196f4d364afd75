import { must } from "./target.ts";
import type { FuzzTarget } from "./target.ts";
import { readBareMetalHost, readMetal3Machine } from "../../src/api/metal3/metal3.ts";
import { readMetal3Remediation } from "../../src/api/metal3/metal3-remediation.ts";
import type { KubeObject } from "../../src/kube/resource.ts";
import {
  maintenanceOf,
  powerPathOf,
  powerOffRefusal,
} from "../../src/remediator/hosts/bare-metal-host/store/power-path.ts";

// Fuzzes objects of Metal3. Their CRDs come from another project, and an administrator may install any schema, so only
// the metadata is reliable.

const METADATA = { namespace: "metal3", name: "h1", uid: "uid-h1", resourceVersion: "1" };

/** An object whose spec and status are arbitrary JSON. */
function objectOf(input: Buffer): KubeObject {
  const { spec, status } = Object(JSON.parse(input.toString("utf8"))) as { spec?: unknown; status?: unknown };
  return { apiVersion: "metal3.io/v1alpha1", kind: "BareMetalHost", metadata: METADATA, spec, status } as KubeObject;
}

const seedOf = (...objects: object[]): Buffer[] => objects.map((object) => Buffer.from(JSON.stringify(object)));
const isText = (value: unknown): boolean => value === undefined || typeof value === "string";

const hosts: FuzzTarget = {
  name: "BareMetalHost",
  refusal: SyntaxError,
  seeds: seedOf(
    {
      spec: {
        online: true,
        bmc: { address: "redfish://h1/1", credentialsName: "bmc", disableCertificateVerification: true },
        consumerRef: { apiVersion: "a/v1", kind: "Metal3Machine", namespace: "metal3", name: "m1" },
        externallyProvisioned: false,
        disablePowerOff: false,
      },
      status: {
        poweredOn: true,
        operationalStatus: "OK",
        errorType: "",
        errorMessage: "",
        lastUpdated: "2026-01-01T00:00:00Z",
        provisioning: { state: "provisioned" },
        hardware: { systemVendor: { serialNumber: "S1" } },
        conditions: [{ type: "Ready", status: "True", reason: "a", message: "b", lastTransitionTime: "c" }],
      },
    },
    { spec: { online: "yes", bmc: null, consumerRef: [] }, status: { provisioning: 7, conditions: {} } },
  ),
  run: (input) => {
    const host = readBareMetalHost(objectOf(input));
    must(typeof host.online === "boolean" && typeof host.disablePowerOff === "boolean", "switches are switches");
    must(isText(host.bmc.address) && isText(host.bmc.credentialsName), "address and Secret are texts");
    must(host.consumerRef === undefined || typeof host.consumerRef.name === "string", "a consumer has a name");
    must(host.poweredOn === undefined || typeof host.poweredOn === "boolean", "power is known or unknown");
    must(Array.isArray(host.conditions), "conditions are a list");
    must(powerOffRefusal(host) === undefined || powerOffRefusal(host) instanceof Error, "a host is refused or not");
    must(powerPathOf(host) !== "Direct", "a host without the annotation is its operator's");
    must(maintenanceOf(host) === undefined, "it is not paused");
  },
};

const machines: FuzzTarget = {
  name: "Metal3Machine",
  refusal: SyntaxError,
  seeds: seedOf({ spec: { providerID: "metal3://uid-h1" } }, { spec: { providerID: { a: 1 } } }),
  run: (input) => {
    const machine = readMetal3Machine(objectOf(input));
    must(isText(machine.providerID) && machine.host === undefined, "what it names is a text, or nothing");
  },
};

const remediations: FuzzTarget = {
  name: "Metal3Remediation",
  refusal: SyntaxError,
  seeds: seedOf(
    {
      spec: { strategy: { type: "Reboot", retryLimit: 2, timeout: "5m" } },
      status: { phase: "Running", retryCount: 1 },
    },
    { spec: { strategy: { type: 7, retryLimit: -1, timeout: {} } }, status: [] },
    { spec: null },
  ),
  run: (input) => {
    const { metadata } = readMetal3Remediation(objectOf(input));
    must(metadata.uid === METADATA.uid, "it is the object that was read");
  },
};

export const METAL3_TARGETS: readonly FuzzTarget[] = [hosts, machines, remediations];
