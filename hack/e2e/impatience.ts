import { applyObject } from "../lib/apply.ts";
import type { KubeApi } from "../lib/kube-api.ts";

/** New values for durations in the strategy of a BareMetalRemediation. */
export type ShorterTimes = Readonly<Partial<Record<"timeout" | "powerOffTimeout", string>>>;

/**
 * Lets the API server shorten durations of new BareMetalRemediations, for requests that cannot set them, or not so
 * short.
 *
 * @param which the start of the names of the remediations; by default, all are shortened.
 */
export async function shortenTimes(api: KubeApi, times: ShorterTimes, which = ""): Promise<void> {
  const apiVersion = "admissionregistration.k8s.io/v1";
  const metadata = { name: "impatient" };
  const rule = {
    apiGroups: ["ironfence.io"],
    apiVersions: ["v1alpha1"],
    resources: ["baremetalremediations"],
    operations: ["CREATE"],
  };
  const changes = Object.entries(times).map(
    ([field, value]) => `JSONPatch{op: "replace", path: "/spec/strategy/${field}", value: "${value}"}`,
  );
  await applyObject(api, {
    apiVersion,
    kind: "MutatingAdmissionPolicy",
    metadata,
    spec: {
      failurePolicy: "Fail",
      reinvocationPolicy: "Never",
      matchConstraints: { resourceRules: [rule] },
      matchConditions: [{ name: "which", expression: `object.metadata.name.startsWith('${which}')` }],
      mutations: [{ patchType: "JSONPatch", jsonPatch: { expression: `[${changes.join(", ")}]` } }],
    },
  });
  const binding = { policyName: metadata.name };
  await applyObject(api, { apiVersion, kind: "MutatingAdmissionPolicyBinding", metadata, spec: binding });
}
