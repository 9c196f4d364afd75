import type { KubeObject, ObjectMeta, OwnerReference } from "../../kube/resource.ts";
import {
  CURRENT_CONFIG,
  DESIRED_CONFIG,
  FENCED_BY,
  MACHINE,
  MANUALLY_CONFIRMED_HEALTHY,
  QUARANTINED_BY,
} from "../names/annotations.ts";
import { sharedText, shareTexts } from "../../runtime/text/shared-text.ts";
import type { Node, NodeCondition } from "./core.ts";
import { isShuttingDown, NODE_SHUTTING_DOWN } from "./outage.ts";
import { readNode } from "./read-node.ts";

// Removes what caches do not need from objects as they arrive. The memory for each node is limited, so managed fields,
// images and similar fields are dropped.

const KEPT_NODE_ANNOTATIONS: readonly string[] = [
  MANUALLY_CONFIRMED_HEALTHY,
  MACHINE,
  CURRENT_CONFIG,
  DESIRED_CONFIG,
  FENCED_BY,
  QUARANTINED_BY,
];

const KEPT_FIELDS: ReadonlySet<string> = new Set<keyof ObjectMeta>([
  "name",
  "namespace",
  "generateName",
  "uid",
  "resourceVersion",
  "generation",
  "creationTimestamp",
  "deletionTimestamp",
  "labels",
  "annotations",
  "finalizers",
  "ownerReferences",
]);
const KEPT_OWNER_FIELDS: ReadonlySet<string> = new Set<keyof OwnerReference>([
  "apiVersion",
  "kind",
  "name",
  "uid",
  "controller",
  "blockOwnerDeletion",
]);

/**
 * An object's metadata without managed fields and self links, and with only the annotations named. If nothing has to be
 * left out, the result is `metadata` itself, so that two caches share what one of them has trimmed.
 */
export function trimMeta(metadata: ObjectMeta, keptAnnotations?: readonly string[]): ObjectMeta {
  const { name, uid, resourceVersion, creationTimestamp, labels, ownerReferences } = metadata;
  if (metadata.namespace !== undefined) metadata.namespace = sharedText(metadata.namespace);
  if (labels !== undefined) shareTexts(labels);
  ownerReferences?.forEach(shareTexts);
  if (isTrimmed(metadata, keptAnnotations)) return metadata;
  return {
    name,
    uid,
    resourceVersion,
    ...(creationTimestamp !== undefined && { creationTimestamp }),
    // One spread for all of them: V8 reserves memory for each property and each spread of a literal.
    ...optionalFields(metadata, keptAnnotations),
  };
}

function optionalFields(
  metadata: ObjectMeta,
  keptAnnotations: readonly string[] | undefined,
): Omit<ObjectMeta, "name" | "uid" | "resourceVersion"> {
  const { namespace, generateName, generation } = metadata;
  const { deletionTimestamp, labels, annotations, finalizers, ownerReferences } = metadata;
  return {
    ...(namespace !== undefined && { namespace }),
    ...(generateName !== undefined && { generateName }),
    ...(generation !== undefined && { generation }),
    ...(deletionTimestamp !== undefined && { deletionTimestamp }),
    ...(labels !== undefined && { labels }),
    ...(annotations !== undefined && { annotations: keep(annotations, keptAnnotations) }),
    ...(finalizers !== undefined && { finalizers }),
    ...(ownerReferences !== undefined && { ownerReferences: ownerReferences.map(trimOwner) }),
  };
}

function isTrimmed(metadata: ObjectMeta, keptAnnotations: readonly string[] | undefined): boolean {
  const { annotations = {}, ownerReferences = [] } = metadata;
  return (
    Object.keys(metadata).every((field) => KEPT_FIELDS.has(field)) &&
    Object.keys(annotations).every((name) => keptAnnotations?.includes(name) ?? true) &&
    ownerReferences.every((owner) => Object.keys(owner).every((field) => KEPT_OWNER_FIELDS.has(field)))
  );
}

/** Copies field by field, because other fields that a server sends may be nested to any depth. */
function trimOwner({ apiVersion, kind, name, uid, controller, blockOwnerDeletion }: OwnerReference): OwnerReference {
  return {
    apiVersion,
    kind,
    name,
    uid,
    ...(controller !== undefined && { controller }),
    ...(blockOwnerDeletion !== undefined && { blockOwnerDeletion }),
  };
}

function keep(annotations: Record<string, string>, kept: readonly string[] | undefined): Record<string, string> {
  if (kept === undefined) return annotations;
  return Object.fromEntries(Object.entries(annotations).filter(([key]) => kept.includes(key)));
}

/**
 * A Node without images, volumes, addresses and foreign annotations: read it live before backing it up.
 *
 * @throws TypeError if it is not a Node: the API server of a workload cluster is not trusted.
 */
export function trimNode(raw: KubeObject): Node {
  const node = readNode(raw);
  const { unschedulable, providerID, taints } = node.spec;
  const { bootID, systemUUID, machineID } = node.status.nodeInfo ?? {};
  return {
    apiVersion: raw.apiVersion,
    kind: raw.kind,
    metadata: trimMeta(node.metadata, KEPT_NODE_ANNOTATIONS),
    spec: {
      ...(unschedulable !== undefined && { unschedulable }),
      ...(providerID !== undefined && { providerID }),
      ...(taints !== undefined && { taints: taints.map(shareTexts) }),
    },
    status: {
      conditions: (node.status.conditions ?? []).map(trimNodeCondition),
      nodeInfo: {
        ...(bootID !== undefined && { bootID }),
        ...(systemUUID !== undefined && { systemUUID }),
        ...(machineID !== undefined && { machineID }),
      },
    },
  };
}

function trimNodeCondition(condition: NodeCondition): NodeCondition {
  const { type, status, reason, lastTransitionTime } = condition;
  return {
    // Messages are long and change often. Only this one has information that the other fields do not have.
    ...(isShuttingDown(condition) && { message: NODE_SHUTTING_DOWN }),
    type: sharedText(type),
    status,
    ...(reason !== undefined && { reason: sharedText(reason) }),
    ...(lastTransitionTime !== undefined && { lastTransitionTime: sharedText(lastTransitionTime) }),
  };
}
