import { parseAllDocuments, stringify } from "yaml";

// The permissions of an agent that only observes are derived from those of an agent that acts. It keeps permissions to
// read, to record Kubernetes Events, and to hold one Lease.

interface Rule {
  apiGroups: string[];
  resources: string[];
  resourceNames?: string[];
  verbs: string[];
}

interface RbacObject {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: string; labels?: Record<string, string> };
  aggregationRule?: unknown;
  rules?: Rule[];
}

const READS: readonly string[] = ["get", "list", "watch"];
const LEASE = "ironfence-observe";
/** The kinds of vendors whose remediations a health check may name today. */
const REMEDIATIONS: readonly Rule[] = [
  { apiGroups: ["ironfence.io"], resources: ["baremetalremediationtemplates"], verbs: [...READS] },
  {
    apiGroups: ["fence-agents-remediation.medik8s.io", "self-node-remediation.medik8s.io"],
    resources: ["*"],
    verbs: [...READS],
  },
];

/** Rewrites a file of roles for an agent that only observes. */
export function observingRoles(text: string): string {
  const objects = readObjects(text).filter((object) => !isOfActing(object));
  return objects.map((object) => stringify(observing(object))).join("---\n");
}

/**
 * Kustomize patches that change the roles of the agent into those of an agent that only observes. The kustomization
 * itself deletes the objects that are left out here, because kustomize fails if one file deletes several objects.
 */
export function observingPatch(text: string): string {
  const patches = readObjects(text).flatMap((object): object[] => {
    const { apiVersion, kind, metadata } = object;
    const { name, namespace } = metadata;
    const identity = { apiVersion, kind, metadata: { name, ...(namespace !== undefined && { namespace }) } };
    const isKept = object.rules !== undefined && !isOfActing(object);
    return isKept ? [{ ...identity, rules: observing(object).rules }] : [];
  });
  return patches.map((patch) => stringify(patch)).join("---\n");
}

function readObjects(text: string): RbacObject[] {
  return parseAllDocuments(text).map((document) => document.toJS() as RbacObject);
}

/**
 * Whether only an agent that acts needs the object: the roles for the Leases of an installation, and those for creating
 * remediations of any vendor.
 */
function isOfActing({ metadata: { name, namespace } }: RbacObject): boolean {
  return namespace === "kube-system" || name === "ironfence-remediators";
}

function observing(object: RbacObject): RbacObject {
  if (object.rules === undefined) return object;
  const { name } = object.metadata;
  const rules = object.rules.flatMap(observingRule);
  const isAgent = object.kind === "ClusterRole" && name === "ironfence-agent";
  return { ...object, rules: isAgent ? [...rules, ...REMEDIATIONS] : rules };
}

function observingRule(rule: Rule): Rule[] {
  const isEvent = rule.apiGroups.includes("events.k8s.io");
  const isReview = rule.apiGroups.some(
    (group) => group === "authentication.k8s.io" || group === "authorization.k8s.io",
  );
  if (isEvent || isReview) return [rule];
  if (rule.resourceNames?.includes("ironfence") === true) return [{ ...rule, resourceNames: [LEASE] }];
  const isOwnLease = rule.resources.includes("leases") && rule.verbs.join() === "create";
  if (isOwnLease) return [rule];
  const verbs = rule.verbs.filter((verb) => READS.includes(verb));
  return verbs.length === 0 ? [] : [{ ...rule, verbs }];
}
