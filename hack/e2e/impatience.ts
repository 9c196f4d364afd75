import { applyObject } from "../lib/apply.ts";
import type { KubeApi } from "../lib/kube-api.ts";

/** Durations of a BareMetalRemediation's strategy, with what they become. */
export type ShorterTimes = Readonly<Partial<Record<"timeout" | "powerOffTimeout", string>>>;

/**
 * Has the API server shorten what new BareMetalRemediations wait for, where what asks for them cannot say it, or not so
 * short.
 *
 * @param which the start of their names: all by default.
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
