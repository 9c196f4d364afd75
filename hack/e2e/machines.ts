import { applyManifests, applyObject } from "../lib/apply.ts";
import type { Manifest } from "../lib/apply.ts";
import type { KubeApi } from "../lib/kube-api.ts";
import { repositoryPath } from "./world.ts";

// Creates objects of Cluster API as its controllers would, in either API version.

const GROUP = "cluster.x-k8s.io";
const INFRASTRUCTURE = "infrastructure.cluster.x-k8s.io";
const BEFORE = "2026-01-01T00:00:00Z";

/** A condition of either API version. */
export interface ConditionView {
  type: string;
  status: string;
  reason?: string;
  severity?: string;
  message?: string;
}

/** The fields of a Machine, health check or request that tests read, in either API version. */
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
  /** The API version of Cluster API's kinds. */
  version: "v1beta1" | "v1beta2";
  namespace: string;
  cluster: string;
}

/** Paths of collections in the management cluster. */
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
 * Applies the CRDs of other projects. If a kind has several versions, only the given one is served. If
 * $IRONFENCE_E2E_FOREIGN_CRDS names a file or folder, such as upstream's own, the CRDs come from there.
 *
 * @param clusterApi a folder with upstream's CRDs of Cluster API, instead of those in hack/foreign-crds.
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
  // The webhooks that convert between versions do not run here.
  const only = found === undefined ? versions : [{ ...found, served: true, storage: true }];
  return { ...manifest, spec: { ...spec, conversion: { strategy: "None" }, versions: only } };
}

/** Creates the Cluster, whose control plane and infrastructure are ready, and a MachineSet "workers". */
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
 * Creates a Machine.
 *
 * @param extra.hasJoined whether the node of the same name has joined the cluster: true by default.
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
  // Both forms of the conditions, as the controllers of Cluster API 1.9 and newer write them.
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

/** The providerID that Metal3's provider gives a Machine and its Node, if Machine, Node and host have the same name. */
export function providerIDOf({ namespace }: Pick<MachinesOptions, "namespace">, name: string): string {
  return `metal3://${namespace}/${name}/${name}`;
}

/** The condition of this type in both forms: that of the Machine's own version, and that of the other. */
export function conditionForms({ status }: ObjectView, type: string): (ConditionView | undefined)[] {
  const other = status?.v1beta2?.conditions ?? status?.deprecated?.v1beta1?.conditions;
  return [status?.conditions, other].map((conditions) => conditions?.find((condition) => condition.type === type));
}

/** A condition with status True, in the form of each version. */
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

/** References of v1beta1 name group and version, those of v1beta2 only the group. */
function reference(version: MachinesOptions["version"], kind: string, name: string): object {
  return version === "v1beta1"
    ? { apiVersion: `${INFRASTRUCTURE}/v1beta1`, kind, name }
    : { apiGroup: INFRASTRUCTURE, kind, name };
}
