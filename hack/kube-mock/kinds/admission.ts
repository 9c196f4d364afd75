import type { ServedResource } from "../resource.ts";
import { define } from "./define.ts";

/** Policies are stored but not enforced. */
function policy(kind: string, plural: string): ServedResource {
  return define({
    group: "admissionregistration.k8s.io",
    kind,
    plural,
    namespaced: false,
    shortNames: [],
    hasStatus: kind === "ValidatingAdmissionPolicy",
    strategy: {},
  });
}

/** admissionregistration.k8s.io/v1 */
export const ADMISSION_POLICIES = policy("ValidatingAdmissionPolicy", "validatingadmissionpolicies");
export const ADMISSION_POLICY_BINDINGS = policy(
  "ValidatingAdmissionPolicyBinding",
  "validatingadmissionpolicybindings",
);
