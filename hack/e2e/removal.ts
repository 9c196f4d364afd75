import type { Manifest } from "../lib/apply.ts";
import { findPath } from "../lib/apply.ts";
import { ApiStatusError } from "../lib/kube-api.ts";
import type { KubeApi } from "../lib/kube-api.ts";
import { eventually } from "./eventually.ts";
import { NAMESPACE } from "./world.ts";

// Deletions that the API server may refuse.

/** The policies that prevent the deletion of what a running fence needs. */
export const IN_USE_BINDINGS = ["ironfence-in-use", "ironfence-fencingtarget-in-use"];
const BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";
const POLICY_TIMEOUT_MS = 60_000;

/** Deletes one object. @returns why the API server refused; undefined if it did not, or if there is no such object. */
export async function tryDelete(api: KubeApi, path: string): Promise<string | undefined> {
  try {
    await api.delete(path);
    return undefined;
  } catch (error) {
    if (!(error instanceof ApiStatusError)) throw error;
    if (error.status === 404) return undefined;
    if (error.status !== 403) throw error;
    return (JSON.parse(error.body) as { message: string }).message;
  }
}

/**
 * Requests each deletion in order, as `kubectl delete --wait=false` does. @returns the reasons of refusals, by path.
 */
export async function tryDeleteAll(api: KubeApi, manifests: readonly Manifest[]): Promise<Map<string, string>> {
  const refusals = new Map<string, string>();
  const paths = await Promise.all(manifests.map((manifest) => findPath(api, manifest)));
  for (const path of paths.filter((found) => found !== undefined)) {
    const refusal = await tryDelete(api, path);
    if (refusal !== undefined) refusals.set(path, refusal);
  }
  return refusals;
}

/**
 * Waits until the API server refuses to delete the namespace of the agent because of a remediation in `phase`: it
 * evaluates the policy on its own watch of the remediations, which may show an earlier phase for a moment.
 */
export async function untilRefused(api: KubeApi, phase: string): Promise<void> {
  await eventually(`the API server refuses what a remediation in ${phase} needs`, POLICY_TIMEOUT_MS, async () => {
    const refusal = await tryDelete(api, `/api/v1/namespaces/${NAMESPACE}?dryRun=All`);
    return refusal?.includes(`(${phase})`) === true;
  });
}

/** Disables the policies, as a user does who removes ironfence in spite of them. */
export async function overridePolicies(api: KubeApi): Promise<void> {
  for (const name of IN_USE_BINDINGS) await api.delete(`${BINDINGS}/${name}`);
  await eventually("the API server allows the deletion", POLICY_TIMEOUT_MS, async () => {
    return (await tryDelete(api, `/api/v1/namespaces/${NAMESPACE}?dryRun=All`)) === undefined;
  });
}
