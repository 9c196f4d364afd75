import { createKubeClient } from "../kube/api-client.ts";
import type { KubeClient } from "../kube/client.ts";
import { loadCluster } from "../kube/credentials.ts";
import { createHttpTransport } from "../kube/http-transport.ts";
import type { ClusterOptions } from "../config/run-options.ts";
import type { CliContext } from "./context.ts";

/** Connects to the cluster that the options name, does `work`, and closes every connection again. */
export async function withCluster<T>(
  context: CliContext,
  options: ClusterOptions,
  work: (client: KubeClient) => Promise<T>,
): Promise<T> {
  const cluster = await loadCluster({
    ...(options.kubeconfig !== undefined && { kubeconfig: options.kubeconfig }),
    ...(options.context !== undefined && { context: options.context }),
  });
  const transport = createHttpTransport(cluster, { clock: context.clock });
  try {
    return await work(createKubeClient({ transport, clock: context.clock, random: context.random }));
  } finally {
    await transport.close();
  }
}
