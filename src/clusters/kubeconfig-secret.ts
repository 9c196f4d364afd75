import { createPrivateKey, X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import { BlockYamlError, parseBlockYaml } from "./block-yaml.ts";
import type { Credentials, TlsMaterial } from "../kube/connection/credentials/cluster-access.ts";
import { isRecord } from "../runtime/record.ts";
import type { Fields } from "../runtime/record.ts";
import { withoutTrailingSlashes } from "../runtime/text/trailing-slashes.ts";

/** A kubeconfig has a few KiB. A longer text than this is not parsed. */
const TEXT_LENGTH_MAX = 256 * 1024;

/** A TLS handshake signs with the key on the main thread, which takes 4 ms with 4,096 bits and 47 ms with 8,192. */
const KEY_BITS_MAX = 4_096;

/** The server and the credentials of a workload cluster, from its Secret. */
export interface WorkloadKubeconfig {
  /** URL without a trailing slash. */
  server: string;
  credentials: Credentials;
}

/** A kubeconfig that cannot be used. The message names the wrong field, and never contains its value. */
export class KubeconfigError extends Error {
  override readonly name = "KubeconfigError";
}

/**
 * Fields that would make the agent run a program, read one of its files, use a proxy or impersonate a user. A user who
 * can write the Secret must not be able to cause that.
 */
const REFUSED: Readonly<Record<"cluster" | "user", Readonly<Record<string, string>>>> = {
  cluster: {
    "certificate-authority": "names a file: give certificate-authority-data",
    "proxy-url": "asks for a proxy, which is not supported",
  },
  user: {
    exec: "names a program to run: give a token or a client certificate",
    "auth-provider": "names a credential plugin: give a token or a client certificate",
    tokenFile: "names a file: give token",
    "client-certificate": "names a file: give client-certificate-data",
    "client-key": "names a file: give client-key-data",
    as: "asks to impersonate a user, which is not supported",
    "as-uid": "asks to impersonate a user, which is not supported",
    "as-groups": "asks to impersonate groups, which is not supported",
    "as-user-extra": "asks to impersonate a user, which is not supported",
  },
};

/**
 * Parses the kubeconfig of a workload cluster. Only its current context is used. All data must be inline, and the
 * server's URL must be https.
 *
 * @throws KubeconfigError if the kubeconfig is invalid or not allowed.
 */
export function parseWorkloadKubeconfig(text: string): WorkloadKubeconfig {
  const root = parseText(text);
  const contextName = requireText(root, "current-context", "current-context");
  const context = entryOf(root, "contexts", "context", contextName);
  const cluster = entryOf(root, "clusters", "cluster", requireText(context, "cluster", "context.cluster"));
  const user = entryOf(root, "users", "user", requireText(context, "user", "context.user"));
  refuse("cluster", cluster);
  refuse("user", user);
  const ca = readPem(cluster, "certificate-authority-data", "cluster");
  const cert = readPem(user, "client-certificate-data", "user");
  const key = readPem(user, "client-key-data", "user");
  const serverName = readText(cluster, "tls-server-name", "cluster");
  const tls: TlsMaterial = {
    ...(ca !== undefined && { ca }),
    ...(cert !== undefined && { cert }),
    ...(key !== undefined && { key }),
    ...(serverName !== undefined && { serverName }),
    insecureSkipVerify: cluster["insecure-skip-tls-verify"] === true,
  };
  checkTls(tls);
  return { server: readServer(cluster), credentials: { headers: readHeaders(user), tls } };
}

/**
 * Uses parsers whose time is proportional to the length of the text. Tenants write the text, and a slow parser would
 * block the main thread and delay all fences.
 */
function parseText(text: string): Fields {
  if (text.length > TEXT_LENGTH_MAX) throw new KubeconfigError(`is longer than ${TEXT_LENGTH_MAX} characters`);
  const isJson = text.trimStart().startsWith("{");
  let root: unknown;
  try {
    root = isJson ? JSON.parse(text) : parseBlockYaml(text);
  } catch (error) {
    if (error instanceof BlockYamlError)
      throw new KubeconfigError(`is not YAML that ironfence can read: ${error.message}`);
    // The message of the JSON parser quotes the text, which contains credentials.
    throw new KubeconfigError("is not valid JSON");
  }
  if (!isRecord(root)) throw new KubeconfigError("is not a kubeconfig");
  return root;
}

/** The value of `key` in the entry with this name. */
function entryOf(root: Fields, list: string, key: string, name: string): Fields {
  const entries: unknown = root[list];
  const found: unknown = Array.isArray(entries)
    ? entries.find((entry) => isRecord(entry) && entry["name"] === name)
    : undefined;
  const content = isRecord(found) ? found[key] : undefined;
  if (!isRecord(content)) throw new KubeconfigError(`${list} has no entry with the requested name`);
  return content;
}

function refuse(part: "cluster" | "user", fields: Fields): void {
  for (const [name, why] of Object.entries(REFUSED[part])) {
    const value = fields[name];
    if (value !== undefined && value !== null && value !== "") throw new KubeconfigError(`${part}.${name} ${why}`);
  }
}

function readServer(cluster: Fields): string {
  const text = requireText(cluster, "server", "cluster.server");
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || url.protocol !== "https:") throw new KubeconfigError("cluster.server is not an https URL");
  // They would appear in every message that names the server.
  if (url.username !== "" || url.password !== "") throw new KubeconfigError("cluster.server contains credentials");
  if (url.search !== "" || url.hash !== "") throw new KubeconfigError("cluster.server has a query or a fragment");
  return withoutTrailingSlashes(url.href);
}

