import { applyObject, readManifests } from "../lib/apply.ts";
import type { Manifest } from "../lib/apply.ts";
import { BMC_PASSWORD, BMC_USERNAME } from "./sushy-emulator.ts";
import { repositoryPath } from "./world.ts";
import type { World } from "./world.ts";

// Applies the files of examples/ as users do. Only names, addresses, accounts and waiting times are replaced.

/** Placeholders in the example, with the values that replace them. */
type Substitutions = Readonly<Record<string, string>>;

function substitute(manifest: Manifest, substitutions: Substitutions): Manifest {
  let text = JSON.stringify(manifest);
  for (const [from, to] of Object.entries(substitutions)) text = text.replaceAll(from, to);
  return JSON.parse(text) as Manifest;
}

/** The account of the device and its certificate authority; the right ones by default. */
export interface TargetOverrides {
  password?: string;
  /** Another namespace than that of the example. */
  namespace?: string;
  /** Changes the FencingTarget of the example after the substitutions. */
  change?: (target: Manifest) => Manifest;
}

/** Applies examples/fencing-target.yaml for one host of the world. */
export async function applyFencingTarget(world: World, node: string, overrides: TargetOverrides = {}): Promise<void> {
  const { url, caPem } = world.bmc;
  const secrets: Record<string, Record<string, string>> = {
    [`${node}-bmc`]: { username: BMC_USERNAME, password: overrides.password ?? BMC_PASSWORD },
    "bmc-ca": { "ca.crt": caPem },
  };
  const address = `${url.replace("https:", "redfish:")}/redfish/v1/Systems/${world.host(node).systemUuid}`;
  const manifests = await readManifests(repositoryPath("examples/fencing-target.yaml"));
  for (const example of manifests) {
    const manifest = substitute(example, {
      "worker-1": node,
      "redfish://bmc-1.example/redfish/v1/Systems/1": address,
      "redfish://bmc-1.example": url,
    });
    if (manifest.kind === "Secret") manifest["stringData"] = secrets[manifest.metadata.name];
    const { namespace } = overrides;
    if (namespace !== undefined) manifest.metadata.namespace = namespace;
    const changed = manifest.kind === "FencingTarget" ? overrides.change?.(manifest) : undefined;
    await applyObject(world.api, changed ?? manifest);
  }
}

/** Which of the examples of NodeHealthChecks a test uses. */
export type HealthCheckExample = "node-health-check" | "node-health-check-with-reprovision";

/** Applies an example of a NodeHealthCheck whose conditions have a duration of one second. */
export async function applyHealthCheck(
  world: World,
  change: (manifest: Manifest) => Manifest = (same) => same,
  file: HealthCheckExample = "node-health-check",
): Promise<void> {
  const values = { '"duration":"300s"': '"duration":"1s"', "CHANGE-ME": "NetworkBoot" };
  for (const example of await readManifests(repositoryPath(`examples/${file}.yaml`))) {
    await applyObject(world.api, change(substitute(example, values)));
  }
}
