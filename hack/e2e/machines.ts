import { applyManifests, applyObject } from "../lib/apply.ts";
import type { Manifest } from "../lib/apply.ts";
import type { KubeApi } from "../lib/kube-api.ts";
import { repositoryPath } from "./world.ts";

// Objects of Cluster API as its own controllers would have made them, in either version.

const GROUP = "cluster.x-k8s.io";
const INFRASTRUCTURE = "infrastructure.cluster.x-k8s.io";
const BEFORE = "2026-01-01T00:00:00Z";

/** A condition in the form of either version. */
export interface ConditionView {
  type: string;
  status: string;
  reason?: string;
  severity?: string;
  message?: string;
}

/** A Machine, a health check or a request of either version, as tests look at them. */
export interface ObjectView {
  apiVersion: string;
  metadata: {
    name: string;
    uid: string;
    deletionTimestamp?: string;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
    finalizers?: string[];
    ownerReferences?: object[];
  };
  spec: Record<string, unknown>;
  status?: {
    conditions?: ConditionView[];
    v1beta2?: { conditions?: ConditionView[] };
    deprecated?: { v1beta1?: { conditions?: ConditionView[] } };
    phase?: string;
    nodeRef?: { name: string };
    retryCount?: number;
    lastRemediated?: string;
    targets?: string[];
    expectedMachines?: number;
    currentHealthy?: number;
    remediationsAllowed?: number;
  };
}

/** A cluster of Cluster API in the management cluster. */
export interface MachinesOptions {
  api: KubeApi;
  /** Of Cluster API's kinds. */
  version: "v1beta1" | "v1beta2";
  namespace: string;
  cluster: string;
}

/** Where objects of a group are in the management cluster. */
export function machinePaths({ version, namespace }: Pick<MachinesOptions, "version" | "namespace">) {
  const root = `/apis/${GROUP}/${version}/namespaces/${namespace}`;
  return {
    clusters: `${root}/clusters`,
    machines: `${root}/machines`,
    machineSets: `${root}/machinesets`,
    healthChecks: `${root}/machinehealthchecks`,
    metal3Remediations: `/apis/${INFRASTRUCTURE}/${version}/namespaces/${namespace}/metal3remediations`,
    metal3Machines: `/apis/${INFRASTRUCTURE}/${version}/namespaces/${namespace}/metal3machines`,
    hosts: `/apis/metal3.io/v1alpha1/namespaces/${namespace}/baremetalhosts`,
    remediations: `/apis/ironfence.io/v1alpha1/namespaces/${namespace}/baremetalremediations`,
  };
}

/**
 * Applies the CRDs of others, of kinds with several versions that one alone: those of $IRONFENCE_E2E_FOREIGN_CRDS where
 * it names a file or folder, such as upstream's own.
 *
 * @param clusterApi a folder of Cluster API's own, instead of that of ironfence.
 */
export async function applyForeignCrds(
  { api, version }: Pick<MachinesOptions, "api" | "version">,
  clusterApi?: string,
): Promise<void> {
  const path = process.env["IRONFENCE_E2E_FOREIGN_CRDS"] ?? repositoryPath("hack/foreign-crds");
  const oneVersion = (manifest: Manifest): Manifest => withVersion(manifest, version);
  await applyManifests(api, path, oneVersion);
  if (clusterApi !== undefined) await applyManifests(api, clusterApi, oneVersion);
}

function withVersion(manifest: Manifest, wanted: string): Manifest {
  const { versions, ...spec } = manifest["spec"] as { versions: { name: string; storage: boolean }[] };
  const found = versions.find(({ name }) => name === wanted);
  // Upstream's webhooks that convert between versions are not there.
  const only = found === undefined ? versions : [{ ...found, served: true, storage: true }];
  return { ...manifest, spec: { ...spec, conversion: { strategy: "None" }, versions: only } };
}

