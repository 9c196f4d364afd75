import { readFileSync } from "node:fs";
import type { RequestOptions } from "node:https";
import { ClusterConfigError, KubeError } from "./errors.ts";
import { loadKubeConfig, processEnvironment } from "./kubeconfig.ts";
import type { Environment, LoadedConfig } from "./kubeconfig.ts";

/** What authenticates a request and its connection. */
export interface Credentials {
  /** To send with every request, lower-case names; `authorization` among them where there is one. Never log them. */
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

/** One API server and the way in. */
export interface ClusterAccess {
  /** URL without a trailing slash, e.g. `https://10.0.0.1:6443`; it may hold a path. */
  server: string;
  /** The namespace of the context or of the pod, where there is one. */
  namespace: string | undefined;
  /** Where this came from, for people, e.g. `context prod of /home/me/.kube/config`. */
  source: string;
  /**
   * The credentials of this moment: certificate, key and token files are read again, and an exec plugin runs once its last
   * answer has expired. It takes no signal, since callers share one load and none of them may end it for the others.
   *
   * @param options.discardCached also reads the kubeconfig again and runs the exec plugin whatever it said before: for
   *   credentials that the server refused.
   * @throws KubeError Unauthorized where they cannot be had.
   */
  loadCredentials(options: { discardCached: boolean }): Promise<Credentials>;
}

/**
 * Finds the cluster: the kubeconfig named in `options`, else those of `$KUBECONFIG` (first wins, missing files are passed
 * over), else `~/.kube/config`, else the service account of the pod we run in.
 *
 * @throws Error that says what was looked for, what is wrong with it, and what to do.
 */
export function loadCluster(
  options: { kubeconfig?: string; context?: string },
  environment: Environment = processEnvironment(),
): ClusterAccess {
  let loaded = loadKubeConfig(options, environment);
  const { server, namespace, source } = loaded;
  return {
    server,
    namespace,
    source,
    loadCredentials: async ({ discardCached }) => {
      try {
        if (discardCached) loaded = loadKubeConfig(options, environment);
        return await currentCredentials(loaded);
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        throw new KubeError("Unauthorized", `no credentials from ${source}: ${reason}`, { cause: error });
      }
    },
  };
}

async function currentCredentials(loaded: LoadedConfig): Promise<Credentials> {
  // Of an https request's options client-node fills in ca, cert, key, servername, rejectUnauthorized, auth and headers.
  const options: RequestOptions = {};
  await loaded.config.applyToHTTPSOptions(options);
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(options.headers ?? {})) headers[name.toLowerCase()] = String(value);
  if (typeof options.auth === "string") headers["authorization"] = `Basic ${btoa(options.auth)}`;
  if (loaded.tokenFile !== undefined) headers["authorization"] = `Bearer ${readToken(loaded.tokenFile)}`;
  const { ca, cert, key, servername, rejectUnauthorized } = options;
  return {
    headers,
    tls: {
      ...pem("ca", ca),
      ...pem("cert", cert),
      ...pem("key", key),
      ...(servername !== undefined && { serverName: servername }),
      insecureSkipVerify: rejectUnauthorized === false,
    },
  };
}

/** client-node gives files as buffers, and an exec plugin's answer as text. */
function pem<Name extends "ca" | "cert" | "key">(name: Name, value: unknown): Partial<Record<Name, string>> {
  if (typeof value !== "string" && !Buffer.isBuffer(value)) return {};
  return { [name]: value.toString() } as Record<Name, string>;
}

/** Trimmed: files end in a newline, which no header may hold. */
function readToken(file: string): string {
  const token = readFileSync(file, "utf8").trim();
  if (token === "") throw new ClusterConfigError(`the token file ${file} is empty`);
  return token;
}
