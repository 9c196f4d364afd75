import { failure } from "../http/answer.ts";
import type { RedfishAnswer } from "../http/answer.ts";
import type { Call } from "../http/connection.ts";
import { EMPTY } from "../http/json.ts";
import type { JsonObject } from "../http/json.ts";
import { pathOnOrigin } from "../http/reference.ts";
import type { BmcMemory } from "../../gate/memory/bmc-memory.ts";
import { BmcError } from "../../interface/errors.ts";

const ROOT = "/redfish/v1/";

export const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 307, 308]);

/**
 * The statuses of a service that does not serve plain HTTP: Forbidden and Upgrade Required (RFC 9110, section 15.5).
 */
const NOT_BY_PLAIN_HTTP: ReadonlySet<number> = new Set([403, 426]);

export interface ServiceRootDeps {
  origin: string;
  memory: BmcMemory;
  /** Sends a read without credentials. */
  send: (call: Call, signal: AbortSignal) => Promise<RedfishAnswer>;
  /** Called if the service does not serve Redfish now, although it did before: the BMC may have restarted. */
  onMissing: () => void;
}

/** The service root: what a Redfish service shows before a login. */
export class ServiceRoot {
  readonly #deps: ServiceRootDeps;
  #root: JsonObject | undefined;

  constructor(deps: ServiceRootDeps) {
    this.#deps = deps;
  }

  /** Reads the root. It is read only once, because it changes only with the firmware. */
  async read(signal: AbortSignal): Promise<JsonObject> {
    if (this.#root !== undefined) return this.#root;
    const { origin, send } = this.#deps;
    let answer = await send({ method: "GET", path: ROOT }, signal);
    if (REDIRECTS.has(answer.status)) {
      const path = pathOnOrigin(origin, answer.header("location"), "the redirect from the root");
      answer = await send({ method: "GET", path }, signal);
    }
    // DSP0266 requires a root that any client can read. If it cannot be read, the usual paths and basic authentication
    // are used.
    if (answer.status === 401) return EMPTY;
    if (answer.status === 404) throw this.#servesNothing();
    if (answer.status !== 200) throw failure(`GET ${origin}${ROOT}`, answer);
    this.#root = answer.body;
    return answer.body;
  }

  #servesNothing(): BmcError {
    const { origin, memory, onMissing } = this.#deps;
    const what = `${origin} serves no Redfish (HTTP 404 at ${ROOT})`;
    if (!memory.redfishOrigins.has(origin)) return new BmcError("Unsupported", what);
    onMissing();
    return new BmcError("Busy", `${what}: it did before, so the BMC may still be starting`);
  }

  /**
   * Checks whether a plain HTTP address redirects any client to another address, before a password is sent to it in
   * clear text.
   *
   * @throws BmcError Unsupported if it does.
   */
  async refuseRedirect(signal: AbortSignal): Promise<void> {
    const { origin, memory, send } = this.#deps;
    if (!origin.startsWith("http:") || memory.plainHttpOrigins.has(origin)) return;
    const answer = await send({ method: "GET", path: ROOT }, signal);
    const isRedirect = answer.status >= 300 && answer.status < 400;
    const location = isRedirect ? answer.header("location") : undefined;
    const target = location === undefined ? undefined : URL.parse(location, origin)?.origin;
    if (target !== undefined && target !== origin) {
      const what = `${origin} redirects to ${target.slice(0, 200)}`;
      throw new BmcError("Unsupported", `${what}: use that address; no password has been sent`);
    }
    if ((isRedirect || NOT_BY_PLAIN_HTTP.has(answer.status)) && target === undefined) {
      const what = `${origin} answers HTTP ${answer.status} to plain HTTP`;
      throw new BmcError("Unsupported", `${what}: use its https address; no password has been sent`);
    }
    if (answer.status === 200) this.#root = answer.body;
    memory.plainHttpOrigins.add(origin);
  }
}
