import type { ResourceType } from "../../src/kube/resource.ts";

/** One reason of a `Status` (`metav1.StatusCause`). */
export interface Cause {
  reason: CauseReason;
  message: string;
  /** Dotted path; absent if the cause is not about a field. */
  field?: string;
}

export type CauseReason =
  | "FieldValueRequired"
  | "FieldValueInvalid"
  | "FieldValueTypeInvalid"
  | "FieldValueNotSupported"
  | "FieldValueForbidden"
  | "FieldValueDuplicate"
  | "FieldValueTooLong"
  | "FieldValueTooMany"
  | "NamespaceTerminating"
  | "ResourceVersionTooLarge";

interface Details {
  name?: string;
  group?: string;
  kind?: string;
  causes?: readonly Cause[];
  retryAfterSeconds?: number;
}

/** An error answer of the API server. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly code: number;
  /** `metav1.Status.reason`; empty if the real server sends none. */
  readonly reason: string;
  readonly details: Details | undefined;

  constructor(code: number, reason: string, message: string, details?: Details) {
    super(message);
    this.code = code;
    this.reason = reason;
    this.details = details;
  }

  /** The body of the answer: a `metav1.Status`. */
  toStatus(): object {
    return {
      kind: "Status",
      apiVersion: "v1",
      metadata: {},
      status: "Failure",
      message: this.message,
      ...(this.reason !== "" && { reason: this.reason }),
      ...(this.details !== undefined && { details: this.details }),
      code: this.code,
    };
  }
}

type Named = Pick<ResourceType, "group" | "plural" | "kind">;

function qualified(word: string, group: string): string {
  return group === "" ? word : `${word}.${group}`;
}

function detailsOf(type: Named, word: string, name: string): Details {
  return { ...(name !== "" && { name }), ...(type.group !== "" && { group: type.group }), kind: word };
}

export function notFound(type: Named, name: string): ApiError {
  const message = `${qualified(type.plural, type.group)} "${name}" not found`;
  return new ApiError(404, "NotFound", message, detailsOf(type, type.plural, name));
}

/** The answer for a path in a known group that does not exist. */
export function noSuchResource(): ApiError {
  return new ApiError(404, "NotFound", "the server could not find the requested resource", {});
}

export function methodNotAllowed(): ApiError {
  return new ApiError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {});
}

export function alreadyExists(type: Named, name: string): ApiError {
  const message = `${qualified(type.plural, type.group)} "${name}" already exists`;
  return new ApiError(409, "AlreadyExists", message, detailsOf(type, type.plural, name));
}

export const MODIFIED = "the object has been modified; please apply your changes to the latest version and try again";

/** @param word the plural for updates. If a precondition of a deletion fails, the server names the kind instead. */
export function conflict(type: Named, word: string, name: string, why: string): ApiError {
  const message = `Operation cannot be fulfilled on ${qualified(word, type.group)} "${name}": ${why}`;
  return new ApiError(409, "Conflict", message, detailsOf(type, word, name));
}

export function badRequest(message: string): ApiError {
  return new ApiError(400, "BadRequest", message);
}

export function invalid(group: string, kind: string, name: string, causes: readonly Cause[]): ApiError {
  const texts = causes.map(({ field, message }) => `${field ?? ""}: ${message}`);
  const why = texts.length === 1 ? texts[0] : `[${texts.join(", ")}]`;
  return new ApiError(422, "Invalid", `${qualified(kind, group)} "${name}" is invalid: ${why}`, {
    ...detailsOf({ group, plural: kind, kind }, kind, name),
    causes,
  });
}

/** A JSON patch that cannot be applied, for example because a `test` fails. */
export function patchRejected(): ApiError {
  return new ApiError(422, "Invalid", "the server rejected our request due to an error in our request", {});
}

export function unsupportedMediaType(message: string): ApiError {
  return new ApiError(415, "UnsupportedMediaType", message, {});
}

/** The answer to a request for history that is no longer kept. */
export function expired(message: string): ApiError {
  return new ApiError(410, "Expired", message);
}
