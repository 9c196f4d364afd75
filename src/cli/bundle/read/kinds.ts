import {
  CONFIG_MAPS,
  DEPLOYMENTS,
  EVENTS,
  LEASES,
  NODE_LEASE_NAMESPACE,
  NODES,
  PODS,
} from "../../../api/kubernetes/core-types.ts";
import { CUSTOM_KINDS } from "../../../api/ironfence/kinds.ts";
import { INFRASTRUCTURE_GROUP, INFRASTRUCTURE_VERSIONS } from "../../../api/metal3/metal3.ts";
import { METAL3_REMEDIATION_KIND } from "../../../api/metal3/metal3-remediation.ts";
import { STOP_SWITCH_NAME } from "../../../api/ironfence/stop-switch.ts";
import { OF_IRONFENCE } from "../../../api/names/labels.ts";
import { CLUSTER_API_CHECKS } from "../../../detector/machines/vendors/cluster-api.ts";
import { OKD_CHECKS } from "../../../detector/machines/vendors/okd.ts";
import type { ListOptions } from "../../../kube/client.ts";
import { isKubeError } from "../../../kube/errors.ts";
import { findObject } from "../../../kube/objects/find-object.ts";
import type { KubeObject, ResourceType } from "../../../kube/resource.ts";
import type { KindVersions } from "../../../kube/objects/served-kind.ts";
import { findServed } from "../../../kube/objects/served-kind.ts";
import { HOST_KIND } from "../../status/objects/hosts.ts";
import type { Part, PartDeps, PartFile, PartResult } from "../part.ts";
import type { Fields } from "../../../runtime/record.ts";

const LIST_TIMEOUT_MS = 30_000;

const REMEDIATION_TEMPLATES = {
  group: INFRASTRUCTURE_GROUP,
  kind: `${METAL3_REMEDIATION_KIND}Template`,
  versions: INFRASTRUCTURE_VERSIONS,
};

/** Kinds of other projects, each only if the cluster serves it. */
const FOREIGN: readonly (readonly [file: string, kind: KindVersions, trim: (object: KubeObject) => KubeObject])[] = [
  ["machinehealthchecks.cluster.x-k8s.io", CLUSTER_API_CHECKS.checks, whole],
  ["machines.cluster.x-k8s.io", CLUSTER_API_CHECKS.machines, whole],
  ["machinehealthchecks.machine.openshift.io", OKD_CHECKS.checks, whole],
  ["machines.machine.openshift.io", OKD_CHECKS.machines, trimOkdMachine],
  ["baremetalhosts.metal3.io", HOST_KIND, trimHost],
  [
    "metal3remediations.infrastructure.cluster.x-k8s.io",
    { group: INFRASTRUCTURE_GROUP, kind: METAL3_REMEDIATION_KIND, versions: INFRASTRUCTURE_VERSIONS },
    whole,
  ],
  ["metal3remediationtemplates.infrastructure.cluster.x-k8s.io", REMEDIATION_TEMPLATES, whole],
];

/**
 * Objects of ironfence, objects of other projects that it works with, and the objects of Kubernetes that describe
 * agents and nodes.
 */
export const KIND_PARTS: readonly Part[] = [
  ...CUSTOM_KINDS.map((type) => listPart(type, `kinds/${type.plural}.${type.group}`, {})),
  listPart(NODES, "kinds/nodes", { trim: trimNode }),
  ...FOREIGN.map(([file, kind, trim]) => foreignPart(`kinds/${file}`, kind, trim)),
  ownPart(DEPLOYMENTS, "kinds/deployments"),
  ownPart(PODS, "kinds/pods"),
  { name: "kinds/pause", timeoutMs: LIST_TIMEOUT_MS, read: readPause },
  { name: "leases", timeoutMs: LIST_TIMEOUT_MS, read: readLeases },
  { name: "events", timeoutMs: LIST_TIMEOUT_MS, read: readEvents },
];

function whole(object: KubeObject): KubeObject {
  return object;
}

function listPart(type: ResourceType, name: string, options: ListOptions): Part {
  return {
    name,
    timeoutMs: LIST_TIMEOUT_MS,
    read: async ({ runtime }, signal) => {
      const { items } = await runtime.client.list(type, options, signal);
      return { files: [{ path: `${name}.jsonl`, objects: items }], gaps: [] };
    },
  };
}

/** Objects of ironfence in its own namespace. */
function ownPart(type: ResourceType, name: string): Part {
  return {
    name,
    timeoutMs: LIST_TIMEOUT_MS,
    read: (deps, signal) =>
      listPart(type, name, { namespace: deps.options.namespace, ...OF_IRONFENCE }).read(deps, signal),
  };
}

