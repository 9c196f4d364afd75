import type { HostIdentity } from "../identity/host-identity.ts";
import type { PowerReading } from "../interface/driver.ts";
import { BmcError } from "../interface/errors.ts";
import type { BmcErrorCode } from "../interface/errors.ts";
import { EMPTY, objectAt, parseJsonObject, stringAt } from "../redfish/http/json.ts";
import { TIME_WINDOW_S } from "./signature.ts";
import { printable } from "../../runtime/text/printable.ts";

// Parses the answers of a driver server (docs/reference/driver.md). Pure. The text in an answer is untrusted.

/** How many characters of a text of the server are shown or kept. */
const TEXT_LENGTH_MAX = 200;

/** One whole answer. */
export interface DriverAnswer {
  status: number;
  text: string;
  /** Whether a signature or a nonce proves that the server gave this answer to this request. */
  isProven: boolean;
}

/** The power and the identity of the host, read at one time. */
export interface DriverStatus {
  reading: PowerReading;
  identity: HostIdentity;
}

/**
 * @param device the address, for messages.
 * @throws BmcError BadResponse for a status that breaks the contract; otherwise as `requireTaken`.
 */
export function parseStatus(what: string, device: string, answer: DriverAnswer): DriverStatus {
  requireTaken(what, answer);
  if (answer.status !== 200) throw new BmcError("BadResponse", `${what}: HTTP ${answer.status} instead of 200`);
  const body = parseJsonObject(answer.text, what);
  const state = stringAt(body, "state");
  if (state === undefined) throw new BmcError("BadResponse", `${what}: the answer has no state`);
  const raw = short(state);
  const identity = objectAt(body, "identity");
  const values = (["serialNumber", "manufacturer", "model"] as const).flatMap((name) => {
    const value = short(stringAt(identity, name) ?? "").trim();
    return value === "" ? [] : [[name, value]];
  });
  const systemUUID = short(stringAt(identity, "systemUUID") ?? "")
    .trim()
    .toLowerCase();
  return {
    reading: { state: state === "Off" || state === "On" || state === "Changing" ? state : "Unknown", raw },
    identity: { ...Object.fromEntries(values), ...(systemUUID !== "" && { systemUUID }), device },
  };
}

/**
 * Returns if the answer shows that the server carried out the request.
 *
 * @throws BmcError for every other answer, and for one that is not proven: an attacker on the network could have sent
 * it.
 */
export function requireTaken(what: string, answer: DriverAnswer): void {
  const { status, isProven } = answer;
  const explanation = explain(answer);
  const message = `${what}: HTTP ${status}${explanation === "" ? "" : `: ${explanation}`}`;
  if (status >= 300 && status < 400) {
    throw new BmcError(
      "Unsupported",
      `${message}: redirects are not followed: use the address that the server redirects to`,
    );
  }
  if (isProven) {
    if (status === 200 || status === 202 || status === 204) return;
    throw new BmcError(PROVEN[status] ?? "BadResponse", message);
  }
  if (status === 401) {
    const advice = `the server refuses the key or the client certificate, or its clock differs from that of ironfence by more than ${TIME_WINDOW_S} s`;
    throw new BmcError("AuthFailed", `${message}: ${advice}`);
  }
  // After any other answer the order may have been carried out, because a proxy may have sent the answer.
  if (status === 429 || status === 503) throw new BmcError("Busy", message);
  throw new BmcError(
    "BadResponse",
    `${message}: the answer is not proven to belong to this request: it has no valid signature, or, without a key, not the nonce of the request`,
  );
}

/** The error code for each status of a proven answer, as the contract defines it. */
const PROVEN: Readonly<Partial<Record<number, BmcErrorCode>>> = {
  400: "Unsupported",
  401: "AuthFailed",
  403: "PrivilegeTooLow",
  404: "SystemNotFound",
  405: "Unsupported",
  409: "Refused",
  429: "Busy",
  501: "Unsupported",
  503: "Busy",
};

/** The `error` of an answer, if it has one. */
function explain({ text }: DriverAnswer): string {
  try {
    return short(stringAt(text === "" ? EMPTY : parseJsonObject(text, ""), "error") ?? "");
  } catch (error) {
    if (error instanceof BmcError) return "";
    throw error;
  }
}

function short(text: string): string {
  return printable(text.slice(0, TEXT_LENGTH_MAX));
}
