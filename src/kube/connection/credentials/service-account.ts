import { existsSync, readFileSync } from "node:fs";
import { isIPv6 } from "node:net";
import path from "node:path";
import type { Environment } from "./cluster-environment.ts";
import { ClusterConfigError, noCredentials } from "../../errors.ts";
import { readToken } from "./token-file.ts";
import type { ClusterAccess } from "./cluster-access.ts";

/**
 * Access to the cluster from a pod, by its own service account.
 *
 * @throws ClusterConfigError if a context is asked for, or if the pod does not say where the API server is.
 */
export function accessFromPod(context: string | undefined, environment: Environment): ClusterAccess {
  if (context !== undefined) {
    throw new ClusterConfigError(`there is no kubeconfig to take the context ${context} from: give --kubeconfig`);
  }
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = environment.variables;
  const directory = environment.serviceAccountDirectory;
  if (!host || !port) {
    throw new ClusterConfigError(
      `there is a service account at ${directory}, but $KUBERNETES_SERVICE_HOST or $KUBERNETES_SERVICE_PORT is not set: run in a pod, or give --kubeconfig`,
    );
  }
  const namespaceFile = path.join(directory, "namespace");
  const source = `the pod's service account at ${directory}`;
  return {
    server: `https://${isIPv6(host) ? `[${host}]` : host}:${port}`,
    namespace: existsSync(namespaceFile) ? readFileSync(namespaceFile, "utf8").trim() : undefined,
    source,
    // Kubernetes replaces both files while the pod runs, so they are read every time. Reading small files costs little.
    loadCredentials: async () => {
      try {
        return {
          headers: { authorization: `Bearer ${readToken(path.join(directory, "token"))}` },
          tls: { ca: readFileSync(path.join(directory, "ca.crt"), "utf8"), insecureSkipVerify: false },
        };
      } catch (error) {
        throw noCredentials(source, error);
      }
    },
  };
}
