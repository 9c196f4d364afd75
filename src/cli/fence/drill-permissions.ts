import type { Pod } from "../../api/kubernetes/core.ts";
import { BARE_METAL_REMEDIATIONS } from "../../api/ironfence/bare-metal-remediation.ts";
import type { KubeClient } from "../../kube/client.ts";
import type { Permission } from "../../kube/reviews/permission-review.ts";
import { permissionText, reviewPermissions } from "../../kube/reviews/permission-review.ts";

/**
 * The permissions that a drill needs and the user lacks, according to a review by the API server. Permissions that the
 * reads before the drill have already used are left out. Nothing is changed.
 *
 * @param namespace of the remediation.
 * @param pods those that the drill evicts.
 */
export async function lackingPermissions(
  client: Pick<KubeClient, "create">,
  { namespace, nodeName, pods }: { namespace: string; nodeName: string; pods: readonly Pod[] },
  signal: AbortSignal,
): Promise<string[]> {
  const { group, plural: resource } = BARE_METAL_REMEDIATIONS;
  const wanted: Permission[] = [
    { verb: "patch", group: "", resource: "nodes", name: nodeName },
    ...[...new Set(pods.map(({ metadata }) => metadata.namespace))].map((of) => {
      return { verb: "create", group: "", resource: "pods/eviction", namespace: of };
    }),
    ...["create", "get", "delete"].map((verb) => ({ verb, group, resource, namespace })),
  ];
  const reviews = await reviewPermissions(client, "self", wanted, signal);
  return reviews.filter(({ allowed }) => !allowed).map(({ permission }) => permissionText(permission));
}
