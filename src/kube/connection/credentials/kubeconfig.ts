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

/** One context, read and checked; `config` has it as its current one. */
interface LoadedConfig {
  config: KubeConfig;
  server: string;
  namespace: string | undefined;
  source: string;
  /** client-node passes a user's `tokenFile` over, and caches a pod's token: both are read by us. */
  tokenFile: string | undefined;
}

/**
 * The way in by kubeconfig files: of two entries with one name the first file's wins, as with kubectl.
 *
 * @param context the current one by default.
 * @throws ClusterConfigError with a message for the user: what is wrong with which file, and what to do.
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
        // Its words quote what a credential plugin has printed, which is the credentials.
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

/** Whether a server is reached without leaving this machine. */
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
    // What parsers say of a text quotes it, and there may be a password in it: neither their words nor the error are
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

/** Users by name whose token lies in a file (`user.tokenFile`). */
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
 * Completes what client-node leaves out of the exec protocol (client.authentication.k8s.io): a command with a slash is
 * relative to the kubeconfig's folder, and plugins such as gke-gcloud-auth-plugin refuse to run without
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

/** As kubectl merges: of two entries with one name the first stays, and so does the first current context. */
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
  // client-node sees a token file as no credentials at all; a token next to it is the older one (client-go: tokenFile
  // wins).
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

/** @throws Error for what we do not do, so that it is never silently ignored. */
function checkCluster(cluster: Cluster, where: string): Cluster {
  if (cluster.proxyUrl) {
    throw new ClusterConfigError(
      `${where} asks for the proxy ${cluster.proxyUrl}, which ironfence does not support: remove proxy-url, or run it where the server can be reached`,
    );
  }
  const url = URL.canParse(cluster.server) ? new URL(cluster.server) : undefined;
  if (url?.protocol === "https:") return cluster;
  // Without TLS the token could be read on the way; on loopback there is none (kubectl proxy, tests).
  if (url?.protocol === "http:" && (cluster.skipTLSVerify || isLoopback(url)))
    return { ...cluster, skipTLSVerify: true };
  if (url?.protocol === "http:") {
    throw new ClusterConfigError(
      `${where} is reached without TLS (${cluster.server}): use https, or set insecure-skip-tls-verify: true`,
    );
  }
  throw new ClusterConfigError(`${where} has the server "${cluster.server}", which is not an http(s) URL: correct it`);
}