function foreignPart(name: string, kind: KindVersions, trim: (object: KubeObject) => KubeObject): Part {
  return {
    name,
    timeoutMs: LIST_TIMEOUT_MS,
    read: async (deps, signal) => {
      const type = await findServed(deps.runtime, kind, signal);
      return type === undefined ? { files: [], gaps: [] } : listPart(type, name, { trim }).read(deps, signal);
    },
  };
}

async function readPause({ runtime, options }: PartDeps, signal: AbortSignal): Promise<PartResult> {
  const key = { namespace: options.namespace, name: STOP_SWITCH_NAME };
  const found = await findObject(runtime.client, CONFIG_MAPS, key, signal);
  return { files: found === undefined ? [] : [{ path: "kinds/pause.jsonl", objects: [found] }], gaps: [] };
}

/** Who leads, and whether nodes renew their leases. */
async function readLeases(deps: PartDeps, signal: AbortSignal): Promise<PartResult> {
  const { namespace, nodeLeaseNamespace } = deps.options;
  const files: PartFile[] = [];
  const gaps: string[] = [];
  for (const of of new Set([namespace, "kube-system", nodeLeaseNamespace, NODE_LEASE_NAMESPACE])) {
    try {
      const { items } = await deps.runtime.client.list(LEASES, { namespace: of }, signal);
      files.push({ path: `leases/${of}.jsonl`, objects: items });
    } catch (error) {
      if (!isKubeError(error, "Forbidden", "NotFound")) throw error;
      gaps.push(error.message);
    }
  }
  return { files, gaps };
}

/**
 * Kubernetes Events of all namespaces about kinds that ironfence works with, and all Kubernetes Events of the agent's
 * namespace.
 */
async function readEvents({ runtime, options }: PartDeps, signal: AbortSignal): Promise<PartResult> {
  const list = { trim: trimEvent, pageSize: 500 };
  const { namespace } = options;
  let items: KubeObject[];
  const gaps: string[] = [];
  try {
    ({ items } = await runtime.client.list(EVENTS, list, signal));
  } catch (error) {
    if (!isKubeError(error, "Forbidden")) throw error;
    gaps.push(`only Events of namespace ${namespace} are included: ${error.message}`);
    ({ items } = await runtime.client.list(EVENTS, { ...list, namespace }, signal));
  }
  const kept = items.filter((event) => isOurs(event as KubeObject & Fields, namespace));
  return { files: [{ path: "events.jsonl", objects: kept }], gaps };
}

const KINDS_OF_EVENTS: ReadonlySet<unknown> = new Set([
  ...CUSTOM_KINDS.map(({ kind }) => kind),
  ...FOREIGN.map(([, { kind }]) => kind),
  "Node",
]);

function isOurs(event: KubeObject & Fields, namespace: string): boolean {
  const regarding = fieldsOf(event["regarding"]);
  const controller = event["reportingController"];
  return (
    event.metadata.namespace === namespace ||
    (typeof controller === "string" && controller.startsWith("ironfence")) ||
    KINDS_OF_EVENTS.has(regarding["kind"])
  );
}

function trimEvent(raw: KubeObject): KubeObject {
  const { apiVersion, kind, metadata, ...event } = raw as KubeObject & Fields;
  const { name, namespace = "", uid, resourceVersion, creationTimestamp } = metadata;
  const kept = { name, namespace, uid, resourceVersion, ...(creationTimestamp !== undefined && { creationTimestamp }) };
  return Object.assign({ apiVersion, kind, metadata: kept }, event);
}

/** Removes the list of images, which is the largest part of a Node. */
function trimNode(raw: KubeObject): KubeObject {
  const { apiVersion, kind, metadata } = raw;
  const { spec, status } = raw as KubeObject & Fields;
  const { conditions, addresses, nodeInfo, volumesAttached } = fieldsOf(status);
  const kept = { spec, status: { conditions, addresses, nodeInfo, volumesAttached } };
  return Object.assign({ apiVersion, kind, metadata }, kept);
}

/** Removes most of the hardware inventory. */
function trimHost(raw: KubeObject): KubeObject {
  const { status, ...rest } = raw as KubeObject & Fields;
  const { hardware, ...other } = fieldsOf(status);
  return Object.assign(rest, { status: { ...other, hardware: { systemVendor: fieldsOf(hardware)["systemVendor"] } } });
}

/** Removes the settings of the provider. */
function trimOkdMachine(raw: KubeObject): KubeObject {
  const { apiVersion, kind, metadata } = raw;
  const { status, spec } = raw as KubeObject & Fields;
  const { providerID, lifecycleHooks } = fieldsOf(spec);
  return Object.assign({ apiVersion, kind, metadata }, { spec: { providerID, lifecycleHooks }, status });
}

function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null ? (value as Fields) : {};
}