function readHeaders(user: Fields): Record<string, string> {
  const token = readText(user, "token", "user");
  const username = readText(user, "username", "user");
  const password = readText(user, "password", "user");
  if (token !== undefined) {
    if (!/^[\x21-\x7e]+$/.test(token))
      throw new KubeconfigError("user.token has characters that are not valid in a token");
    return { authorization: `Bearer ${token}` };
  }
  if (username === undefined || password === undefined) return {};
  return { authorization: `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}` };
}

/** A PEM text in base64; undefined if the field is absent. */
function readPem(fields: Fields, name: string, part: string): string | undefined {
  const text = readText(fields, name, part);
  if (text === undefined) return undefined;
  const pem = Buffer.from(text, "base64").toString("utf8");
  if (!pem.includes("-----BEGIN ")) throw new KubeconfigError(`${part}.${name} is not PEM in base64`);
  return pem;
}

/** Checks the certificates and the key, because otherwise the connection would fail with an unclear error. */
function checkTls({ ca, cert, key }: TlsMaterial): void {
  if ((cert === undefined) !== (key === undefined)) {
    throw new KubeconfigError("user has one of client-certificate-data and client-key-data without the other");
  }
  try {
    if (ca !== undefined) void new X509Certificate(ca);
  } catch {
    throw new KubeconfigError("cluster.certificate-authority-data contains no certificate that can be read");
  }
  if (key !== undefined && keyBits(key) > KEY_BITS_MAX) {
    throw new KubeconfigError(`user.client-key-data has more than ${KEY_BITS_MAX} bits`);
  }
  try {
    if (cert !== undefined && key !== undefined) createSecureContext({ cert, key });
  } catch {
    throw new KubeconfigError(
      "user.client-certificate-data and client-key-data cannot be read, or do not belong together",
    );
  }
}

/**
 * The length of an RSA key in bits; 0 for other keys, and for text that is not a key, which `createSecureContext`
 * refuses.
 */
function keyBits(pem: string): number {
  try {
    return createPrivateKey(pem).asymmetricKeyDetails?.modulusLength ?? 0;
  } catch {
    return 0;
  }
}

function requireText(fields: Fields, name: string, label: string): string {
  const value = fields[name];
  if (typeof value === "string" && value !== "") return value;
  throw new KubeconfigError(`${label} is missing`);
}

function readText(fields: Fields, name: string, part: string): string | undefined {
  const value = fields[name];
  if (value === undefined || value === null || value === "") return undefined;
  if (typeof value !== "string") throw new KubeconfigError(`${part}.${name} is not a string`);
  return value;
}
