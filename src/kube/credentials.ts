import { KubeError } from "./errors.ts";

/** What authenticates one request and its connection. */
export interface Credentials {
  /** Lower-case names; `authorization` among them where there is one. */
  headers: Readonly<Record<string, string>>;
  tls: TlsMaterial;
}

export interface TlsMaterial {
  ca?: string;
  cert?: string;
  key?: string;
  serverName?: string;
  insecureSkipVerify: boolean;
}

/** One API server and the way in. */
export interface ClusterAccess {
  /** URL without a trailing slash, e.g. `https://10.0.0.1:6443`; it may hold a path. */
  server: string;
  /** The namespace of the context or of the pod, where there is one. */
  namespace: string | undefined;
  /** Where this came from, for people, e.g. `context "prod" of /home/me/.kube/config`. */
  source: string;
  /** Reads credentials anew: files, token file and exec plugin. @throws KubeError Unauthorized with the cause. */
  loadCredentials(signal: AbortSignal): Promise<Credentials>;
}

export function loadCluster(options: { kubeconfig?: string; context?: string }): ClusterAccess {
  throw new KubeError("Unauthorized", `not built yet: ${options.kubeconfig}`);
}
