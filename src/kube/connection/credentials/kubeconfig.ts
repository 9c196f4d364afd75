import { readFileSync } from "node:fs";
import type { RequestOptions } from "node:https";
import path from "node:path";
import type { Cluster, User } from "@kubernetes/client-node";
import { KubeConfig } from "@kubernetes/client-node";
import { parse, YAMLParseError } from "yaml";
import { isRecord } from "../../../runtime/record.ts";
import { ClusterConfigError, noCredentials } from "../../errors.ts";
import { readToken } from "./token-file.ts";
import type { ClusterAccess, Credentials } from "./cluster-access.ts";

/** One context that was read and checked. It is the current context of `config`. */
interface LoadedConfig {
  config: KubeConfig;
  server: string;
  namespace: string | undefined;
  source: string;
  /** The user's `tokenFile`, which client-node ignores. */
  tokenFile: string | undefined;
}

/**
 * Access to the cluster of a context in kubeconfig files. If two entries have the same name, the one of the first file
 * counts, as in kubectl.
 *
 * @param context the current context by default.
 * @throws ClusterConfigError. Its message says which file is wrong, why, and what to do.
 */
export function accessFromKubeconfigs(files: readonly string[], context: string | undefined): ClusterAccess {
  let loaded = load(files, context);
  const { server, namespace, source } = loaded;
  return {
    server,
    namespace,
    source,
    loadCredentials: async ({ discardCached }) => {
      try {
        if (discardCached) loaded = load(files, context);
        return await currentCredentials(loaded);
      } catch (error) {
        // The message of a SyntaxError quotes the output of the credential plugin, which contains the credentials.
        const isQuote = error instanceof SyntaxError;
        throw noCredentials(source, isQuote ? new Error("its credential plugin has not printed JSON") : error);
      }
    },
  };
}

function load(files: readonly string[], context: string | undefined): LoadedConfig {
  const merged = files.map(readConfigFile).reduce(mergeFirstWins);
  return selectContext(merged, context, files.join(path.delimiter));
}

async function currentCredentials(loaded: LoadedConfig): Promise<Credentials> {
  // client-node sets ca, cert, key, servername, rejectUnauthorized, auth and headers of these options.
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

/** client-node returns files as buffers, and the answer of an exec plugin as text. */
function pem<Name extends "ca" | "cert" | "key">(name: Name, value: unknown): Partial<Record<Name, string>> {
  if (typeof value !== "string" && !Buffer.isBuffer(value)) return {};
  return { [name]: value.toString() } as Record<Name, string>;
}

/** Whether the server runs on this machine. */
function isLoopback(server: URL): boolean {
  return server.hostname === "localhost" || server.hostname === "[::1]" || server.hostname.startsWith("127.");
}

interface ConfigFile {
  config: KubeConfig;
  /** Absolute token files by user name. */
  tokenFiles: ReadonlyMap<string, string>;
}

function readConfigFile(file: string): ConfigFile {
  try {
    const text = readFileSync(file, "utf8");
    const raw: unknown = parse(text);
    if (!isRecord(raw)) throw new Error("it is not a kubeconfig: give the path of another one");
    const config = new KubeConfig();
    config.loadFromString(text);
    const directory = path.dirname(path.resolve(file));
    config.makePathsAbsolute(directory);
    config.users = config.users.map((user) => prepareExec(user, directory));
    return { config, tokenFiles: tokenFilesOf(raw, directory) };
  } catch (error) {
    // The message of a parser quotes the text, which may contain a password. So neither the message nor the error is
    // passed on.
    if (error instanceof Error && error.name.startsWith("YAML")) {
      const [at] = error instanceof YAMLParseError ? (error.linePos ?? []) : [];
      const where = at === undefined ? "" : ` at line ${at.line}, column ${at.col}`;
      throw new ClusterConfigError(
        `cannot read the kubeconfig ${file}: it is not valid YAML${where}: correct it there`,
      );
    }
    const reason = error instanceof Error ? error.message : String(error);
    throw new ClusterConfigError(`cannot read the kubeconfig ${file}: ${reason}`, { cause: error });
  }
}

/** The token files (`user.tokenFile`) by the name of the user. */
function tokenFilesOf(raw: Record<string, unknown>, directory: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const entry of Array.isArray(raw["users"]) ? raw["users"] : []) {
    if (!isRecord(entry) || !isRecord(entry["user"])) continue;
    const { name } = entry;
    const { tokenFile } = entry["user"];
    if (typeof name === "string" && typeof tokenFile === "string" && tokenFile !== "") {
      found.set(name, path.resolve(directory, tokenFile));
    }
  }
  return found;
}

