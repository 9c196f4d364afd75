import { createHash } from "node:crypto";
import type { Clock } from "../../src/runtime/clock.ts";
import type { Random } from "../../src/runtime/random.ts";
import type { Secret } from "../../src/runtime/secret.ts";
import type { Bmc } from "../rack/bmc.ts";
import { AccountTable, isAllowed } from "./accounts.ts";
import type { Account } from "./accounts.ts";
import { failure, success } from "./answer.ts";
import type { Answer, Body } from "./answer.ts";
import type { BootIn, Endpoint, Operation, OrderStyle, ResetTypesIn, ServiceState } from "./endpoint.ts";
import { findEndpoint } from "./endpoints.ts";
import { SessionTable } from "./sessions.ts";
import { TaskTable } from "./tasks.ts";

/** One complete request. */
export interface ServiceRequest {
  method: string;
  /** Path and query. */
  path: string;
  /** Lower-case names. */
  headers: Readonly<Record<string, string | undefined>>;
  body: string;
}

export interface ServiceOptions {
  clock: Clock;
  random: Random;
  /** BMCs by the id of their System. */
  bmcs: ReadonlyMap<string, Bmc>;
  username: string;
  password: Secret;
  sessionsMax: number;
  resetTypesIn: ResetTypesIn;
  bootIn: BootIn;
}

/** A Redfish service (DSP0266) without sockets. It answers each request from the present state of the rack. */
export class RedfishService implements ServiceState {
  readonly clock: Clock;
  readonly bmcs: ReadonlyMap<string, Bmc>;
  readonly resetTypesIn: ResetTypesIn;
  readonly bootIn: BootIn;
  readonly uuid: string;
  readonly accounts: AccountTable;
  readonly sessions: SessionTable;
  readonly tasks: TaskTable;

  constructor(options: ServiceOptions) {
    const { clock, random, username, password } = options;
    this.clock = clock;
    this.bmcs = options.bmcs;
    this.resetTypesIn = options.resetTypesIn;
    this.bootIn = options.bootIn;
    this.uuid = random.uuid();
    this.accounts = new AccountTable(random);
    this.accounts.add({ username, password, roleId: "Administrator", enabled: true });
    this.sessions = new SessionTable({ clock, random }, options.sessionsMax);
    this.tasks = new TaskTable(clock);
  }

  handle(request: ServiceRequest, style: OrderStyle): Answer {
    const answer = this.#answer(request, style);
    answer.headers["odata-version"] = "4.0";
    answer.headers["cache-control"] = "no-cache";
    return answer;
  }

