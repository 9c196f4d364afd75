import type { Manifest } from "../lib/apply.ts";

/** One rule of RBAC. */
interface Rule {
  apiGroups: readonly string[];
  resources: readonly string[];
  resourceNames?: readonly string[];
  verbs: readonly string[];
}

/** What `ironfence bundle` reads in the whole cluster in addition to `ironfence check`. */
const IN_CLUSTER: readonly Rule[] = [
  { apiGroups: ["events.k8s.io"], resources: ["events"], verbs: ["list"] },
  { apiGroups: ["ironfence.io"], resources: ["baremetalremediationtemplates"], verbs: ["list"] },
  // The detector decides on upgrades and the quorum of etcd on OKD.
  { apiGroups: ["config.openshift.io"], resources: ["clusterversions"], verbs: ["list"] },
  { apiGroups: ["policy"], resources: ["poddisruptionbudgets"], verbs: ["list"] },
  { apiGroups: ["cluster.x-k8s.io"], resources: ["machines"], verbs: ["list"] },
  { apiGroups: ["infrastructure.cluster.x-k8s.io"], resources: ["metal3remediationtemplates"], verbs: ["list"] },
];

/** What `ironfence bundle` reads in the namespace of the agents: pods/log for logs, pods/proxy for metrics. */
const OF_AGENTS: readonly Rule[] = [
  { apiGroups: [""], resources: ["pods"], verbs: ["list"] },
  { apiGroups: [""], resources: ["pods/log", "pods/proxy"], verbs: ["get"] },
];

/**
 * The roles of `ironfence bundle`, with their bindings: those of `ironfence check` under another name, and the rules
 * above.
 *
 * @param check the manifests of deploy/check.
 */
export function bundleRoles(check: readonly Manifest[]): Manifest[] {
  return check
    .filter(({ kind }) => /^(?:Cluster)?Role(?:Binding)?$/.test(kind))
    .map((manifest) => {
      const renamed = JSON.parse(
        JSON.stringify(manifest).replaceAll("ironfence-check", "ironfence-bundle"),
      ) as Manifest;
      const more = { ClusterRole: IN_CLUSTER, Role: OF_AGENTS }[renamed.kind];
      return more === undefined ? renamed : { ...renamed, rules: [...(renamed["rules"] as Rule[]), ...more] };
    });
}
