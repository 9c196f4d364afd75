import { BmcError } from "../../interface/errors.ts";
import type { BmcErrorCode } from "../../interface/errors.ts";
import type { JsonObject } from "./json.ts";
import { arrayAt, objectAt, stringAt } from "./json.ts";
import { isRecord } from "../../../runtime/record.ts";

/** One answer of a Redfish service. */
export interface RedfishAnswer {
  status: number;
  /** The value of a header; undefined if it is missing or repeated. */
  header(name: string): string | undefined;
  /** The JSON object; empty if the answer had none and needed none. */
  body: JsonObject;
  /** Replaces the credentials that were sent in a text of the BMC, before the text is shown. */
  hide: (text: string) => string;
}

/** Message ids that are more precise than the HTTP status, from the Base registry of DMTF, iDRAC and iLO. */
const NOT_READY =
  /\b(?:ServiceTemporarilyUnavailable|ServiceShuttingDown|ServiceInUnknownState|SYS518|SWC0700|ResourceNotReadyRetry|UnableToModifyDuringSystemPOST)\b/;
const NOT_IN_THIS_STATE = /\b(?:ResourceInUse|ResourceInStandby|PSU50[12]|InvalidOperationForSystemState)\b/;
const SESSIONS_FULL = /\b(?:SessionLimitExceeded|CreateLimitReachedForResource|RAC0218)\b/;
const NO_PRIVILEGE = /\b(?:InsufficientPrivilege|InsufficientPrivilegeForOperationSpecified|PasswordChangeRequired)\b/;
const PASSWORD_CHANGE = /\bPasswordChangeRequired\b/;
const SERVICE_DISABLED = /\bServiceDisabled\b/;
const NOT_OFFERED =
  /\b(?:ActionNotSupported|ActionParameterNotSupported|ActionParameterValueNotInList|PropertyNotWritable|PropertyUnknown|PropertyValueNotInList)\b/;

/** The error for an answer that is not a success. */
export function failure(what: string, answer: RedfishAnswer): BmcError {
  const explanation = explain(answer);
  const message = `${what}: HTTP ${answer.status}${explanation === "" ? "" : `: ${explanation}`}`;
  const advice = mustChangePassword(answer) ? `; ${PASSWORD_CHANGE_ADVICE}` : "";
  return new BmcError(codeOf(answer), message + advice);
}

/** Whether the account may only change its password. */
export function mustChangePassword(answer: RedfishAnswer): boolean {
  return messageIds(answer.body).some((id) => PASSWORD_CHANGE.test(id));
}

export const PASSWORD_CHANGE_ADVICE =
  "the account must change its password before it may do anything else: change it on the BMC, then in the Secret";

/** Whether a login was refused because sessions are disabled on the BMC. */
export function sessionsDisabled(answer: RedfishAnswer): boolean {
  return messageIds(answer.body).some((id) => SERVICE_DISABLED.test(id));
}

/** Whether user and password are correct, but the account lacks the privilege. */
export function lacksPrivilege(answer: RedfishAnswer): boolean {
  return messageIds(answer.body).some((id) => NO_PRIVILEGE.test(id));
}

/** Whether a login was refused only because no session is free. */
export function sessionsFull(answer: RedfishAnswer): boolean {
  return messageIds(answer.body).some((id) => SESSIONS_FULL.test(id));
}

/** The ids of the messages in an error answer, for example `Base.1.18.InsufficientPrivilege`. */
export function messageIds(body: JsonObject): readonly string[] {
  const error = objectAt(body, "error");
  const ids = extendedInfo(body).map((info) => stringAt(info, "MessageId") ?? stringAt(info, "MessageID"));
  return [stringAt(error, "code"), ...ids].filter((id) => id !== undefined);
}

function codeOf(answer: RedfishAnswer): BmcErrorCode {
  const { status } = answer;
  const hasMessage = (pattern: RegExp): boolean => messageIds(answer.body).some((id) => pattern.test(id));
  if (status < 400) return "BadResponse";
  if (status === 429 || status === 503 || hasMessage(NOT_READY) || hasMessage(SESSIONS_FULL)) return "Busy";
  if (status === 403 || hasMessage(NO_PRIVILEGE)) return "PrivilegeTooLow";
  if (status === 401) return "AuthFailed";
  if (status === 405 || status === 501 || hasMessage(NOT_OFFERED)) return "Unsupported";
  // iDRAC may report this with status 500. The status alone would not show whether the order was carried out.
  if (hasMessage(NOT_IN_THIS_STATE)) return "Refused";
  if (status === 404 || status === 410 || status >= 500) return "BadResponse";
  return "Refused";
}

const MESSAGES_SHOWN_MAX = 3;
const MESSAGE_LENGTH_MAX = 200;

/** The texts of the BMC, in the language of the BMC, shortened and cleaned for a log line. */
function explain({ body, hide }: RedfishAnswer): string {
  const error = objectAt(body, "error");
  const texts = extendedInfo(body).flatMap((info) => stringAt(info, "Message") ?? stringAt(info, "MessageId") ?? []);
  if (texts.length === 0) texts.push(...[stringAt(error, "message") ?? stringAt(error, "code") ?? []].flat());
  return texts
    .slice(0, MESSAGES_SHOWN_MAX)
    .map((text) =>
      // Hide before shortening: a part of a password is a secret as well.
      hide(text)
        .slice(0, MESSAGE_LENGTH_MAX)
        .replaceAll(/[\p{C}\p{Z}]+/gu, " ")
        .trim(),
    )
    .join("; ");
}

function extendedInfo(body: JsonObject): readonly JsonObject[] {
  const name = "@Message.ExtendedInfo";
  const error = objectAt(body, "error");
  // Some services have one message here instead of a list.
  return (arrayAt(error, name) ?? arrayAt(body, name) ?? [objectAt(error, name)]).filter((item) => isRecord(item));
}
