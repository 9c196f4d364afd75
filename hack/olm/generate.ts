import { readdir, readFile } from "node:fs/promises";
import { parse, parseAllDocuments, stringify } from "yaml";
import { observingRoles } from "../chart/observe.ts";

// Generates the bundle of the Operator Lifecycle Manager (format registry+v1) from deploy/kustomize. It contains what
// OLM can install safely: the CRDs, the Deployment, and read permissions. The permissions to fence are in
// deploy/olm/administrator (docs/decisions/0061-olm-bundle.md).

const NAMESPACE = "ironfence-system";
const SERVICE_ACCOUNT = "ironfence";
/** OLM reads YAML 1.1, in which On, Off and similar words are booleans. With this version, they are quoted. */
const STYLE = { version: "1.1", lineWidth: 0, aliasDuplicateObjects: false } as const;
const HEADER = "# Generated from deploy by `npm run generate`; do not edit.\n";
const CRD_FOLDER = "crds";

interface Role {
  kind: string;
  metadata: { name: string; namespace?: string };
  rules?: object[];
}
interface Crd {
  metadata: { name: string };
  spec: {
    names: { kind: string };
    versions: { name: string; schema: { openAPIV3Schema: { description?: string } } }[];
  };
}

/** @param path function that returns the path of a file in this repository. */
export async function olmFiles(path: (name: string) => string): Promise<Map<string, string>> {
  const read = (name: string): Promise<string> => readFile(path(name), "utf8");
  const { version } = JSON.parse(await read("package.json")) as { version: string };
  const crdNames = (await readdir(path(`deploy/${CRD_FOLDER}`))).filter((name) => name.includes("_")).toSorted();
  const crds = await Promise.all(crdNames.map((name) => read(`deploy/${CRD_FOLDER}/${name}`)));
  const roles = parseAllDocuments(observingRoles(await read("deploy/kustomize/role-agent.yaml"))).map(
    (document) => document.toJS() as Role,
  );
  const [deployment] = parseAllDocuments(await read("deploy/kustomize/deployment.yaml")).map(
    (document) => document.toJS() as { metadata: { name: string; labels: object }; spec: object },
  );
  if (deployment === undefined) throw new Error("deploy/kustomize/deployment.yaml has no Deployment");
  const csv = clusterServiceVersion(version, {
    crds: crds.map((text) => parse(text) as Crd),
    examples: await examples(read),
    deployment,
    clusterRules: rulesOf(roles, "ClusterRole"),
    rules: rulesOf(roles, "Role", NAMESPACE),
  });
  return new Map([
    ["deploy/olm/manifests/ironfence.clusterserviceversion.yaml", HEADER + stringify(csv, STYLE)],
    ...crdNames.map((name, index) => [`deploy/olm/manifests/${name}`, crds[index] ?? ""] as const),
    ["deploy/olm/metadata/annotations.yaml", HEADER + stringify({ annotations: ANNOTATIONS }, STYLE)],
  ]);
}

/** https://olm.operatorframework.io/docs/tasks/creating-operator-bundle/ */
const ANNOTATIONS = {
  "operators.operatorframework.io.bundle.mediatype.v1": "registry+v1",
  "operators.operatorframework.io.bundle.manifests.v1": "manifests/",
  "operators.operatorframework.io.bundle.metadata.v1": "metadata/",
  "operators.operatorframework.io.bundle.package.v1": "ironfence",
  "operators.operatorframework.io.bundle.channels.v1": "candidate",
  "operators.operatorframework.io.bundle.channel.default.v1": "candidate",
};

const DESCRIPTION = `Powers hosts off by Redfish, IPMI, switched PDUs or a driver server when their nodes fail, proves that they are off,
releases their workloads, and powers them on again. It serves NodeHealthCheck as its detector, or remediates for Node Health Check.

**Before you install it**, a cluster administrator applies \`deploy/olm/administrator\` of the same version, and
\`deploy/node-health-check\` unless Node Health Check is installed. OLM cannot install what these hold: roles in other
namespaces, Leases, and the admission policies that narrow the permissions of the agent. Without them the agent has no
permission to fence and is not ready. Install it in the namespace \`ironfence-system\`.
`;

