import { existsSync, readFileSync } from "node:fs";
import { isIPv6 } from "node:net";
import { homedir } from "node:os";
import path from "node:path";
import type { Cluster, User } from "@kubernetes/client-node";
import { KubeConfig } from "@kubernetes/client-node";
import { ClusterConfigError } from "./errors.ts";
import { parse } from "yaml";
import { isRecord } from "./api-answers.ts";

/** What of the machine decides where a cluster is looked for. */
export interface Environment {
  variables: Readonly<Record<string, string | undefined>>;
  homeDirectory: string;
  /** Where a pod finds its service account. */
  serviceAccountDirectory: string;
}

export function processEnvironment(): Environment {
  return {
    variables: process.env,
    homeDirectory: homedir(),
    serviceAccountDirectory: "/var/run/secrets/kubernetes.io/serviceaccount",
  };
}

/** One context, read and checked; `config` has it as its current one. */
export interface LoadedConfig {
  config: KubeConfig;
  server: string;
  namespace: string | undefined;
  source: string;
  /** client-node passes a user's `tokenFile` over, and caches a pod's token: both are read by us. */
  tokenFile: string | undefined;
}

/** @throws Error for people: what was looked for, what is wrong, what to do. */
export function loadKubeConfig(
  options: { kubeconfig?: string; context?: string },
  environment: Environment,
): LoadedConfig {
  const files = findFiles(options.kubeconfig, environment);
  if (files === undefined) return inCluster(options.context, environment);
  const merged = files.map(readConfigFile).reduce(mergeFirstWins);
  return selectContext(merged, options.context, files.join(path.delimiter));
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

/** The kubeconfig files to read; undefined where a pod's service account is to be used. */
function findFiles(option: string | undefined, environment: Environment): string[] | undefined {
  if (option !== undefined) {
    if (existsSync(option)) return [option];
    throw new ClusterConfigError(`there is no kubeconfig at ${option}: give the path of an existing one`);
  }
  const listed = (environment.variables["KUBECONFIG"] ?? "").split(path.delimiter).filter((file) => file !== "");
  const present = listed.filter((file) => existsSync(file));
  if (present.length > 0) return present;
  const atHome = path.join(environment.homeDirectory, ".kube", "config");
  if (listed.length === 0 && existsSync(atHome)) return [atHome];
  const token = path.join(environment.serviceAccountDirectory, "token");
  if (listed.length === 0 && existsSync(token)) return undefined;
  const lookedFor =
    listed.length > 0
      ? `$KUBECONFIG names ${listed.join(", ")}, which does not exist`
      : `$KUBECONFIG is not set, and there is neither ${atHome} nor a pod's service account at ${token}`;
  throw new ClusterConfigError(
    `no Kubernetes cluster to talk to: ${lookedFor}. Give --kubeconfig, set $KUBECONFIG, or run in a pod with a service account.`,
  );
}

function readConfigFile(file: string): ConfigFile {
  try {
    const text = readFileSync(file, "utf8");
    const raw: unknown = parse(text);
    if (!isRecord(raw)) throw new Error("it is not a kubeconfig");
    const config = new KubeConfig();
    config.loadFromString(text);
    const directory = path.dirname(path.resolve(file));
    config.makePathsAbsolute(directory);
    config.users = config.users.map((user) => prepareExec(user, directory));
    return { config, tokenFiles: tokenFilesOf(raw, directory) };
  } catch (error) {
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
 * relative to the kubeconfig's folder, and plugins such as gke-gcloud-auth-plugin refuse to run without KUBERNETES_EXEC_INFO.
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
  if (context === undefined) throw new ClusterConfigError(`${source} has no context ${name} (there are: ${known})`);
  const cluster = config.clusters.find((cluster) => cluster.name === context.cluster);
  if (cluster === undefined)
    throw new ClusterConfigError(
      `context ${name} of ${source} names the cluster ${context.cluster}, which is not there`,
    );
  const user = config.users.find((user) => user.name === context.user);
  if (user === undefined)
    throw new ClusterConfigError(`context ${name} of ${source} names the user ${context.user}, which is not there`);
  // client-node sees a token file as no credentials at all; a token beside it is the older one (client-go: tokenFile wins).
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

/** @throws Error for what we do not do, so that it is never passed over in silence. */
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
      `${where} is reached without TLS (${cluster.server}): use https, or say insecure-skip-tls-verify: true`,
    );
  }
  throw new ClusterConfigError(`${where} has the server "${cluster.server}", which is not an http(s) URL`);
}

/** The pod's own service account. */
function inCluster(context: string | undefined, environment: Environment): LoadedConfig {
  if (context !== undefined)
    throw new ClusterConfigError(`there is no kubeconfig to take the context ${context} from: give --kubeconfig`);
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = environment.variables;
  const directory = environment.serviceAccountDirectory;
  if (!host || !port) {
    throw new ClusterConfigError(
      `there is a service account at ${directory}, but $KUBERNETES_SERVICE_HOST or $KUBERNETES_SERVICE_PORT is not set: run in a pod, or give --kubeconfig`,
    );
  }
  const server = `https://${isIPv6(host) ? `[${host}]` : host}:${port}`;
  const config = new KubeConfig();
  config.loadFromClusterAndUser(
    { name: "in-cluster", server, caFile: path.join(directory, "ca.crt"), skipTLSVerify: false },
    { name: "service-account" },
  );
  const namespaceFile = path.join(directory, "namespace");
  return {
    config,
    server,
    namespace: existsSync(namespaceFile) ? readFileSync(namespaceFile, "utf8").trim() : undefined,
    source: `the pod's service account at ${directory}`,
    tokenFile: path.join(directory, "token"),
  };
}