/** Makes the Cluster, with a control plane and an infrastructure that are ready, and a MachineSet "workers". */
export async function createCluster(options: MachinesOptions): Promise<void> {
  const { api, version, namespace, cluster } = options;
  const paths = machinePaths(options);
  const apiVersion = `${GROUP}/${version}`;
  await applyObject(api, { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });
  await api.create(paths.clusters, {
    apiVersion,
    kind: "Cluster",
    metadata: { name: cluster },
    spec: { paused: false, infrastructureRef: reference(version, "Metal3Cluster", cluster) },
  });
  const condition = (type: string) => conditionsOf(type)[version];
  await api.mergePatch(`${paths.clusters}/${cluster}/status`, {
    status: {
      conditions: [condition("ControlPlaneInitialized"), condition("InfrastructureReady")],
      ...(version === "v1beta2" && {
        initialization: { infrastructureProvisioned: true, controlPlaneInitialized: true },
      }),
    },
  });
  const labels = { "cluster.x-k8s.io/cluster-name": cluster };
  await api.create(paths.machineSets, {
    apiVersion,
    kind: "MachineSet",
    metadata: { name: "workers", labels },
    spec: {
      clusterName: cluster,
      selector: { matchLabels: { nodepool: "nodepool-0" } },
      template: {
        metadata: { labels: { nodepool: "nodepool-0" } },
        spec: {
          ...machineSpec(options, "workers"),
          infrastructureRef: reference(version, "Metal3MachineTemplate", "workers"),
        },
      },
    },
  });
}

/**
 * Makes a Machine.
 *
 * @param extra.hasJoined whether it has become the node of its name: true by default.
 * @returns its UID.
 */
export async function createMachine(
  options: MachinesOptions,
  name: string,
  labels: Readonly<Record<string, string>>,
  { hasJoined = true, finalizers = [] }: { hasJoined?: boolean; finalizers?: readonly string[] } = {},
): Promise<string> {
  const { api, version, cluster } = options;
  const paths = machinePaths(options);
  const apiVersion = `${GROUP}/${version}`;
  const set = await api.get<ObjectView>(`${paths.machineSets}/workers`);
  const owner = { apiVersion, kind: "MachineSet", name: "workers", uid: set.metadata.uid, controller: true };
  const isWorker = "nodepool" in labels;
  await api.create(paths.machines, {
    apiVersion,
    kind: "Machine",
    metadata: {
      name,
      labels: { "cluster.x-k8s.io/cluster-name": cluster, ...labels },
      finalizers,
      ...(isWorker && { ownerReferences: [owner] }),
    },
    spec: { ...machineSpec(options, name), providerID: providerIDOf(options, name) },
  });
  // Conditions in both forms, as Cluster API's controllers of 1.9 and newer write them.
  const { v1beta1: old, v1beta2: current } = conditionsOf("Ready");
  const nodeRef = version === "v1beta1" ? { apiVersion: "v1", kind: "Node", name } : { name };
  await api.mergePatch(`${paths.machines}/${name}/status`, {
    status: {
      ...(hasJoined && { nodeRef }),
      ...(version === "v1beta1"
        ? { conditions: [old], v1beta2: { conditions: [current] } }
        : { conditions: [current], deprecated: { v1beta1: { conditions: [old] } } }),
    },
  });
  return (await api.get<ObjectView>(`${paths.machines}/${name}`)).metadata.uid;
}

/** What Metal3's provider has a Machine and its Node bear, where Machine, Node and host have one name. */
export function providerIDOf({ namespace }: Pick<MachinesOptions, "namespace">, name: string): string {
  return `metal3://${namespace}/${name}/${name}`;
}

/** The Machine's condition of this type: in the form of its own version, and in the other one. */
export function conditionForms({ status }: ObjectView, type: string): (ConditionView | undefined)[] {
  const other = status?.v1beta2?.conditions ?? status?.deprecated?.v1beta1?.conditions;
  return [status?.conditions, other].map((conditions) => conditions?.find((condition) => condition.type === type));
}

/** A condition that is true, in the form of each version. */
function conditionsOf(type: string) {
  const v1beta1 = { type, status: "True", lastTransitionTime: BEFORE };
  return { v1beta1, v1beta2: { ...v1beta1, reason: type, message: "" } };
}

function machineSpec({ cluster, version }: MachinesOptions, name: string): object {
  return {
    clusterName: cluster,
    bootstrap: { dataSecretName: name },
    infrastructureRef: reference(version, "Metal3Machine", name),
  };
}

/** v1beta1 names the version too, v1beta2 the group alone. */
function reference(version: MachinesOptions["version"], kind: string, name: string): object {
  return version === "v1beta1"
    ? { apiVersion: `${INFRASTRUCTURE}/v1beta1`, kind, name }
    : { apiGroup: INFRASTRUCTURE, kind, name };
}