/**
 * Adds the parts of the exec protocol (client.authentication.k8s.io) that client-node leaves out. A command with a
 * slash is relative to the folder of the kubeconfig, and plugins such as gke-gcloud-auth-plugin do not run without
 * KUBERNETES_EXEC_INFO.
 */
function prepareExec(user: User, directory: string): User {
  const exec: unknown = user.exec;
  if (!isRecord(exec) || typeof exec["command"] !== "string") return user;
  const { command } = exec;
  const info = { apiVersion: exec["apiVersion"], kind: "ExecCredential", spec: { interactive: false } };
  const env = [
    ...(Array.isArray(exec["env"]) ? exec["env"] : []),
    { name: "KUBERNETES_EXEC_INFO", value: JSON.stringify(info) },
  ];
  const isPath = command.includes("/");
  return { ...user, exec: { ...exec, env, command: isPath ? path.resolve(directory, command) : command } };
}

/**
 * Merges as kubectl does: the first of two entries with the same name counts, and so does the first current context.
 */
function mergeFirstWins(first: ConfigFile, second: ConfigFile): ConfigFile {
  const config = new KubeConfig();
  config.clusters = firstOfEachName(first.config.clusters, second.config.clusters);
  config.users = firstOfEachName(first.config.users, second.config.users);
  config.contexts = firstOfEachName(first.config.contexts, second.config.contexts);
  config.currentContext = first.config.currentContext || second.config.currentContext;
  return { config, tokenFiles: new Map([...second.tokenFiles, ...first.tokenFiles]) };
}

function firstOfEachName<T extends { name: string }>(first: readonly T[], second: readonly T[]): T[] {
  const taken = new Set(first.map((entry) => entry.name));
  return [...first, ...second.filter((entry) => !taken.has(entry.name))];
}

function selectContext(file: ConfigFile, wanted: string | undefined, source: string): LoadedConfig {
  const { config, tokenFiles } = file;
  const name = wanted ?? config.currentContext;
  const known = config.contexts.map((context) => context.name).join(", ") || "none";
  if (!name)
    throw new ClusterConfigError(`${source} has no current-context: choose one with --context (there are: ${known})`);
  const context = config.contexts.find((context) => context.name === name);
  if (context === undefined)
    throw new ClusterConfigError(
      `${source} has no context ${name}: choose another one with --context (there are: ${known})`,
    );
  const cluster = config.clusters.find((cluster) => cluster.name === context.cluster);
  if (cluster === undefined)
    throw new ClusterConfigError(
      `context ${name} of ${source} names the cluster ${context.cluster}, which the file does not have: correct the context`,
    );
  const user = config.users.find((user) => user.name === context.user);
  if (user === undefined)
    throw new ClusterConfigError(
      `context ${name} of ${source} names the user ${context.user}, which the file does not have: correct the context`,
    );
  // client-node ignores a token file, so `tokenFile` is read in `currentCredentials`. As in client-go, a token file
  // takes precedence over a token.
  const selected = new KubeConfig();
  selected.loadFromClusterAndUser(checkCluster(cluster, `cluster ${cluster.name} of ${source}`), user);
  return {
    config: selected,
    server: cluster.server,
    namespace: context.namespace,
    source: `context ${name} of ${source}`,
    tokenFile: tokenFiles.get(user.name),
  };
}

/** @throws ClusterConfigError for a setting that ironfence does not support, so that it is never silently ignored. */
function checkCluster(cluster: Cluster, where: string): Cluster {
  if (cluster.proxyUrl) {
    throw new ClusterConfigError(
      `${where} asks for the proxy ${cluster.proxyUrl}, which ironfence does not support: remove proxy-url, or run it where the server can be reached`,
    );
  }
  const url = URL.canParse(cluster.server) ? new URL(cluster.server) : undefined;
  if (url?.protocol === "https:") return cluster;
  // Without TLS, the network could read the token. A server on loopback (kubectl proxy, tests) is not reached over the
  // network.
  if (url?.protocol === "http:" && (cluster.skipTLSVerify || isLoopback(url)))
    return { ...cluster, skipTLSVerify: true };
  if (url?.protocol === "http:") {
    throw new ClusterConfigError(
      `${where} is reached without TLS (${cluster.server}): use https, or set insecure-skip-tls-verify: true`,
    );
  }
  throw new ClusterConfigError(`${where} has the server "${cluster.server}", which is not an http(s) URL: correct it`);
}
