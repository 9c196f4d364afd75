import { BmcError } from "../errors.ts";
import type { BmcErrorCode } from "../errors.ts";
import type { JsonObject } from "./json.ts";
import { isObject, listAt, objectAt, stringAt } from "./json.ts";

/** One answer of a Redfish service. */
export interface Answer {
  status: number;
  /** A header's value; undefined where it is missing or repeated. */
  header(name: string): string | undefined;
  /** The JSON object; empty where the answer had none and needed none. */
  body: JsonObject;
}

/** Message ids that say more than the status they come with: of DMTF's Base registry, then of iDRAC and iLO. */
const NOT_READY =
  /\b(?:ServiceTemporarilyUnavailable|ServiceShuttingDown|ServiceInUnknownState|SYS518|SWC0700|ResourceNotReadyRetry|UnableToModifyDuringSystemPOST)\b/;
const NOT_IN_THIS_STATE = /\b(?:ResourceInUse|ResourceInStandby|PSU50[12]|InvalidOperationForSystemState)\b/;
const SESSIONS_FULL = /\b(?:SessionLimitExceeded|CreateLimitReachedForResource|RAC0218)\b/;
const NO_PRIVILEGE = /\b(?:InsufficientPrivilege|InsufficientPrivilegeForOperationSpecified|PasswordChangeRequired)\b/;
const PASSWORD_CHANGE = /\bPasswordChangeRequired\b/;
const SERVICE_DISABLED = /\bServiceDisabled\b/;
const NOT_OFFERED =
  /\b(?:ActionNotSupported|ActionParameterNotSupported|ActionParameterValueNotInList|PropertyNotWritable|PropertyUnknown|PropertyValueNotInList)\b/;

/** Turns an answer that is no success into the error that says what to do about it. */
export function failure(what: string, answer: Answer): BmcError {
  const said = explain(answer.body);
  const message = `${what}: HTTP ${answer.status}${said === "" ? "" : `: ${said}`}`;
  const advice = mustChangePassword(answer) ? `; ${PASSWORD_CHANGE_ADVICE}` : "";
  return new BmcError(codeOf(answer), message + advice);
}

/** Whether the account may only change its password. */
export function mustChangePassword(answer: Answer): boolean {
  return messageIds(answer.body).some((id) => PASSWORD_CHANGE.test(id));
}

export const PASSWORD_CHANGE_ADVICE =
  "the account has to change its password before it may do anything else: change it on the BMC, then in the Secret";

/** Whether a login was refused because the BMC has its sessions switched off. */
export function sessionsDisabled(answer: Answer): boolean {
  return messageIds(answer.body).some((id) => SERVICE_DISABLED.test(id));
}

/** Whether the account, whose user and password are right, may not do it. */
export function lacksPrivilege(answer: Answer): boolean {
  return messageIds(answer.body).some((id) => NO_PRIVILEGE.test(id));
}

/** Whether a login was refused only because no session is free. */
export function sessionsFull(answer: Answer): boolean {
  return messageIds(answer.body).some((id) => SESSIONS_FULL.test(id));
}

/** The ids of the messages in an error answer, e.g. `Base.1.18.InsufficientPrivilege`. */
export function messageIds(body: JsonObject): readonly string[] {
  const error = objectAt(body, "error");
  const ids = extendedInfo(body).map((info) => stringAt(info, "MessageId") ?? stringAt(info, "MessageID"));
  return [stringAt(error, "code"), ...ids].filter((id) => id !== undefined);
}

function codeOf(answer: Answer): BmcErrorCode {
  const { status } = answer;
  const says = (pattern: RegExp): boolean => messageIds(answer.body).some((id) => pattern.test(id));
  if (status < 400) return "BadResponse";
  if (status === 429 || status === 503 || says(NOT_READY) || says(SESSIONS_FULL)) return "Busy";
  if (status === 403 || says(NO_PRIVILEGE)) return "PrivilegeTooLow";
  if (status === 401) return "AuthFailed";
  if (status === 405 || status === 501 || says(NOT_OFFERED)) return "Unsupported";
  // iDRAC may say so with a 500, which alone would leave open whether the order was carried out.
  if (says(NOT_IN_THIS_STATE)) return "Refused";
  if (status === 404 || status === 410 || status >= 500) return "BadResponse";
  return "Refused";
}

const MESSAGES_SHOWN_MAX = 3;
const MESSAGE_LENGTH_MAX = 200;

/** What the BMC says about it in words, of whatever language, cut and stripped to what a log line can bear. */
function explain(body: JsonObject): string {
  const error = objectAt(body, "error");
  const texts = extendedInfo(body).flatMap((info) => stringAt(info, "Message") ?? stringAt(info, "MessageId") ?? []);
  if (texts.length === 0) texts.push(...[stringAt(error, "message") ?? stringAt(error, "code") ?? []].flat());
  return texts
    .slice(0, MESSAGES_SHOWN_MAX)
    .map((text) =>
      text
        .slice(0, MESSAGE_LENGTH_MAX)
        .replaceAll(/[\p{C}\p{Z}]+/gu, " ")
        .trim(),
    )
    .join("; ");
}

function extendedInfo(body: JsonObject): readonly JsonObject[] {
  const name = "@Message.ExtendedInfo";
  const error = objectAt(body, "error");
  // Some services put the one message there instead of a list of one.
  return (listAt(error, name) ?? listAt(body, name) ?? [objectAt(error, name)]).filter((item) => isObject(item));
}
