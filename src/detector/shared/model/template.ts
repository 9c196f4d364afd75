import type { BareMetalRemediationSpec } from "../../../api/ironfence/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../../../api/ironfence/bare-metal-remediation.ts";
import type { Node } from "../../../api/kubernetes/core.ts";
import { METAL3_REMEDIATION_KIND } from "../../../api/metal3/metal3-remediation.ts";
import { INFRASTRUCTURE_GROUP } from "../../../api/metal3/metal3.ts";
import { MULTIPLE_TEMPLATES_SUPPORT, NODE_NAME, TEMPLATE_NAME } from "../../../api/names/annotations.ts";
import { IS_CONTROL_PLANE_NODE, PART_OF, PART_OF_VALUE } from "../../../api/names/labels.ts";
import { trimMeta } from "../../../api/kubernetes/trim.ts";
import type { KubeObject, ObjectMeta, OwnerReference, ResourceType } from "../../../kube/resource.ts";
import { apiVersionOf } from "../../../kube/resource.ts";
import { isControlPlane } from "../../../nodes/control-plane.ts";
import { creationRecord } from "../../../nodes/creation-record.ts";
import { field } from "./remediation.ts";

/** A remediation template of any vendor. Its spec is not parsed. */
export interface TemplateObject extends KubeObject {
  spec: unknown;
}

/** A template that CRs can be made from. */
export interface Template {
  name: string;
  /** Absent for a cluster-scoped template. Its CRs are then cluster-scoped as well. */
  namespace: string | undefined;
  /** The kind of its CRs. */
  type: ResourceType;
  /** `spec.template.spec`, which is copied as it is. */
  remediationSpec: unknown;
  /** The labels of `spec.template.metadata`, which Cluster API copies, too. */
  labels: Readonly<Record<string, string>>;
  annotations: Readonly<Record<string, string>>;
  /** Whether its remediator accepts several CRs for one node. If so, their names are generated. */
  manyPerNode: boolean;
}

/**
 * The template as a log of decisions holds it. The spec of another vendor may hold passwords, as those of fence agents
 * do, and no decision reads it.
 */
export function withoutForeignSpec<T extends Template>(template: T): T {
  const { group, kind } = template.type;
  const isOurs = group === BARE_METAL_REMEDIATIONS.group && kind === BARE_METAL_REMEDIATIONS.kind;
  return isOurs ? template : { ...template, remediationSpec: "left out" };
}

/** Why no remediation can be made from a template; the reasons are those of a health check's condition. */
export interface TemplateProblem {
  reason: "RemediationTemplateNotFound" | "RemediationTemplateInvalid";
  message: string;
}

/** A remediation CR before the server has named it. */
export interface NewRemediation extends Omit<KubeObject, "metadata"> {
  metadata: Partial<ObjectMeta>;
  spec: unknown;
}

export function trimTemplate(raw: KubeObject): TemplateObject {
  return {
    apiVersion: raw.apiVersion,
    kind: raw.kind,
    metadata: trimMeta(raw.metadata, [MULTIPLE_TEMPLATES_SUPPORT]),
    spec: field(raw, "spec"),
  };
}

/** @returns what is wrong with it as text for the operator, if no CR can be made from it. */
export function readTemplate(object: TemplateObject, type: ResourceType): Template | string {
  const { name, namespace, annotations } = object.metadata;
  const remediationSpec = field(field(object.spec, "template"), "spec");
  if (typeof remediationSpec !== "object" || remediationSpec === null || Array.isArray(remediationSpec)) {
    return `${object.kind} ${namespace === undefined ? name : `${namespace}/${name}`} has no spec.template.spec`;
  }
  const number = findInexactNumber(remediationSpec);
  if (number !== undefined) {
    return `${object.kind} ${name} has the number ${number} in spec.template.spec, which cannot be copied exactly: write numbers beyond 2^53 as strings`;
  }
  const manyPerNode = annotations?.[MULTIPLE_TEMPLATES_SUPPORT] !== undefined;
  const metadata = field(field(object.spec, "template"), "metadata");
  const [ownLabels, ownAnnotations] = [texts(field(metadata, "labels")), texts(field(metadata, "annotations"))];
  return { name, namespace, type, remediationSpec, labels: ownLabels, annotations: ownAnnotations, manyPerNode };
}

function texts(value: unknown): Record<string, string> {
  if (typeof value !== "object" || value === null) return {};
  return Object.fromEntries(
    Object.entries(value).filter((entry): entry is [string, string] => typeof entry[1] === "string"),
  );
}

// JavaScript has floating-point numbers only. A value that is changed while it is copied may identify another machine,
// so no CR is created.
function findInexactNumber(value: unknown): number | undefined {
  if (typeof value === "number") return Math.abs(value) > Number.MAX_SAFE_INTEGER ? value : undefined;
  if (typeof value !== "object" || value === null) return undefined;
  for (const part of Object.values(value)) {
    const found = findInexactNumber(part);
    if (found !== undefined) return found;
  }
  return undefined;
}

/**
 * The fields that the spec of a CR has in addition to its template if the CR is created before the duration is over.
 */
export type EarlySpec = Required<Pick<BareMetalRemediationSpec, "powerOnNotBefore" | "earlyProof">>;

/**
 * Builds the CR for a node, by the contract that remediators of any vendor rely on. An owner must be in the namespace
 * of the CR or be cluster-scoped. Otherwise Kubernetes deletes the CR, so pass the node's Machine only if it is in that
 * namespace.
 */
export function buildRemediation(
  template: Template,
  node: Node,
  owners: { healthCheck: OwnerReference; machine: OwnerReference | undefined },
  zoneLabel: string,
  early?: EarlySpec,
): NewRemediation {
  const { name } = node.metadata;
  const { healthCheck, machine } = owners;
  return {
    apiVersion: apiVersionOf(template.type),
    kind: template.type.kind,
    metadata: {
      ...(template.manyPerNode ? { generateName: `${name}-` } : { name }),
      ...(template.namespace !== undefined && { namespace: template.namespace }),
      annotations: { [NODE_NAME]: name, [TEMPLATE_NAME]: template.name, ...ownAnnotations(template, node, zoneLabel) },
      labels: { [PART_OF]: PART_OF_VALUE, ...(isControlPlane(node) && { [IS_CONTROL_PLANE_NODE]: "" }) },
      ownerReferences: machine === undefined ? [healthCheck] : [healthCheck, machine],
    },
    spec: early === undefined ? template.remediationSpec : withEarly(template, early),
  };
}

/** What only kinds that ironfence serves need: the node as it was when the CR was created. */
export function ownAnnotations({ type }: Template, node: Node | undefined, zoneLabel: string): Record<string, string> {
  const isServed = SERVED_KINDS.some(({ kind, group }) => type.kind === kind && type.group === group);
  return isServed ? creationRecord(node, zoneLabel) : {};
}

const SERVED_KINDS: readonly Pick<ResourceType, "kind" | "group">[] = [
  BARE_METAL_REMEDIATIONS,
  { kind: METAL3_REMEDIATION_KIND, group: INFRASTRUCTURE_GROUP },
];

function withEarly({ remediationSpec }: Template, early: EarlySpec): unknown {
  return { ...(remediationSpec as Record<string, unknown>), ...early };
}
