import { at, subjectsOf, labelOf } from "./rendered.ts";
import type { Case, Rendered } from "./rendered.ts";

// Cases for chart values of the installed objects and their permissions.

const USER = { kind: "User", apiGroup: "rbac.authorization.k8s.io", name: "ann" };
const crdsOf = (rendered: Rendered): string[] => rendered.names("CustomResourceDefinition").toSorted();
const OWN_KINDS = ["baremetalremediations", "baremetalremediationtemplates", "fencingtargets"].map(
  (plural) => `${plural}.ironfence.io`,
);
const HEALTH_CHECKS = "nodehealthchecks.remediation.medik8s.io";
const KEEP = "helm.sh/resource-policy";

const IMAGE: Readonly<Record<string, Case>> = {
  "image.repository": {
    set: { image: { repository: "registry.example/ironfence" } },
    read: (rendered) => rendered.container("image"),
    before: "ironfence:0.2.0",
    after: "registry.example/ironfence:0.2.0",
  },
  "image.tag": {
    set: { image: { tag: "next" } },
    read: (rendered) => [
      rendered.container("image"),
      rendered.field("Pod", "ironfence-check", "spec.containers.0.image"),
    ],
    before: ["ironfence:0.2.0", "ironfence:0.2.0"],
    after: ["ironfence:next", "ironfence:next"],
  },
  "image.digest": {
    set: { image: { tag: "next", digest: `sha256:${"a".repeat(64)}` } },
    read: (rendered) => rendered.container("image"),
    before: "ironfence:0.2.0",
    after: `ironfence@sha256:${"a".repeat(64)}`,
  },
  "image.pullPolicy": {
    set: { image: { pullPolicy: "Always" } },
    read: (rendered) => rendered.container("imagePullPolicy"),
    before: "IfNotPresent",
    after: "Always",
  },
  "image.pullSecrets": {
    set: { image: { pullSecrets: [{ name: "registry" }] } },
    read: (rendered) => [
      rendered.pod("imagePullSecrets"),
      rendered.field("Pod", "ironfence-check", "spec.imagePullSecrets"),
    ],
    before: [undefined, undefined],
    after: [[{ name: "registry" }], [{ name: "registry" }]],
  },
};

const GENERAL: Readonly<Record<string, Case>> = {
  replicas: {
    set: { replicas: 3 },
    read: (rendered) => rendered.deployment("replicas"),
    before: 2,
    after: 3,
  },
  families: {
    set: { families: ["node-health-check", "bare-metal-host"] },
    read: (rendered) => [
      rendered.option("families"),
      rendered.names("ClusterRole").includes("ironfence-bare-metal-host"),
    ],
    before: ["node-health-check", false],
    after: ["node-health-check,bare-metal-host", true],
  },
  observe: {
    set: { observe: true },
    read: (rendered) => [
      rendered.option("observe"),
      rendered.names("Lease"),
      JSON.stringify(rendered.find("ClusterRole", "ironfence-agent")?.["rules"]).includes('"delete"'),
      rendered.names("Pod"),
    ],
    before: [undefined, ["ironfence-detector", "ironfence-remediator"], true, ["ironfence-check"]],
    after: ["true", [], false, []],
  },
  reprovision: {
    set: { reprovision: true },
    read: (rendered) => rendered.names("ClusterRoleBinding").includes("ironfence-reprovision"),
    before: false,
    after: true,
  },
  okd: {
    set: { okd: true },
    read: (rendered) => rendered.names("ClusterRoleBinding").includes("ironfence-okd"),
    before: false,
    after: true,
  },
  bareMetalHostNamespaces: {
    set: { families: ["bare-metal-host"], bareMetalHostNamespaces: ["metal3"] },
    read: (rendered) => {
      const binding = rendered.find("RoleBinding", "ironfence-bmc-credentials", "metal3");
      const inUse = rendered.find("ValidatingAdmissionPolicyBinding", "ironfence-in-use-metal3");
      return [at(binding, "roleRef.name"), subjectsOf(binding), at(inUse, "spec.paramRef.namespace")];
    },
    before: [undefined, undefined, undefined],
    after: [
      "ironfence-bmc-credentials",
      [{ kind: "ServiceAccount", name: "ironfence", namespace: "ironfence-system" }],
      "metal3",
    ],
  },
  workloadClusterNamespaces: {
    set: { families: ["machine-health-check"], workloadClusterNamespaces: ["caps", "more"] },
    read: (rendered) =>
      ["caps", "more"].map((namespace) =>
        at(rendered.find("RoleBinding", "ironfence-workload-kubeconfigs", namespace), "roleRef.name"),
      ),
    before: [undefined, undefined],
    after: ["ironfence-workload-kubeconfigs", "ironfence-workload-kubeconfigs"],
  },
  commonLabels: {
    set: { commonLabels: { team: "storage" } },
    read: (rendered) => {
      const without = rendered.objects.filter((object) => labelOf(object, "team") !== "storage");
      return without.length === rendered.objects.length ? "none has it" : without.map(({ kind }) => kind);
    },
    before: "none has it",
    // The namespace is shared with other tools.
    after: ["Namespace"],
  },
  extraObjects: {
    set: {
      extraObjects: [
        { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "as-object" }, data: { kept: "{{ .x }}" } },
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: as-text, namespace: {{ .Release.Namespace }}}",
      ],
    },
    read: (rendered) => [
      rendered.field("ConfigMap", "as-object", "data.kept"),
      rendered.field("ConfigMap", "as-text", "metadata.namespace"),
    ],
    before: [undefined, undefined],
    after: ["{{ .x }}", "ironfence-system"],
  },
};

