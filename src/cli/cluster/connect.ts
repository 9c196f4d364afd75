import { createKubeClient } from "../../kube/api-client/api-client.ts";
import type { KubeClient } from "../../kube/client.ts";
import { createKubeRuntime } from "../../kube/connection/create-runtime.ts";
import { loadCluster } from "../../kube/connection/credentials/credentials.ts";
import { createHttpTransport } from "../../kube/connection/transport/http-transport.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import type { KubeTransport } from "../../kube/transport.ts";
import type { ClusterOptions } from "../../config/cluster-options.ts";
import { createLogger } from "../../telemetry/logger.ts";
import type { CliContext } from "../terminal/context.ts";

/** The cluster that a command is connected to. */
export interface ClusterAddress {
  server: string;
  /** Where the address was found, for example `context prod of /home/me/.kube/config`. */
  source: string;
}

/** Connects to the cluster that the options name, does `work`, and closes every connection again. */
export function withCluster<T>(
  context: CliContext,
  options: ClusterOptions,
  work: (client: KubeClient, cluster: ClusterAddress) => Promise<T>,
): Promise<T> {
  const { clock, random } = context;
  return withTransport(context, options, (transport, cluster) =>
    work(createKubeClient({ transport, clock, random }), cluster),
  );
}

/** Like `withCluster`, for a command that runs parts of the agent. The warnings of these parts go to standard error. */
export function withRuntime<T>(
  context: CliContext,
  options: ClusterOptions,
  work: (runtime: KubeRuntime, cluster: ClusterAddress, transport: KubeTransport) => Promise<T>,
): Promise<T> {
  const { clock, random } = context;
  return withTransport(context, options, (transport, cluster) => {
    const logger = createLogger("warn", { write: (line) => context.process.stderr.write(line) });
    const names = { controllerName: "ironfence.io/cli", instance: "cli" };
    const runtime = createKubeRuntime({ transport, clock, random, logger, ...names });
    return work(runtime, cluster, transport);
  });
}

async function withTransport<T>(
  context: CliContext,
  options: ClusterOptions,
  work: (transport: KubeTransport, cluster: ClusterAddress) => Promise<T>,
): Promise<T> {
  const cluster = await loadCluster({
    ...(options.kubeconfig !== undefined && { kubeconfig: options.kubeconfig }),
    ...(options.context !== undefined && { context: options.context }),
  });
  const transport = createHttpTransport(cluster, { clock: context.clock });
  try {
    return await work(transport, { server: cluster.server, source: cluster.source });
  } finally {
    await transport.close();
  }
}