function clusterServiceVersion(
  version: string,
  parts: {
    crds: readonly Crd[];
    examples: readonly object[];
    deployment: { metadata: { name: string; labels: object }; spec: object };
    clusterRules: readonly object[];
    rules: readonly object[];
  },
): object {
  const permission = (rules: readonly object[]): object[] => [{ serviceAccountName: SERVICE_ACCOUNT, rules }];
  return {
    apiVersion: "operators.coreos.com/v1alpha1",
    kind: "ClusterServiceVersion",
    metadata: {
      name: `ironfence.v${version}`,
      namespace: "placeholder",
      annotations: {
        "alm-examples": JSON.stringify(parts.examples, undefined, 2),
        capabilities: "Basic Install",
        categories: "OpenShift Optional",
        containerImage: `ironfence:${version}`,
        description: "Power fencing and node health remediation for bare-metal Kubernetes.",
        "operatorframework.io/suggested-namespace": NAMESPACE,
      },
    },
    spec: {
      displayName: "ironfence",
      description: DESCRIPTION,
      version,
      maturity: "alpha",
      minKubeVersion: "1.30.0",
      keywords: ["fencing", "bare-metal", "remediation", "redfish", "ipmi"],
      provider: { name: "ironfence" },
      // With AllNamespaces, OLM extends permissions of a namespace to the cluster, so the agent could read every
      // Secret.
      installModes: ["OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"].map((type) => ({
        type,
        supported: type === "OwnNamespace",
      })),
      customresourcedefinitions: { owned: parts.crds.map(ownedKind) },
      install: {
        strategy: "deployment",
        spec: {
          clusterPermissions: permission(parts.clusterRules),
          permissions: permission(parts.rules),
          deployments: [
            {
              name: parts.deployment.metadata.name,
              label: parts.deployment.metadata.labels,
              spec: parts.deployment.spec,
            },
          ],
        },
      },
    },
  };
}

function ownedKind({ metadata, spec }: Crd): object {
  const [served] = spec.versions;
  return {
    name: metadata.name,
    kind: spec.names.kind,
    version: served?.name,
    displayName: spec.names.kind,
    description: served?.schema.openAPIV3Schema.description,
  };
}

/** An example of each kind, without Secrets. The remediation is made from the template, as the detector does it. */
async function examples(read: (name: string) => Promise<string>): Promise<object[]> {
  const files = ["examples/fencing-target.yaml", "examples/node-health-check.yaml"];
  const texts = await Promise.all(files.map(read));
  const objects = texts
    .flatMap((text) => parseAllDocuments(text).map((document) => document.toJS() as Example | null))
    .filter((object) => object?.apiVersion.startsWith("ironfence.io/") === true);
  const template = objects.find((object) => object?.kind === "BareMetalRemediationTemplate");
  if (template?.spec.template === undefined) throw new Error("examples/node-health-check.yaml has no template");
  const { apiVersion, metadata } = template;
  const remediation = {
    apiVersion,
    kind: "BareMetalRemediation",
    metadata: { ...metadata, name: "worker-1" },
    spec: template.spec.template.spec,
  };
  return [...objects.filter((object) => object !== null), remediation];
}

interface Example {
  apiVersion: string;
  kind: string;
  metadata: object;
  spec: { template?: { spec: object } };
}

/** @throws Error if there are none: the agent could then read nothing. */
function rulesOf(roles: readonly Role[], kind: string, namespace?: string): object[] {
  const rules = roles
    .filter((role) => role.kind === kind && role.metadata.namespace === namespace)
    .flatMap(({ rules = [] }) => rules);
  if (rules.length === 0) throw new Error(`deploy/kustomize/role-agent.yaml grants nothing by a ${kind}`);
  return rules;
}
