import { readManifests } from "../lib/apply.ts";
import type { Manifest } from "../lib/apply.ts";

// Compares the permissions that deploy grants the agent with the requests of the agents in the end-to-end tests.

/** A rule of RBAC. */
interface Rule {
  apiGroups: readonly string[];
  resources: readonly string[];
  verbs: readonly string[];
  resourceNames?: readonly string[];
}

/** One verb on one resource that a role grants to the agent. */
export interface Right {
  role: string;
  /** The namespace in which it applies; all namespaces by default. */
  namespace?: string | undefined;
  apiGroup: string;
  /** With its subresource, as in RBAC: `nodes/status`. */
  resource: string;
  /** The names for which it applies; all by default. */
  names?: readonly string[] | undefined;
  verb: string;
}

/** One request of an agent. */
export interface Call {
  verb: string;
  apiGroup: string;
  resource: string;
  namespace: string;
  name: string;
  isAllowed: boolean;
}

/** The requests to the API server of one test. */
export interface AuditLog {
  /** The name of the test file. */
  test: string;
  /** The calls of the agent. */
  calls: readonly Call[];
  /** The names of the roles that the test has applied. */
  roles: ReadonlySet<string>;
}

/** All lists are empty if every permission is used and every call is allowed. */
export interface Judgement {
  /** Granted and never used. */
  unused: string[];
  /** Used and refused. */
  refused: string[];
  /** Listed in `SHOWN_BY_SIMULATION`, and used or not granted at all. */
  outdated: string[];
}

/** Roles of deploy that only users have. */
const OF_USERS = new Set([
  "ironfence-enroller",
  "ironfence-operator",
  "ironfence-view",
  "ironfence-metrics-reader",
  "ironfence-status-reader",
]);
/**
 * Granted to health check controllers of other projects as well. They write whole objects and do not watch templates.
 */
const OF_OTHERS = new Set([
  "ironfence-bare-metal-remediation: update ironfence.io/baremetalremediations",
  "ironfence-bare-metal-remediation: get ironfence.io/baremetalremediationtemplates",
]);

/** All permissions that the manifests in these paths grant the agent, by bindings or aggregation. */
export async function readRights(paths: readonly string[]): Promise<Right[]> {
  const manifests = (await Promise.all(paths.map((path) => readManifests(path)))).flat();
  const isRole = ({ kind, metadata: { name } }: Manifest): boolean =>
    /^(Cluster)?Role$/.test(kind) && !OF_USERS.has(name);
  return manifests
    .filter(isRole)
    .flatMap(rightsOf)
    .filter((right) => !OF_OTHERS.has(nameOf(right)));
}

function rightsOf({ metadata: { name: role, namespace }, ...manifest }: Manifest): Right[] {
  const rules = (manifest["rules"] ?? []) as Rule[];
  return rules.flatMap(({ apiGroups, resources, verbs, resourceNames: names }) =>
    apiGroups.flatMap((apiGroup) =>
      resources.flatMap((resource) => verbs.map((verb) => ({ role, namespace, apiGroup, resource, names, verb }))),
    ),
  );
}

/** Reads an audit log of an API server. Calls of tests that use the token of the agent do not count as the agent's. */
export function readAuditLog(test: string, text: string): AuditLog {
  const events = text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as AuditEvent);
  const calls = events.filter(({ userAgent }) => userAgent === AGENT).flatMap(callOf);
  const written = events.filter(({ objectRef }) => /^(cluster)?roles$/.test(objectRef?.resource ?? ""));
  return { test, calls, roles: new Set(written.map(({ objectRef }) => objectRef?.name ?? "")) };
}

const AGENT = "ironfence";

/** The fields of an audit event of level Metadata that are read. */
interface AuditEvent {
  verb: string;
  userAgent?: string;
  objectRef?: { resource: string; subresource?: string; apiGroup?: string; namespace?: string; name?: string };
  annotations?: Record<string, string>;
}

