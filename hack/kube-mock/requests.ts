import {
  ApiError,
  badRequest,
  conflict,
  invalid,
  methodNotAllowed,
  noSuchResource,
  unsupportedMediaType,
} from "./api-error.ts";
import type { Catalog } from "./catalog.ts";
import { discover, SERVER_VERSION } from "./discovery.ts";
import { isObject, listOf, objectOf, textOf } from "./json.ts";
import type { JsonObject } from "./json.ts";
import { listText, parseSelection } from "./list.ts";
import type { DeleteRequest, Registry, Target, WriteOptions } from "./registry.ts";
import type { ServedResource } from "./resource.ts";
import { parseRoute } from "./routes.ts";
import type { Route } from "./routes.ts";
import type { Store, Stored } from "./store.ts";
import { toTime } from "../../src/runtime/time.ts";
import type { Clock } from "../../src/runtime/clock.ts";

/** A complete answer. */
export interface Answer {
  status: number;
  contentType: "application/json" | "text/plain";
  body: string;
  warnings: readonly string[];
}

export interface RequestParts {
  method: string;
  path: string;
  query: URLSearchParams;
  contentType: string;
  body: string;
}

interface Deps {
  store: Store;
  catalog: Catalog;
  registry: Registry;
  clock: Pick<Clock, "nowMs">;
}

type ResourceRoute = Extract<Route, { kind: "resource" }>;

/**
 * Answers every request except watches. It awaits nothing, so a request takes effect as a whole or not at all.
 *
 * @throws ApiError if the answer is an error Status.
 */
export function answer(deps: Deps, request: RequestParts): Answer {
  const route = parseRoute(request.path);
  switch (route.kind) {
    case "resource":
      return answerResource(deps, route, request);
    case "other":
      return answerOther(route.path);
    default: {
      const found = discover(deps.catalog, route);
      return found === undefined ? pageNotFound() : json(200, JSON.stringify(found));
    }
  }
}

function answerOther(path: string): Answer {
  if (path === "/version") return json(200, JSON.stringify(SERVER_VERSION));
  if (["/healthz", "/livez", "/readyz"].includes(path)) return { ...pageNotFound(), status: 200, body: "ok" };
  return pageNotFound();
}

function pageNotFound(): Answer {
  return { status: 404, contentType: "text/plain", body: "404 page not found\n", warnings: [] };
}

function json(status: number, body: string, warnings: readonly string[] = []): Answer {
  return { status, contentType: "application/json", body, warnings };
}

/** The resource of a route. @returns undefined if its group and version are not served. */
export function findResource(catalog: Catalog, route: ResourceRoute): ServedResource | undefined {
  const resource = catalog.find(route.apiVersion, route.plural);
  if (resource === undefined && catalog.resources(route.apiVersion) !== undefined) throw noSuchResource();
  return resource;
}

function answerResource(deps: Deps, route: ResourceRoute, request: RequestParts): Answer {
  const resource = findResource(deps.catalog, route);
  if (resource === undefined) return pageNotFound();
  const target = { namespace: resource.namespaced ? route.namespace : "", name: route.name };
  if (target.name === "") return answerCollection(deps, resource, target, request);
  if (resource.namespaced && target.namespace === "") throw noSuchResource();
  switch (route.subresource) {
    case "":
      return answerObject(deps, resource, target, request);
    case "status":
      if (!resource.hasStatus) throw noSuchResource();
      return answerSubresource(deps, resource, target, "status", request);
    case "finalize":
      if (resource.kind !== "Namespace" || request.method !== "PUT") throw noSuchResource();
      return answerSubresource(deps, resource, target, "finalize", request);
    case "binding":
      if (resource.kind !== "Pod") throw noSuchResource();
      return bind(deps, resource, target, request);
    case "eviction":
      if (resource.kind !== "Pod") throw noSuchResource();
      return evict(deps, resource, target, request);
    default:
      throw noSuchResource();
  }
}

function answerCollection(deps: Deps, resource: ServedResource, target: Target, request: RequestParts): Answer {
  const { store, registry } = deps;
  switch (request.method) {
    case "GET":
      return json(200, listText(store, resource, target.namespace, request.query));
    case "POST": {
      if (resource.namespaced && target.namespace === "") throw methodNotAllowed();
      const sent = parseBody(resource, request);
      const written = registry.create(resource, target.namespace, sent, writeOptions(request, ""));
      return json(201, written.stored.text(resource), written.unknown);
    }
    case "DELETE": {
      const selection = parseSelection(resource, target.namespace, request.query);
      const options = deleteRequest(request);
      const doomed = [...store.collection(resource.storage).values()].filter(
        ({ object }) => selection === undefined || selection(object),
      );
      for (const { object } of doomed) {
        const { namespace = "", name } = object.metadata;
        registry.delete(resource, { namespace, name }, options);
      }
      return json(200, JSON.stringify({ kind: "Status", apiVersion: "v1", metadata: {}, status: "Success" }));
    }
    default:
      throw methodNotAllowed();
  }
}

