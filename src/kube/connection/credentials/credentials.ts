import { findKubeconfigs, processEnvironment } from "./cluster-environment.ts";
import type { Environment } from "./cluster-environment.ts";
import { accessFromPod } from "./service-account.ts";
import type { ClusterAccess } from "./cluster-access.ts";

/**
 * Finds the cluster by the first of these that is set or exists: the kubeconfig in `options`, the files of
 * `$KUBECONFIG` (missing ones are skipped, and the first file wins), `~/.kube/config`, the service account of the pod.
 *
 * @throws ClusterConfigError. Its message says what was searched, what is wrong and what to do.
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
