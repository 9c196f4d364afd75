import type { JsonObject } from "./json.ts";
import { BmcError } from "../../interface/errors.ts";
import { isRecord } from "../../../runtime/record.ts";

const HIDDEN = "[secret]";
/** A shorter secret is not replaced, because ordinary words may contain it. */
const LENGTH_MIN = 4;
/**
 * How many secrets are kept. Each login sends the password again and adds one token, so the password is never the
 * oldest.
 */
const KEPT_MAX = 16;

/**
 * The passwords and tokens that were sent to one BMC. A BMC may repeat its request in the text of an error, and with
 * basic authentication each request contains the password.
 */
export class SentSecrets {
  #sent: readonly string[] = [];
  /** The forms in which a BMC may repeat them. The longest is first, because one form may be a part of another. */
  #forms: readonly string[] = [];

  /** Records the credentials in a request, right before it is sent. */
  note(headers: Readonly<Record<string, string>>, body: Readonly<Record<string, unknown>>): void {
    const { authorization, "x-auth-token": token } = headers;
    const encoded = authorization?.replace(/^Basic /u, "");
    if (encoded !== undefined) {
      const login = Buffer.from(encoded, "base64").toString();
      // A user name has no colon (RFC 7617).
      this.#add(login.slice(login.indexOf(":") + 1));
      this.#add(encoded);
    }
    if (token !== undefined) this.#add(token);
    const { UserName: user, Password: password } = body;
    if (typeof password !== "string") return;
    this.#add(password);
    this.#add(Buffer.from(`${String(user)}:${password}`).toString("base64"));
  }

  /** Replaces what was sent in `text`, in every encoding that a BMC may use. */
  hide(text: string): string {
    return this.#forms.reduce((hidden, form) => hidden.replaceAll(form, HIDDEN), text);
  }

  /** Applies `hide` to each text in `body`. Call it before a text is changed, so that every secret is found. */
  hideInBody(body: JsonObject): JsonObject {
    return Object.fromEntries(Object.entries(body).map(([name, value]) => [name, this.#hideInValue(value)]));
  }

  #hideInValue(value: unknown): unknown {
    if (typeof value === "string") return value.length < LENGTH_MIN ? value : this.hide(value);
    if (Array.isArray(value)) return value.map((item) => this.#hideInValue(item));
    return isRecord(value) ? this.hideInBody(value) : value;
  }

  /**
   * Returns `error`, or if it repeats what was sent, an error that does not. That one has no causes, because they may
   * repeat it as well.
   */
  hideIn(error: BmcError): BmcError {
    const isRepeated = chainOf(error).some(({ message }) => this.hide(message) !== message);
    return isRepeated ? new BmcError(error.code, this.hide(error.message)) : error;
  }

  #add(value: string): void {
    if (value.length < LENGTH_MIN || this.#sent.at(-1) === value) return;
    this.#sent = [...this.#sent.filter((sent) => sent !== value), value].slice(-KEPT_MAX);
    this.#forms = [...new Set(this.#sent.flatMap(formsOf))].toSorted((a, b) => b.length - a.length);
  }
}

function formsOf(value: string): readonly string[] {
  const escaped = JSON.stringify(value).slice(1, -1);
  const encoded = encodeURIComponent(value.toWellFormed());
  // Other encoders also encode these characters, write hexadecimal digits in lower case, or write a blank as a plus.
  const strictly = encoded.replaceAll(/[!'()*]/gu, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);
  const lower = (text: string): string => text.replaceAll(/%[0-9A-F]{2}/gu, (code) => code.toLowerCase());
  const forms = [value, escaped, escaped.replaceAll("/", "\\/"), encoded, strictly, lower(encoded), lower(strictly)];
  forms.push(strictly.replaceAll("%20", "+"), Buffer.from(value).toString("base64"));
  return forms;
}

/** Causes are at most a few levels deep: an error of the driver, of the service, of the connection, of a socket. */
function chainOf(error: Error): readonly Error[] {
  const chain: Error[] = [];
  for (let at: unknown = error; at instanceof Error && chain.length < 10; at = at.cause) chain.push(at);
  return chain;
}
