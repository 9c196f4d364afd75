import { isRecord } from "../../runtime/record.ts";
import { KubeError } from "../errors.ts";
import type { KubeTransport } from "../transport.ts";

/** The version of an API server. */
export interface ServerVersion {
  major: number;
  minor: number;
  /** As the server reports it, such as `v1.36.3`. */
  text: string;
}

const TIMEOUT_MS = 10_000;

/** Reads `/version`. @throws KubeError */
export async function readServerVersion(transport: KubeTransport, signal: AbortSignal): Promise<ServerVersion> {
  const path = "/version";
  const answer = await transport.send({ method: "GET", path, lane: "api", timeoutMs: TIMEOUT_MS }, signal);
  if (answer.status === 401) throw new KubeError("Unauthorized", `GET ${path}: 401 Unauthorized`, { status: 401 });
  const version = answer.status === 200 ? parseVersion(answer.body) : undefined;
  if (version !== undefined) return version;
  throw new KubeError("BadResponse", `GET ${path}: the answer (${answer.status}) is not the version of an API server`);
}

/** Some vendors append text to the numbers, such as `36+`; `parseInt` ignores it. */
function parseVersion(body: string): ServerVersion | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(body);
  } catch {
    return undefined;
  }
  if (!isRecord(parsed)) return undefined;
  const { major, minor, gitVersion } = parsed;
  if (typeof major !== "string" || typeof minor !== "string" || typeof gitVersion !== "string") return undefined;
  const numbers = [Number.parseInt(major, 10), Number.parseInt(minor, 10)] as const;
  return numbers.some(Number.isNaN) ? undefined : { major: numbers[0], minor: numbers[1], text: gitVersion };
}