/** Requests without a resource, such as discovery, are skipped: every client may send them. */
function callOf({ verb, objectRef, annotations }: AuditEvent): Call[] {
  if (objectRef === undefined) return [];
  const { subresource, apiGroup = "", namespace = "", name = "" } = objectRef;
  const resource = subresource === undefined ? objectRef.resource : `${objectRef.resource}/${subresource}`;
  const isAllowed = annotations?.["authorization.k8s.io/decision"] === "allow";
  return [{ verb, apiGroup, resource, namespace, name, isAllowed }];
}

/**
 * Permissions that no end-to-end test uses, because they need an OKD cluster or too much time. The value is a test that
 * makes the call on the simulated API server.
 */
export const SHOWN_BY_SIMULATION: ReadonlyMap<string, string> = new Map([
  // Volumes of pods that stay, such as those of a DaemonSet.
  ["ironfence-agent: get /persistentvolumes", "unit/remediator/effects/objects/release.test.ts"],
  // NodeHealthChecks on OKD, and a node of its control plane.
  ["ironfence-okd: list config.openshift.io/clusterversions", "integration/detector-platform.test.ts"],
  ["ironfence-okd: watch config.openshift.io/clusterversions", "integration/detector-platform.test.ts"],
  ["ironfence-okd: list policy/poddisruptionbudgets", "integration/detector-platform.test.ts"],
  ["ironfence-bundle: list config.openshift.io/clusterversions", "integration/detector-platform.test.ts"],
  ["ironfence-bundle: list policy/poddisruptionbudgets", "integration/detector-platform.test.ts"],
  [
    "ironfence-metal3-remediation: get machine.openshift.io/machines",
    "unit/remediator/requests/metal3-remediation.test.ts",
  ],
  ["ironfence-reprovision: get machine.openshift.io/machines", "sim/machine-deletion.test.ts"],
  ["ironfence-reprovision: list machine.openshift.io/machines", "sim/machine-deletion.test.ts"],
  ["ironfence-reprovision: delete machine.openshift.io/machines", "sim/machine-deletion.test.ts"],
  ["ironfence-reprovision: get machine.openshift.io/machinesets", "sim/machine-deletion.test.ts"],
]);

/**
 * Compares permissions with calls. A call counts only for roles that its test has applied, so that no family uses the
 * permissions of another.
 *
 * @param onPurpose the tests that remove permissions on purpose. Their refused calls do not count.
 */
export function judgeRights(
  rights: readonly Right[],
  logs: readonly AuditLog[],
  onPurpose: ReadonlySet<string>,
): Judgement {
  const used = new Set<Right>();
  const refused = new Set<string>();
  for (const { test, calls, roles } of logs) {
    const given = rights.filter(({ role }) => roles.has(role));
    for (const call of calls) {
      if (call.isAllowed) for (const right of closest(given, call)) used.add(right);
      else if (!onPurpose.has(test)) refused.add(`${test}: ${textOf(call)}`);
    }
  }
  const unused = rights.filter((right) => !used.has(right)).map(nameOf);
  return {
    unused: unused.filter((name) => !SHOWN_BY_SIMULATION.has(name)),
    refused: [...refused],
    outdated: [...SHOWN_BY_SIMULATION.keys()].filter((name) => !unused.includes(name)),
  };
}

/** A call counts for the roles of its namespace. If there are none, it counts for cluster-wide roles. */
function closest(rights: readonly Right[], call: Call): Right[] {
  const allowing = rights.filter((right) => allows(right, call));
  const here = allowing.filter(({ namespace }) => namespace !== undefined);
  return here.length > 0 ? here : allowing;
}

function allows({ namespace, apiGroup, resource, names, verb }: Right, call: Call): boolean {
  return (
    verb === call.verb &&
    apiGroup === call.apiGroup &&
    resource === call.resource &&
    (namespace === undefined || namespace === call.namespace) &&
    (names === undefined || names.includes(call.name))
  );
}

function nameOf({ role, namespace, apiGroup, resource, verb }: Right): string {
  return `${namespace === undefined ? role : `${role} of ${namespace}`}: ${verb} ${apiGroup}/${resource}`;
}

function textOf({ verb, apiGroup, resource, namespace, name }: Call): string {
  return `${verb} ${apiGroup}/${resource}${name === "" ? "" : ` ${name}`}${namespace === "" ? "" : ` in ${namespace}`}`;
}