function answerObject(deps: Deps, resource: ServedResource, target: Target, request: RequestParts): Answer {
  const { registry } = deps;
  switch (request.method) {
    case "GET":
      return json(200, registry.get(resource, target).text(resource));
    case "PUT":
    case "PATCH":
      return write(registry, resource, target, "", request);
    case "DELETE": {
      const { stored, removed } = registry.delete(resource, target, deleteRequest(request));
      if (!removed || resource.strategy.returnsDeleted) return json(200, stored.text(resource));
      return json(200, deletedText(resource, stored));
    }
    default:
      throw methodNotAllowed();
  }
}

function answerSubresource(
  { registry }: Deps,
  resource: ServedResource,
  target: Target,
  subresource: "status" | "finalize",
  request: RequestParts,
): Answer {
  switch (request.method) {
    case "GET":
      return json(200, registry.get(resource, target).text(resource));
    case "PUT":
    case "PATCH":
      return write(registry, resource, target, subresource, request);
    default:
      throw methodNotAllowed();
  }
}

function write(
  registry: Registry,
  resource: ServedResource,
  target: Target,
  subresource: WriteOptions["subresource"],
  request: RequestParts,
): Answer {
  const options = writeOptions(request, subresource);
  const written =
    request.method === "PUT"
      ? registry.replace(resource, target, parseBody(resource, request), options)
      : registry.patch(resource, target, request.contentType, request.body, options);
  return json(written.created ? 201 : 200, written.stored.text(resource), written.unknown);
}

/** Handles the write of the scheduler, which binds a pod to a node once. */
function bind(deps: Deps, resource: ServedResource, target: Target, request: RequestParts): Answer {
  if (request.method !== "POST") throw methodNotAllowed();
  const nodeName = textOf(objectOf(parseJson(request.body)["target"])["name"]);
  const pod = deps.registry.get(resource, target).object;
  const known = textOf(objectOf(pod["spec"])["nodeName"]);
  if (known !== "") {
    const why = `pod ${target.name} is already assigned to node "${known}"`;
    throw conflict(resource, "pods/binding", target.name, why);
  }
  deps.registry.bind(resource, target, nodeName, toTime(deps.clock.nowMs()));
  return json(201, JSON.stringify({ kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", code: 201 }));
}

/**
 * Handles an eviction by deleting the pod. PodDisruptionBudgets are not implemented; tests refuse evictions with a
 * fault.
 */
function evict({ registry }: Deps, resource: ServedResource, target: Target, request: RequestParts): Answer {
  if (request.method !== "POST") throw methodNotAllowed();
  const sent = parseJson(request.body);
  if (sent["kind"] !== "Eviction" || sent["apiVersion"] !== "policy/v1") throw badRequest("an Eviction is expected");
  const options = JSON.stringify(objectOf(sent["deleteOptions"]));
  registry.delete(resource, target, deleteRequest({ ...request, method: "DELETE", body: options }));
  return json(201, JSON.stringify({ kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", code: 201 }));
}

function deletedText(resource: ServedResource, { object }: Stored): string {
  const { group, plural } = resource;
  const { name, uid } = object.metadata;
  const details = { name, ...(group !== "" && { group }), kind: plural, uid };
  return JSON.stringify({ kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", details });
}

function parseBody(resource: ServedResource, { body, contentType }: RequestParts): JsonObject {
  if (contentType !== "application/json" && contentType !== "") {
    throw unsupportedMediaType(
      "the body of the request was in an unknown format - accepted media types include: application/json",
    );
  }
  try {
    return parseJson(body);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    throw badRequest(`the object provided is unrecognized (must be of type ${resource.kind}): ${error.message}`);
  }
}

function parseJson(text: string): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw badRequest(`json parse error: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (!isObject(value)) throw badRequest("the body must be an object");
  return value;
}

function writeOptions({ query }: RequestParts, subresource: WriteOptions["subresource"]): WriteOptions {
  return {
    subresource,
    dryRun: parseDryRun(query.getAll("dryRun"), "CreateOptions"),
    strict: query.get("fieldValidation") === "Strict",
  };
}

/** @throws ApiError 422 for anything but `All`. */
function parseDryRun(values: readonly unknown[], options: string): boolean {
  const asked = values.filter((value) => value !== "");
  if (asked.some((value) => value !== "All")) {
    const message = `Unsupported value: ${JSON.stringify(asked)}: supported values: "All"`;
    throw invalid("meta.k8s.io", options, "", [{ reason: "FieldValueNotSupported", message, field: "dryRun" }]);
  }
  return asked.length > 0;
}

/** Options of a deletion, from the query and, taking precedence, from the body. */
function deleteRequest({ query, body }: RequestParts): DeleteRequest {
  const options = body.trim() === "" ? {} : parseJson(body);
  const { uid, resourceVersion } = objectOf(options["preconditions"]);
  const queryGrace = query.get("gracePeriodSeconds");
  const grace = options["gracePeriodSeconds"] ?? (queryGrace === null ? undefined : Number(queryGrace));
  const policy = options["propagationPolicy"] ?? query.get("propagationPolicy");
  return {
    preconditions: {
      ...(typeof uid === "string" && { uid }),
      ...(typeof resourceVersion === "string" && { resourceVersion }),
    },
    gracePeriodSeconds: typeof grace === "number" && Number.isFinite(grace) ? grace : undefined,
    propagationPolicy: typeof policy === "string" ? policy : undefined,
    dryRun: parseDryRun([...listOf(options["dryRun"]), ...query.getAll("dryRun")], "DeleteOptions"),
  };
}
