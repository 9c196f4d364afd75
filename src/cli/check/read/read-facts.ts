import { parseFamilies } from "../../../config/parsers.ts";
import type { ClusterOptions } from "../../../config/cluster-options.ts";
import type { FencingTarget } from "../../../api/ironfence/fencing-target.ts";
import { DEPLOYMENTS } from "../../../api/kubernetes/core-types.ts";
import { OF_IRONFENCE } from "../../../api/names/labels.ts";
import { textAt } from "../../../api/schema/read-fields.ts";
import { compileNodePolicy } from "../../../detector/nodes/decide/policy.ts";
import type { TemplateReference } from "../../../detector/shared/model/template-reference.ts";
import type { KubeClient } from "../../../kube/client.ts";
import { isKubeError } from "../../../kube/errors.ts";
import { findObject } from "../../../kube/objects/find-object.ts";
import type { LeaderLease } from "../../../kube/lease/lease-record.ts";
import { LEASE } from "../../../kube/lease/lease-record.ts";
import { reviewPermissions } from "../../../kube/reviews/permission-review.ts";
import type { KubeObject, ResourceType } from "../../../kube/resource.ts";
import type { KubeRuntime } from "../../../kube/runtime.ts";
import { readServerVersion } from "../../../kube/api-client/server-version.ts";
import type { KubeTransport } from "../../../kube/transport.ts";
import { serverTimeMs } from "../../../kube/server-time.ts";
import { withDeadline } from "../../../runtime/deadline.ts";
import { inParallel } from "../../../runtime/in-parallel.ts";
import type { ClusterAddress } from "../../cluster/connect.ts";
import { itemsOf } from "../../status/objects/object-problems.ts";
import type { Overview } from "../../status/objects/read.ts";
import { readOverview } from "../../status/objects/read.ts";
import { readFamilyKinds } from "../../cluster/unread-versions.ts";
import { readCustomResources } from "./custom-resources.ts";
import type { AdmissionPolicies, ApiFacts, Deployment, Fact, Facts, TemplateFact } from "../facts.ts";
import { isUnread } from "../facts.ts";
import { agentPermissions } from "./permissions.ts";

/** The deadline of all reads of the cluster together. Live probes of BMCs have deadlines of their own. */
const READ_TIMEOUT_MS = 60_000;
const TEMPLATES_AT_ONCE_MAX = 8;
/** The service account in deploy/kustomize. */
const SERVICE_ACCOUNT = "ironfence";

const policies = (kind: string, plural: string): ResourceType => ({
  group: "admissionregistration.k8s.io",
  version: "v1",
  kind,
  plural,
  namespaced: false,
});
export const POLICIES = policies("ValidatingAdmissionPolicy", "validatingadmissionpolicies");
const BINDINGS = policies("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings");

export type CheckOptions = ClusterOptions & { leaseName: string; nodeLeaseNamespace: string };

/** What a reader needs from the command. */
export interface ReadDeps {
  runtime: KubeRuntime;
  transport: KubeTransport;
  cluster: ClusterAddress;
  options: CheckOptions;
}

/** Probes the BMCs of all targets now. @returns what the cluster would show after such a probe. */
export type ProbeTargets = (overview: Overview, signal: AbortSignal) => Promise<TargetProbes>;

export interface TargetProbes {
  targets: FencingTarget[];
  /** UIDs of the targets for which there was no time left. They have the status of the agent's last probe. */
  unprobed: ReadonlySet<string>;
}

/**
 * Reads everything that the checks need, once.
 *
 * @param probeTargets if it is undefined, the status of each target is used as it is.
 * @throws KubeError, DeadlineError if the API server does not answer. A missing permission is not an error, but a fact.
 */
export async function readFacts(
  deps: ReadDeps,
  probeTargets: ProbeTargets | undefined,
  signal: AbortSignal,
): Promise<Facts> {
  const { clock } = deps.runtime;
  const facts = await withDeadline(clock, "reading the cluster", READ_TIMEOUT_MS, signal, (within) =>
    readCluster(deps, within),
  );
  if (probeTargets === undefined) return facts;
  const { targets, unprobed } = await probeTargets(facts.overview, signal);
  return { ...facts, overview: { ...facts.overview, targets }, unprobed };
}

async function readCluster(deps: ReadDeps, signal: AbortSignal): Promise<Facts> {
  const { runtime, options, cluster } = deps;
  const { client } = runtime;
  const { namespace } = options;
  const [overview, customResources, admission, deployments] = await Promise.all([
    readOverview(runtime, options, cluster, signal),
    factOf(() => readCustomResources(client, signal)),
    factOf(() => readAdmission(client, signal)),
    factOf(() => listAll<Deployment>(client, DEPLOYMENTS, { namespace, ...OF_IRONFENCE }, signal)),
  ]);
  const templates = await readTemplates(client, overview, signal);
  const families = familiesOf(overview);
  const serviceAccount = serviceAccountOf(deployments);
  const wanted = agentPermissions({
    families,
    namespace,
    nodeLeaseNamespace: options.nodeLeaseNamespace,
    reprovisions: templates.some(({ reprovisions }) => reprovisions),
  });
  const permissions = await factOf(async () => {
    const reviews = await reviewPermissions(client, { namespace, serviceAccount }, wanted, signal);
    return reviews.map((review, index) => ({ ...review, folder: wanted[index]?.folder ?? "" }));
  });
  return {
    ...(await readApi(deps, signal)),
    overview,
    customResources,
    admission,
    deployments,
    permissions,
    serviceAccount,
    familyKinds: await readFamilyKinds({ client }, families, signal),
    templates,
    unprobed: new Set(),
  };
}

