import { inParallel } from "../../runtime/in-parallel.ts";
import type { KubeClient } from "../client.ts";
import type { KubeObject, ResourceType } from "../resource.ts";

/** One verb on one resource. */
export interface Permission {
  verb: string;
  /** Empty for the core group. */
  group: string;
  /** With its subresource, as in RBAC: `nodes/status`. */
  resource: string;
  /** Undefined for all namespaces, or for a cluster-scoped resource. */
  namespace?: string | undefined;
  /** Undefined for all objects. */
  name?: string | undefined;
}

/** A permission, and whether the API server grants it. */
export interface PermissionReview {
  permission: Permission;
  allowed: boolean;
}

/** How many reviews run at the same time. */
const REVIEWS_AT_ONCE_MAX = 16;

const review = (kind: string, plural: string): ResourceType => ({
  group: "authorization.k8s.io",
  version: "v1",
  kind,
  plural,
  namespaced: false,
});
const OF_SELF = review("SelfSubjectAccessReview", "selfsubjectaccessreviews");
const OF_OTHERS = review("SubjectAccessReview", "subjectaccessreviews");

interface ReviewObject extends KubeObject {
  spec: Record<string, unknown>;
  status?: { allowed?: boolean; denied?: boolean };
}

/**
 * Asks the API server which permissions a service account or the user of `client` has. Nothing is written.
 *
 * @throws KubeError Forbidden if the user of `client` may not review the permissions of other users.
 */
export function reviewPermissions(
  client: Pick<KubeClient, "create">,
  who: { namespace: string; serviceAccount: string } | "self",
  permissions: readonly Permission[],
  signal: AbortSignal,
): Promise<PermissionReview[]> {
  const type = who === "self" ? OF_SELF : OF_OTHERS;
  const subject = who === "self" ? {} : subjectOf(who);
  return inParallel(permissions, REVIEWS_AT_ONCE_MAX, async (permission) => {
    const { status } = await client.create<ReviewObject>(
      type,
      {
        apiVersion: `${type.group}/${type.version}`,
        kind: type.kind,
        metadata: {},
        spec: { ...subject, resourceAttributes: attributesOf(permission) },
      },
      {},
      signal,
    );
    return { permission, allowed: status?.allowed === true && status.denied !== true };
  });
}

/** A permission as text, for example `patch nodes` or `create leases.coordination.k8s.io in namespace kube-system`. */
export function permissionText({ verb, group, resource, namespace, name }: Permission): string {
  const what = `${verb} ${group === "" ? resource : `${resource}.${group}`}`;
  const named = name === undefined ? what : `${what} named ${name}`;
  return namespace === undefined ? named : `${named} in namespace ${namespace}`;
}

function subjectOf({ namespace, serviceAccount }: { namespace: string; serviceAccount: string }): object {
  const groups = ["system:serviceaccounts", `system:serviceaccounts:${namespace}`, "system:authenticated"];
  return { user: `system:serviceaccount:${namespace}:${serviceAccount}`, groups };
}

function attributesOf({ verb, group, resource: text, namespace, name }: Permission): object {
  const [resource = "", subresource] = text.split("/");
  return {
    verb,
    group,
    resource,
    ...(subresource !== undefined && { subresource }),
    ...(namespace !== undefined && { namespace }),
    ...(name !== undefined && { name }),
  };
}
