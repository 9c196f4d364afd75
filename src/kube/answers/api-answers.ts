import { abortReason } from "../../runtime/clock.ts";
import { DeadlineError } from "../../runtime/deadline.ts";
import { isRecord } from "../../runtime/record.ts";
import { sharedText } from "../../runtime/text/shared-text.ts";
import type { KubeErrorCode } from "../errors.ts";
import { isKubeError, KubeError } from "../errors.ts";
import type { KubeObject, ResourceType } from "../resource.ts";
import { apiVersionOf } from "../resource.ts";
import type { TransportResponse } from "../transport.ts";

/** A longer wait is shortened to this: one request too many is better than a long stop because of a wrong header. */
const RETRY_AFTER_MAX_MS = 60_000;
/** How much of a server's message goes into an error. */
const MESSAGE_LENGTH_MAX = 1_024;

/** `metav1.StatusReason`: one word. */
const REASON = /^[A-Za-z]{1,64}$/;

/** The fields of `metav1.Status` that are read. */
interface ApiStatus {
  message?: string;
  reason?: string;
  code?: number;
  details?: { retryAfterSeconds?: number; causes?: { message?: string }[] };
}

/** Parses the object in `answer`. @throws KubeError BadResponse if it is not a Kubernetes object. */
export function parseObject(what: string, answer: TransportResponse): KubeObject {
  const object = parseJson(what, answer.body);
  if (!isKubeObject(object)) throw new KubeError("BadResponse", `${what}: the answer is not a Kubernetes object`);
  return object;
}

/** Parses a page of a list. Lists of built-in types leave out the kind of each item, so it is added. */
export function parseList(
  what: string,
  type: ResourceType,
  answer: TransportResponse,
): { items: KubeObject[]; resourceVersion: string; continueToken: string | undefined } {
  const list = parseJson(what, answer.body);
  const broken = (): KubeError =>
    new KubeError("BadResponse", `${what}: the answer is not a list of Kubernetes objects`);
  if (!isRecord(list) || !isRecord(list["metadata"])) throw broken();
  const { resourceVersion, continue: token } = list["metadata"];
  // Go writes an empty list of some kinds as null.
  const rawItems = list["items"] ?? [];
  if (typeof resourceVersion !== "string" || !Array.isArray(rawItems)) throw broken();
  const items = rawItems.map((item: unknown) => {
    const object = completeKind(type, item);
    if (!isStoredObject(object)) throw broken();
    return object;
  });
  return { items, resourceVersion, continueToken: typeof token === "string" && token !== "" ? token : undefined };
}

/**
 * Sets `apiVersion` and `kind`, which lists of built-in types leave out of their items. The item is changed in place:
 * the time that a copy takes would depend on what the server sends.
 */
export function completeKind(type: ResourceType, item: unknown): unknown {
  return isRecord(item) ? Object.assign(item, { apiVersion: sharedText(apiVersionOf(type)), kind: type.kind }) : item;
}

/**
 * Whether `value` has the fields that every stored object has. Answers that are not stored (access reviews) have fewer.
 */
export function isStoredObject(value: unknown): value is KubeObject {
  if (!isKubeObject(value)) return false;
  const { name, uid, resourceVersion }: { name?: unknown; uid?: unknown; resourceVersion?: unknown } = value.metadata;
  return typeof name === "string" && typeof uid === "string" && typeof resourceVersion === "string";
}

function isKubeObject(value: unknown): value is KubeObject {
  if (!isRecord(value) || !isRecord(value["metadata"])) return false;
  return typeof value["apiVersion"] === "string" && typeof value["kind"] === "string";
}

/** The error for an unsuccessful answer. */
export function failureOf(what: string, answer: TransportResponse): KubeError {
  const status = readStatus(answer.body);
  return errorOfStatus(what, answer.status, status, retryAfterMs(answer, status));
}

/** The error for a `metav1.Status` in an ERROR event of a watch. */
export function failureOfStatusObject(what: string, object: unknown): KubeError {
  const status = asStatus(object);
  return errorOfStatus(what, status?.code ?? 500, status, undefined);
}