/** What every run reads. */
export async function readApi(
  { runtime, transport, cluster, options }: ReadDeps,
  signal: AbortSignal,
): Promise<ApiFacts> {
  const { namespace, leaseName } = options;
  const server = await readServerVersion(transport, signal);
  const fieldSelector = `metadata.name=${leaseName}`;
  const leases = await factOf(() => listAll<LeaderLease>(runtime.client, LEASE, { fieldSelector }, signal));
  return { cluster, namespace, nowMs: serverTimeMs(runtime), server, clockOffset: runtime.clockOffset?.(), leases };
}

/** Returns what was read, or which permission is missing. Any other failure is thrown. */
export async function factOf<T>(read: () => Promise<T>): Promise<Fact<T>> {
  try {
    return await read();
  } catch (error) {
    if (isKubeError(error, "Forbidden")) return { unread: error.message };
    throw error;
  }
}

/** Lists a kind; empty if the kind is not served. */
export async function listAll<T extends KubeObject>(
  client: KubeClient,
  type: ResourceType,
  options: Parameters<KubeClient["list"]>[1],
  signal: AbortSignal,
): Promise<T[]> {
  try {
    return (await client.list<T>(type, options, signal)).items;
  } catch (error) {
    if (isKubeError(error, "NotFound")) return [];
    throw error;
  }
}

interface Policy extends KubeObject {
  spec?: { matchConditions?: { name: string; expression: string }[] };
}

interface Binding extends KubeObject {
  spec?: { policyName?: string; validationActions?: string[] };
}

async function readAdmission(client: KubeClient, signal: AbortSignal): Promise<AdmissionPolicies> {
  const found = await listAll<Policy>(client, POLICIES, OF_IRONFENCE, signal);
  const bindings = await listAll<Binding>(client, BINDINGS, {}, signal);
  const denying = bindings.filter(({ spec }) => spec?.validationActions?.includes("Deny") === true);
  return {
    policies: new Set(found.map(({ metadata }) => metadata.name)),
    enforced: new Set(denying.flatMap(({ spec }) => spec?.policyName ?? [])),
    users: new Map(
      found.flatMap((policy): [string, string][] => {
        const user = agentOf(policy);
        return user === undefined ? [] : [[policy.metadata.name, user]];
      }),
    ),
  };
}

/** The user that a policy of deploy/kustomize/agent-admission.yaml restricts. */
function agentOf({ spec }: Policy): string | undefined {
  const condition = spec?.matchConditions?.find(({ name }) => name === "agent");
  return /^request\.userInfo\.username == '([^']+)'$/.exec(condition?.expression ?? "")?.[1];
}

/** The leader's families; the default family if they are not known. */
function familiesOf({ agent }: Overview): ReturnType<typeof parseFamilies> {
  const known = "families" in agent && agent.families.length > 0 ? agent.families : ["node-health-check"];
  // A newer agent may serve families that this command does not know.
  const readable = known.filter((family) => {
    try {
      return parseFamilies(family).size > 0;
    } catch {
      return false;
    }
  });
  return readable.length === 0 ? new Set() : parseFamilies(readable.join(","));
}

function serviceAccountOf(deployments: Fact<readonly Deployment[]>): string {
  const [first] = isUnread(deployments) ? [] : deployments;
  return first?.spec?.template?.spec?.serviceAccountName ?? SERVICE_ACCOUNT;
}

/** Reads every template that a health check names, each once. */
async function readTemplates(client: KubeClient, overview: Overview, signal: AbortSignal): Promise<ReadTemplate[]> {
  const named = new Map<string, { reference: TemplateReference; healthChecks: string[] }>();
  for (const { spec, metadata } of itemsOf(overview.healthChecks)) {
    const compiled = compileNodePolicy(spec, metadata.annotations);
    for (const { template: reference } of "policy" in compiled ? compiled.policy.steps : []) {
      const key = JSON.stringify(reference);
      const before = named.get(key)?.healthChecks ?? [];
      named.set(key, { reference, healthChecks: [...before, metadata.name] });
    }
  }
  return inParallel([...named.values()], TEMPLATES_AT_ONCE_MAX, async ({ reference, healthChecks }) => {
    const { namespace, name, kind } = reference;
    const text = `${kind} ${namespace === undefined ? name : `${namespace}/${name}`}`;
    return { text, healthChecks, ...(await readTemplate(client, reference, signal)) };
  });
}

type ReadTemplate = TemplateFact & { reprovisions: boolean };

async function readTemplate(
  client: KubeClient,
  { apiVersion, kind, namespace, name }: TemplateReference,
  signal: AbortSignal,
): Promise<Pick<ReadTemplate, "problem" | "reprovisions">> {
  const type = await client.discover(apiVersion, kind, signal);
  if (type === undefined) return { problem: `the cluster does not serve ${apiVersion}`, reprovisions: false };
  const key = type.namespaced && namespace !== undefined ? { namespace, name } : { name };
  if (type.namespaced && namespace === undefined) return { problem: "it has no namespace", reprovisions: false };
  const object = await factOf(() => findObject(client, type, key, signal));
  if (object === undefined) return { problem: "there is no such template", reprovisions: false };
  if (isUnread(object)) return { problem: object, reprovisions: false };
  const via = textAt(object, "spec", "template", "spec", "strategy", "via");
  return { problem: undefined, reprovisions: via === "BareMetalHost" || via === "MachineDeletion" };
}