const KINDS: Readonly<Record<string, Case>> = {
  "crds.install": {
    set: { crds: { install: false } },
    read: crdsOf,
    before: [...OWN_KINDS, HEALTH_CHECKS],
    after: [HEALTH_CHECKS],
  },
  "crds.keep": {
    set: { crds: { keep: false } },
    read: (rendered) =>
      rendered.objects
        .filter(({ metadata }) => KEEP in Object(metadata["annotations"]))
        .map(({ metadata }) => metadata.name)
        .toSorted(),
    before: [...OWN_KINDS, "medik8s-leases", HEALTH_CHECKS],
    // Objects that other projects share are always kept.
    after: ["medik8s-leases", HEALTH_CHECKS],
  },
  "crds.nodeHealthCheck": {
    set: { crds: { nodeHealthCheck: false } },
    read: crdsOf,
    before: [...OWN_KINDS, HEALTH_CHECKS],
    after: OWN_KINDS,
  },
  "leaseNamespace.name": {
    set: { leaseNamespace: { name: "maintenance" } },
    read: (rendered) => [
      rendered.names("Namespace"),
      rendered.option("node-lease-namespace"),
      rendered.field("Pod", "ironfence-check", "spec.containers.0.args"),
      rendered.find("Role", "ironfence-agent", "maintenance") !== undefined,
      rendered.find("RoleBinding", "ironfence-agent", "maintenance") !== undefined,
    ],
    before: [["medik8s-leases"], undefined, ["check", "--wait=5m"], false, false],
    after: [["maintenance"], "maintenance", ["check", "--wait=5m", "--node-lease-namespace=maintenance"], true, true],
  },
  "leaseNamespace.create": {
    set: { leaseNamespace: { create: false } },
    read: (rendered) => rendered.names("Namespace"),
    before: ["medik8s-leases"],
    after: [],
  },
};

const RIGHTS: Readonly<Record<string, Case>> = {
  "serviceAccount.annotations": {
    set: { serviceAccount: { annotations: { "example.com/role": "x" } } },
    read: (rendered) => rendered.field("ServiceAccount", "ironfence", "metadata.annotations"),
    before: undefined,
    after: { "example.com/role": "x" },
  },
  "rbac.create": {
    set: { rbac: { create: false } },
    read: (rendered) => rendered.objects.filter(({ kind }) => /Role(Binding)?$/.test(kind)).length > 0,
    before: true,
    after: false,
  },
  "rbac.operators": {
    set: { rbac: { operators: [USER] } },
    read: (rendered) =>
      ["ClusterRoleBinding", "RoleBinding"].map((kind) => subjectsOf(rendered.find(kind, "ironfence-operators"))),
    before: [undefined, undefined],
    after: [[USER], [USER]],
  },
  "admissionPolicies.enabled": {
    set: { admissionPolicies: { enabled: false } },
    read: (rendered) => [
      rendered.names("ValidatingAdmissionPolicy").length,
      rendered.names("ValidatingAdmissionPolicyBinding").length,
      rendered.names("ConfigMap"),
    ],
    before: [8, 8, ["ironfence-uninstall"]],
    after: [0, 0, []],
  },
  "podDisruptionBudget.enabled": {
    set: { podDisruptionBudget: { enabled: false } },
    read: (rendered) => rendered.names("PodDisruptionBudget"),
    before: ["ironfence"],
    after: [],
  },
  "podDisruptionBudget.minAvailable": {
    set: { replicas: 3, podDisruptionBudget: { minAvailable: 2 } },
    read: (rendered) => rendered.field("PodDisruptionBudget", "ironfence", "spec.minAvailable"),
    before: 1,
    after: 2,
  },
};

export const INSTALL_CASES: Readonly<Record<string, Case>> = { ...IMAGE, ...GENERAL, ...KINDS, ...RIGHTS };