/** Turns the errors of a call through `withDeadline` into KubeErrors that name the call. */
export async function asCallError<T>(what: string, signal: AbortSignal, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (signal.aborted && !isKubeError(error)) {
      throw new KubeError("Aborted", `${what}: ${abortReason(signal).message}`, { cause: error });
    }
    if (error instanceof DeadlineError) throw new KubeError("Timeout", error.message, { cause: error });
    if (isKubeError(error) && !error.message.startsWith(what)) {
      const { status, reason, retryAfterMs } = error;
      throw new KubeError(error.code, `${what}: ${error.message}`, {
        ...(status !== undefined && { status }),
        ...(reason !== undefined && { reason }),
        ...(retryAfterMs !== undefined && { retryAfterMs }),
        cause: error,
      });
    }
    throw error;
  }
}

function errorOfStatus(
  what: string,
  httpStatus: number,
  status: ApiStatus | undefined,
  retryAfterMs: number | undefined,
): KubeError {
  if (isUnfittingPatch(httpStatus, status)) {
    const text = `${what}: the object is not what the patch expects (another UID, another version, or a change of the tested fields)`;
    return new KubeError("Conflict", text, { status: httpStatus, reason: "Invalid" });
  }
  const text = (
    status?.message ?? (status === undefined ? "the answer does not come from an API server" : "no reason given")
  ).slice(0, MESSAGE_LENGTH_MAX);
  const code = codeOf(httpStatus, status?.reason);
  return new KubeError(code, `${what}: ${httpStatus} ${status?.reason ?? code}: ${text}`, {
    status: httpStatus,
    ...(status?.reason !== undefined && { reason: status.reason }),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  });
}

/**
 * Whether a JSON patch did not fit the object: a `test` failed, or a path does not exist. The API server then answers
 * 422 Invalid without `causes` (seen on 1.36). If the schema does not allow the object, the answer names the fields in
 * `causes`.
 */
function isUnfittingPatch(httpStatus: number, status: ApiStatus | undefined): boolean {
  return httpStatus === 422 && status?.reason === "Invalid" && (status.details?.causes ?? []).length === 0;
}

function codeOf(httpStatus: number, reason: string | undefined): KubeErrorCode {
  switch (httpStatus) {
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "NotFound";
    case 405:
      return "MethodNotAllowed";
    case 409:
      return reason === "AlreadyExists" ? "AlreadyExists" : "Conflict";
    case 410:
      return "Gone";
    case 422:
      return "Invalid";
    case 429:
      return "TooManyRequests";
    default:
      if (httpStatus >= 500) return "Unavailable";
      return httpStatus >= 400 ? "BadRequest" : "BadResponse";
  }
}

function retryAfterMs(answer: TransportResponse, status: ApiStatus | undefined): number | undefined {
  // The header may also be a date (RFC 9110, 10.2.3); the API server sends seconds.
  const header = answer.headers["retry-after"];
  const seconds = header === undefined ? status?.details?.retryAfterSeconds : Number(header);
  if (seconds === undefined || !Number.isFinite(seconds) || seconds < 0) return undefined;
  return Math.min(seconds * 1_000, RETRY_AFTER_MAX_MS);
}

function readStatus(body: string): ApiStatus | undefined {
  try {
    return asStatus(JSON.parse(body));
  } catch {
    return undefined;
  }
}

/**
 * A `metav1.Status`; undefined for anything else. Other text must not get into an error, which tenants can read: a
 * tenant's kubeconfig may point to a service that is not an API server, and the answer may be confidential.
 */
function asStatus(object: unknown): ApiStatus | undefined {
  if (!isRecord(object) || object["kind"] !== "Status") return undefined;
  const { message, reason, code, details } = object;
  const { retryAfterSeconds, causes } = isRecord(details) ? details : {};
  return {
    ...(typeof message === "string" && { message }),
    ...(typeof reason === "string" && REASON.test(reason) && { reason }),
    ...(typeof code === "number" && { code }),
    details: {
      ...(typeof retryAfterSeconds === "number" && { retryAfterSeconds }),
      causes: (Array.isArray(causes) ? causes : []).map((cause: unknown) =>
        isRecord(cause) && typeof cause["message"] === "string" ? { message: cause["message"] } : {},
      ),
    },
  };
}

function parseJson(what: string, body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    // The cause is left out because it quotes the answer, which may be a Secret.
    throw new KubeError("BadResponse", `${what}: the answer is not JSON`);
  }
}
