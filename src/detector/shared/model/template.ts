import type { Node } from "../../../api/core.ts";
import { MULTIPLE_TEMPLATES_SUPPORT, NODE_NAME, TEMPLATE_NAME } from "../../../api/annotations.ts";
import { IS_CONTROL_PLANE_NODE, PART_OF, PART_OF_VALUE } from "../../../api/labels.ts";
import { trimMeta } from "../../../api/trim.ts";
import type { KubeObject, ObjectMeta, OwnerReference, ResourceType } from "../../../kube/resource.ts";
import { apiVersionOf } from "../../../kube/resource.ts";
import { isControlPlane } from "../../../nodes/control-plane.ts";
import { field } from "./remediation.ts";

/** A remediation template of any vendor, its content as the server sent it. */
export interface TemplateObject extends KubeObject {
  spec: unknown;
}

/** A template that CRs can be made from. */
export interface Template {
  name: string;
  /** Absent for a cluster-scoped template; its CRs are cluster-scoped then. */
  namespace: string | undefined;
  /** The kind of its CRs. */
  type: ResourceType;
  /** `spec.template.spec`, which is copied as it is. */
  remediationSpec: unknown;
  /** Those of `spec.template.metadata`, which Cluster API copies too. */
  labels: Readonly<Record<string, string>>;
  annotations: Readonly<Record<string, string>>;
  /** Its remediator takes several CRs for one node, so their names are generated. */
  manyPerNode: boolean;
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

/** @returns what is wrong with it, in words, if no CR can be made from it. */
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

// JavaScript has floating-point numbers alone. A value that is altered on its way may mean another machine: better none.
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
 * The CR for a node, by the contract that remediators of any vendor rely on. Owners must lie in the CR's namespace or in
 * none, or Kubernetes collects the CR: hand in the node's Machine only if it does.
 */
export function buildRemediation(
  template: Template,
  node: Node,
  owners: { healthCheck: OwnerReference; machine: OwnerReference | undefined },
): NewRemediation {
  const { name } = node.metadata;
  const { healthCheck, machine } = owners;
  return {
    apiVersion: apiVersionOf(template.type),
    kind: template.type.kind,
    metadata: {
      ...(template.manyPerNode ? { generateName: `${name}-` } : { name }),
      ...(template.namespace !== undefined && { namespace: template.namespace }),
      annotations: { [NODE_NAME]: name, [TEMPLATE_NAME]: template.name },
      labels: { [PART_OF]: PART_OF_VALUE, ...(isControlPlane(node) && { [IS_CONTROL_PLANE_NODE]: "" }) },
      ownerReferences: machine === undefined ? [healthCheck] : [healthCheck, machine],
    },
    spec: template.remediationSpec,
  };
}
