import { parseDurationMs } from "../runtime/duration.ts";
import type { LogLevel } from "../telemetry/logger.ts";

// Parsers for the texts of options. Each throws an Error that says what a valid value is.

export const COMPONENTS = ["detector", "remediator"] as const;
export type Component = (typeof COMPONENTS)[number];

/** Groups of kinds of other projects. By default another controller acts on these kinds. */
export const FAMILIES = [
  "node-health-check",
  "machine-health-check",
  "okd-machine-health-check",
  "metal3-remediation",
  "okd-machine",
  "bare-metal-host",
] as const;
export type Family = (typeof FAMILIES)[number];

const LOG_LEVELS: readonly LogLevel[] = ["trace", "debug", "info", "warn", "error"];

/** Where a small HTTP server listens. */
export interface BindAddress {
  host: string;
  port: number;
}

/** Parses a DNS-1123 label, such as the name of a namespace or a Lease. */
export function parseKubernetesName(text: string): string {
  if (/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(text)) return text;
  throw new Error("must be a Kubernetes name: lower-case letters, digits and '-', at most 63 characters");
}

/** Parses the name of an object in a namespace, as `namespace/name`. */
export function parseNamespacedName(text: string): { namespace: string; name: string } {
  const [namespace = "", name = "", ...rest] = text.split("/");
  if (rest.length > 0 || namespace === "" || name === "") throw new Error("must be namespace/name");
  return { namespace: parseKubernetesName(namespace), name: parseKubernetesName(name) };
}

/** Parses names of clusters. `own` means the agent's own cluster, which is the empty text in the result. */
export function parseExternalEtcd(text: string): ReadonlySet<string> {
  return new Set(
    text.split(",").map((entry) => {
      if (entry.trim() === "own") return "";
      const { namespace, name } = parseNamespacedName(entry.trim());
      return `${namespace}/${name}`;
    }),
  );
}

export function parseText(text: string): string {
  if (text.trim() === "") throw new Error("must not be empty");
  return text;
}

/**
 * Parses the URL of an HTTP service, without credentials, because options appear in the log and other users of the
 * machine can read them.
 */
export function parseHttpUrl(text: string): string {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol))
    throw new Error("must be a URL that begins with http:// or https://");
  if (url.username !== "" || url.password !== "") throw new Error("must not contain a user or a password");
  return text;
}

export function parseBoolean(text: string): boolean {
  if (text === "true") return true;
  if (text === "false") return false;
  throw new Error("must be true or false");
}

/** Parses a duration above zero, in Go's form. @returns milliseconds. */
export function parseTimeout(text: string): number {
  const timeoutMs = parseDurationMs(text);
  if (timeoutMs === undefined || timeoutMs < 1) throw new Error("must be a duration above zero, such as 90s or 5m");
  return timeoutMs;
}

/** Parses a SHA-256 in hex, with or without colons. */
export function parseFingerprint(text: string): string {
  if (/^([0-9a-fA-F]{2}:?){31}[0-9a-fA-F]{2}$/.test(text)) return text;
  throw new Error("must be a SHA-256 in hex, with or without colons");
}

const TLS_VERSIONS = ["1.0", "1.1", "1.2", "1.3"] as const;

/** Returns a parser that accepts exactly the known names. */
export function parseOneOf<T extends string>(known: readonly T[]): (text: string) => T {
  return (text) => {
    const name = known.find((candidate) => candidate === text);
    if (name === undefined) throw new Error(`must be one of ${known.join(", ")}`);
    return name;
  };
}

export const parseTlsVersion = parseOneOf(TLS_VERSIONS);

const CIPHER_SUITES = [1, 2, 3, 15, 16, 17] as const;

/** Parses a list of IPMI cipher suites. Suite 0, which needs no password, is not allowed. */
export function parseCipherSuites(text: string): (typeof CIPHER_SUITES)[number][] {
  return text.split(",").map((part) => {
    const suite = CIPHER_SUITES.find((candidate) => String(candidate) === part.trim());
    if (suite === undefined) throw new Error(`must be a comma-separated list of ${CIPHER_SUITES.join(", ")}`);
    return suite;
  });
}

/** Parses an upper limit; 0 means no limit. */
export function parseLimit(text: string): number {
  if (!/^\d{1,6}$/.test(text)) throw new Error("must be a whole number, or 0 for no limit");
  return text === "0" ? Infinity : Number(text);
}

/** Parses the key of a label. */
export function parseLabelKey(text: string): string {
  if (/^([a-z0-9]([-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/.test(text)) return text;
  throw new Error("must be the key of a label, such as topology.kubernetes.io/zone");
}

export function parseComponents(text: string): ReadonlySet<Component> {
  return parseSet(text, COMPONENTS);
}

export function parseFamilies(text: string): ReadonlySet<Family> {
  return parseSet(text, FAMILIES);
}

/** Returns a function that proposes the values that begin with a text. */
export const proposeOf =
  (values: readonly string[]) =>
  (partial: string): string[] =>
    values.filter((value) => value.startsWith(partial));

export const proposeBooleans = proposeOf(["true", "false"]);
export const proposeLogLevels = proposeOf(LOG_LEVELS);
export const proposeOutputs = proposeOf(["table", "json"]);
export const proposeTlsVersions = proposeOf(TLS_VERSIONS);
export const proposeComponents = (partial: string): string[] => proposeList(partial, COMPONENTS);
export const proposeFamilies = (partial: string): string[] => proposeList(partial, FAMILIES);

/**
 * Proposes completions of a comma-separated list whose last name is not complete, with names that are not in it yet.
 */
function proposeList(partial: string, known: readonly string[]): string[] {
  const before = partial.slice(0, partial.lastIndexOf(",") + 1);
  const begun = partial.slice(before.length);
  const taken = before.split(",");
  return known.filter((name) => name.startsWith(begun) && !taken.includes(name)).map((name) => before + name);
}

function parseSet<T extends string>(text: string, known: readonly T[]): ReadonlySet<T> {
  const names = text.split(",").map((name) => name.trim());
  const found = names.map((name) => {
    const match = known.find((candidate) => candidate === name);
    if (match === undefined) {
      throw new Error(
        `must be a comma-separated list of ${known.join(", ")}; ${JSON.stringify(name)} is not one of them`,
      );
    }
    return match;
  });
  return new Set(found);
}

export function parseLogLevel(text: string): LogLevel {
  const level = LOG_LEVELS.find((candidate) => candidate === text);
  if (level === undefined) throw new Error(`must be one of ${LOG_LEVELS.join(", ")}`);
  return level;
}

export type OutputFormat = "table" | "json";

export function parseOutputFormat(text: string): OutputFormat {
  if (text === "table" || text === "json") return text;
  throw new Error("must be table or json");
}

/** Parses `host:port`, `:port` for every interface, `[v6]:port`, or `0` for no server. */
export function parseBindAddress(text: string): BindAddress | "off" {
  if (text === "0") return "off";
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]]*)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port > 65_535) throw new Error("must be host:port, :port, or 0 to switch the server off");
  const host = match[1] ?? match[2] ?? "";
  return { host: host === "" ? "::" : host, port };
}
