/** One API server and the way in. */
export interface ClusterAccess {
  /** URL without a trailing slash, for example `https://10.0.0.1:6443`; it may hold a path. */
  server: string;
  /** The namespace of the context or of the pod, if there is one. */
  namespace: string | undefined;
  /** Where this came from, for messages, for example `context prod of /home/me/.kube/config`. */
  source: string;
  /**
   * The credentials of this moment: certificate, key and token files are read again, and an exec plugin runs once its
   * last answer has expired. It takes no signal, since callers share one load and none of them may end it for the
   * others.
   *
   * @param options.discardCached also reads the kubeconfig again and runs the exec plugin whatever it returned before:
   * for
   *   credentials that the server refused.
   * @throws KubeError Unauthorized if they cannot be had.
   */
  loadCredentials(options: { discardCached: boolean }): Promise<Credentials>;
}

/** What authenticates a request and its connection. */
export interface Credentials {
  /** To send with every request, lower-case names; `authorization` among them if there is one. Never log them. */
  headers: Readonly<Record<string, string>>;
  tls: TlsMaterial;
}

/** PEM texts and checks of a TLS connection. */
export interface TlsMaterial {
  ca?: string;
  cert?: string;
  key?: string;
  /** What the server's certificate must name instead of the host. */
  serverName?: string;
  insecureSkipVerify: boolean;
}
