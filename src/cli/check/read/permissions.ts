import type { Family } from "../../../config/parsers.ts";
import type { Permission } from "../../../kube/reviews/permission-review.ts";
import deployed from "./deployed.json" with { type: "json" };

/** The namespace of the shipped manifests. */
const SHIPPED_NAMESPACE = "ironfence-system";
const SHIPPED_NODE_LEASE_NAMESPACE = "medik8s-leases";
/** The verbs that server-side apply needs. */
const INSTALL_VERBS = ["get", "create", "patch"];
/** The API server requires these verbs if the installer lacks permissions that a role grants. */
const GRANT_VERBS: Readonly<Record<string, string>> = {
  roles: "escalate",
  clusterroles: "escalate",
  rolebindings: "bind",
  clusterrolebindings: "bind",
};

/** Folders of deploy/families that a family needs. */
const FOLDERS: Readonly<Record<Family, readonly string[]>> = {
  "node-health-check": [],
  "machine-health-check": ["cluster-api"],
  "okd-machine-health-check": ["okd", "okd-machine-health-check"],
  "metal3-remediation": ["metal3-remediation"],
  "okd-machine": ["okd", "okd-machine"],
  "bare-metal-host": ["bare-metal-host"],
};

/** What an agent serves, and where. */
export interface AgentScope {
  families: Iterable<Family>;
  namespace: string;
  nodeLeaseNamespace: string;
  /** Whether a template reprovisions through a BareMetalHost or a Machine. */
  reprovisions: boolean;
}

interface ManifestPermission {
  folder: string;
  namespace?: string | undefined;
  group: string;
  resource: string;
  name?: string | undefined;
  /** Separated by blanks. */
  verbs: string;
}

/** What the shipped manifests grant an agent of these families. Pure. */
export function agentPermissions(scope: AgentScope): (Permission & { folder: string })[] {
  const families = [...scope.families].flatMap((family) => FOLDERS[family]);
  const extra = scope.reprovisions ? [...families, "reprovision"] : families;
  const folders = new Set(["deploy/kustomize", ...extra.map((folder) => `deploy/families/${folder}`)]);
  const rows: readonly ManifestPermission[] = deployed.agentPermissions;
  return rows
    .filter(({ folder }) => folders.has(folder))
    .flatMap(({ verbs, namespace, ...row }) =>
      verbs.split(" ").map((verb) => ({ ...row, verb, ...namespaceField(namespace, scope) })),
    );
}

/** What a user needs to install deploy/node-health-check and deploy/kustomize. Pure. */
export function installerPermissions(namespace: string): Permission[] {
  const rows: readonly { group: string; resource: string; namespace?: string | undefined }[] =
    deployed.installedResources;
  return rows.flatMap(({ group, resource, namespace: shipped }) => {
    const granting = GRANT_VERBS[resource];
    const verbs = granting === undefined ? INSTALL_VERBS : [...INSTALL_VERBS, granting];
    const where = namespaceField(shipped, { namespace, nodeLeaseNamespace: SHIPPED_NODE_LEASE_NAMESPACE });
    return verbs.map((verb) => ({ verb, group, resource, ...where }));
  });
}

/** Translates a namespace of the manifests into the one of this installation. */
function namespaceField(
  shipped: string | undefined,
  { namespace, nodeLeaseNamespace }: Pick<AgentScope, "namespace" | "nodeLeaseNamespace">,
): { namespace?: string } {
  if (shipped === undefined) return {};
  if (shipped === SHIPPED_NAMESPACE) return { namespace };
  return { namespace: shipped === SHIPPED_NODE_LEASE_NAMESPACE ? nodeLeaseNamespace : shipped };
}