  #answer(request: ServiceRequest, style: OrderStyle): Answer {
    const { pathname, searchParams } = new URL(request.path, "http://mock");
    const endpoint = findEndpoint(this, pathname);
    const version = request.headers["odata-version"];
    if (version !== undefined && version !== "4.0") {
      return failure(412, "PreconditionFailed", `OData-Version ${version} is not supported.`);
    }
    const account = this.#authenticate(request);
    const isRead = request.method === "GET" || request.method === "HEAD";
    const operation = endpoint && operationOf(endpoint, request.method);
    const isPublic = isRead
      ? endpoint?.isPublic === true
      : operation !== undefined && operation.privilege === undefined;
    if (account === undefined && !isPublic) {
      return failure(401, "NoValidSession", "There is no valid session established with the implementation.", {
        headers: { "www-authenticate": 'Basic realm="redfish"' },
      });
    }
    if (endpoint === undefined) {
      return failure(404, "ResourceMissingAtURI", `The resource at the URI '${pathname}' was not found.`);
    }
    const allow = allowOf(endpoint);
    if (isRead && endpoint.getAnswer !== undefined) return endpoint.getAnswer();
    if (isRead && endpoint.get !== undefined) {
      const unsupported = [...searchParams.keys()].find((name) => name.startsWith("$") || name === "only");
      if (unsupported !== undefined) {
        return failure(501, "QueryNotSupported", `The query parameter '${unsupported}' is not supported.`);
      }
      return this.#read(request, endpoint.get(), allow);
    }
    if (operation === undefined) {
      return failure(405, "OperationNotAllowed", `The method ${request.method} is not allowed.`, {
        headers: { allow },
      });
    }
    if (account !== undefined && operation.privilege !== undefined && !isAllowed(account, operation.privilege)) {
      return failure(403, "InsufficientPrivilege", "The account does not have the required privilege.");
    }
    return this.#write(request, endpoint, operation, style);
  }

  #read(request: ServiceRequest, body: Body | string, allow: string): Answer {
    if (typeof body === "string") return success(200, body, { allow, "content-type": "application/xml" });
    const headers = { allow, ...describedBy(body), etag: etagOf(body) };
    if (request.headers["if-none-match"] === headers.etag) return success(304, undefined, headers);
    return success(200, withEtag(body), headers);
  }

  #write(request: ServiceRequest, endpoint: Endpoint, operation: Operation, style: OrderStyle): Answer {
    const ifMatch = request.headers["if-match"];
    if (ifMatch !== undefined && ifMatch !== "*") {
      const current = endpoint.get?.();
      // An action has no state and so no ETag. Some BMCs refuse such a request in the same way.
      if (current === undefined || typeof current === "string" || etagOf(current) !== ifMatch) {
        return failure(412, "PreconditionFailed", "The ETag supplied did not match the current ETag.");
      }
    }
    const body = request.body === "" ? {} : parseObject(request.body);
    if (body === undefined) {
      return failure(400, "MalformedJSON", "The request body submitted was malformed JSON.");
    }
    // DSP0266, "PATCH (update)": annotations are ignored, and a request that contains only annotations is refused.
    const content = Object.fromEntries(Object.entries(body).filter(([name]) => !name.startsWith("@odata.")));
    if (request.method === "PATCH" && Object.keys(content).length === 0) {
      return failure(400, "NoOperation", "The request body submitted contains no data to act upon.");
    }
    const answer = operation.run(content, style);
    if (request.method !== "PATCH" || answer.status !== 200 || typeof answer.body !== "object") return answer;
    return success(200, withEtag(answer.body), { etag: etagOf(answer.body) });
  }

  #authenticate(request: ServiceRequest): Account | undefined {
    const token = request.headers["x-auth-token"];
    if (token !== undefined) return this.sessions.use(token)?.account;
    const [scheme, credentials] = (request.headers["authorization"] ?? "").split(" ", 2);
    if (scheme?.toLowerCase() !== "basic" || credentials === undefined) return undefined;
    const text = Buffer.from(credentials, "base64").toString();
    const colon = text.indexOf(":");
    return colon < 0 ? undefined : this.accounts.authenticate(text.slice(0, colon), text.slice(colon + 1));
  }
}

function allowOf(endpoint: Endpoint): string {
  const writes = (["POST", "PATCH", "DELETE"] as const).filter((method) => endpoint[method] !== undefined);
  const reads = endpoint.get === undefined && endpoint.getAnswer === undefined ? [] : ["GET", "HEAD"];
  return [...reads, ...writes].join(", ");
}

function operationOf(endpoint: Endpoint, method: string): Operation | undefined {
  return method === "POST" || method === "PATCH" || method === "DELETE" ? endpoint[method] : undefined;
}

function etagOf(body: Body): string {
  return `"${createHash("sha256").update(JSON.stringify(body)).digest("hex").slice(0, 16)}"`;
}

/** Adds the ETag to a resource. The OData documents have another form and get none. */
function withEtag(body: Body): Body {
  return "@odata.id" in body ? { ...body, "@odata.etag": etagOf(body) } : body;
}

/** Headers that name the schema of a resource, from its `@odata.type`, for example `#Chassis.v1_25_0.Chassis`. */
function describedBy(body: Body): Record<string, string> {
  const schema = /^#(.+)\.[^.]+$/.exec(String(body["@odata.type"]))?.[1];
  return schema === undefined ? {} : { link: `<http://redfish.dmtf.org/schemas/v1/${schema}.json>; rel=describedby` };
}

function parseObject(text: string): Body | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Body) : undefined;
  } catch {
    return undefined;
  }
}
