import { findKubeconfigs, processEnvironment } from "./cluster-environment.ts";
import type { Environment } from "./cluster-environment.ts";
import { accessFromPod } from "./service-account.ts";
import type { ClusterAccess } from "./cluster-access.ts";

/**
 * Finds the cluster: the kubeconfig named in `options`, else those of `$KUBECONFIG` (first wins, missing files are
 * passed over), else `~/.kube/config`, else the service account of the pod we run in.
 *
 * @throws ClusterConfigError that says what was looked for, what is wrong with it, and what to do.
 */
export async function loadCluster(
  options: { kubeconfig?: string; context?: string },
  environment: Environment = processEnvironment(),
): Promise<ClusterAccess> {
  const files = findKubeconfigs(options.kubeconfig, environment);
  if (files === undefined) return accessFromPod(options.context, environment);
  // Loaded on demand: the library that reads kubeconfigs is large, and an agent in a pod never needs it.
  const { accessFromKubeconfigs } = await import("./kubeconfig.ts");
  return accessFromKubeconfigs(files, options.context);
}
