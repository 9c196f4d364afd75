/** One API server, and the credentials for it. */
export interface ClusterAccess {
  /** URL without a trailing slash, for example `https://10.0.0.1:6443`; it may hold a path. */
  server: string;
  /** The namespace of the context or of the pod, if there is one. */
  namespace: string | undefined;
  /** Where this came from, for messages, for example `context prod of /home/me/.kube/config`. */
  source: string;
  /**
   * Loads the current credentials. Certificate, key and token files are read again, and an exec plugin runs again when
   * its last answer has expired. It takes no signal, because callers share one load and none of them may abort it for
   * the others.
   *
   * @param options.discardCached reads the kubeconfig again and runs the exec plugin even if its last answer has not
   *   expired. Set it if the server refused the credentials.
   * @throws KubeError Unauthorized if there are no credentials.
   */
  loadCredentials(options: { discardCached: boolean }): Promise<Credentials>;
}

/** What authenticates a request and its connection. */
export interface Credentials {
  /**
   * Headers to send with every request, with lower-case names, including `authorization` if there is one. Never log
   * them.
   */
  headers: Readonly<Record<string, string>>;
  tls: TlsMaterial;
}

/** PEM texts and checks of a TLS connection. */
export interface TlsMaterial {
  ca?: string;
  cert?: string;
  key?: string;
  /** The name that the server's certificate must have, instead of the host name of the URL. */
  serverName?: string;
  insecureSkipVerify: boolean;
}
