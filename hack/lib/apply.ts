import { readFile, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { parse, parseAllDocuments } from "yaml";
import { ApiStatusError } from "./kube-api.ts";
import type { JsonObject, KubeApi } from "./kube-api.ts";

const ESTABLISHED_TIMEOUT_MS = 30_000;
const POLL_MS = 100;

/** An object of a manifest. */
export interface Manifest extends JsonObject {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: string; [key: string]: unknown };
}

/** Fields of a kustomization that this file supports. It does not implement other features of kustomize. */
const KUSTOMIZATION_KEYS = new Set(["apiVersion", "kind", "resources"]);

/**
 * Reads manifests from a YAML file, a folder with a kustomization.yaml (only its `resources`), or a folder of YAML
 * files.
 *
 * @throws Error if a kustomization uses anything but `resources`.
 */
export async function readManifests(path: string): Promise<Manifest[]> {
  if (!(await stat(path)).isDirectory()) {
    return parseAllDocuments(await readFile(path, "utf8"))
      .map((document) => document.toJS() as Manifest | null)
      .filter((manifest) => manifest !== null);
  }
  const names = await readdir(path);
  let resources = names.filter((name) => name.endsWith(".yaml")).sort();
  if (names.includes("kustomization.yaml")) {
    const kustomization = parse(await readFile(join(path, "kustomization.yaml"), "utf8")) as { resources: string[] };
    const unknown = Object.keys(kustomization).filter((key) => !KUSTOMIZATION_KEYS.has(key));
    if (unknown.length > 0) throw new Error(`${path}/kustomization.yaml: cannot do ${unknown.join(", ")}`);
    resources = kustomization.resources;
  }
  const nested = await Promise.all(resources.map((resource) => readManifests(join(path, resource))));
  return nested.flat();
}

/**
 * Applies manifests as `kubectl apply --server-side` does: CRDs first, namespaces next, then the rest in their order.
 *
 * @param change changes each manifest before it is applied.
 */
export async function applyManifests(
  api: KubeApi,
  path: string,
  change: (manifest: Manifest) => Manifest = (same) => same,
): Promise<Manifest[]> {
  const manifests = (await readManifests(path)).map(change);
  const rank = (manifest: Manifest): number =>
    manifest.kind === "CustomResourceDefinition" ? 0 : manifest.kind === "Namespace" ? 1 : 2;
  const ordered = manifests.toSorted((a, b) => rank(a) - rank(b));
  for (const manifest of ordered.filter((candidate) => rank(candidate) === 0)) {
    await applyObject(api, manifest);
    await waitUntilEstablished(api, manifest.metadata.name);
  }
  for (const manifest of ordered.filter((candidate) => rank(candidate) > 0)) await applyObject(api, manifest);
  return ordered;
}

/**
 * Creates or updates one object, or lets the server only check it. Without `force`, the server refuses to change a
 * field that another manager owns, as it does for kubectl.
 *
 * @returns the object as the server has stored it or would store it.
 */
export async function applyObject(
  api: KubeApi,
  manifest: Manifest,
  { dryRun = false, force = true }: { dryRun?: boolean; force?: boolean } = {},
): Promise<JsonObject> {
  const path = await objectPath(api, manifest);
  const query = `fieldManager=ironfence-harness&force=${force}${dryRun ? "&dryRun=All&fieldValidation=Strict" : ""}`;
  return (await api.send("PATCH", `${path}?${query}`, manifest, "application/apply-patch+yaml")) as JsonObject;
}

/**
 * Deletes manifests as `kubectl delete --ignore-not-found` does: requests each deletion in order, then waits until all
 * objects are gone.
 *
 * @throws Error with the objects that still exist after `withinMs`.
 */
export async function deleteManifests(api: KubeApi, manifests: readonly Manifest[], withinMs: number): Promise<void> {
  const paths = (await Promise.all(manifests.map((manifest) => findPath(api, manifest)))).filter(
    (path) => path !== undefined,
  );
  for (const path of paths) await api.delete(path);
  const deadlineMs = performance.now() + withinMs;
  let left = paths;
  while (performance.now() < deadlineMs) {
    const found = await Promise.all(left.map(async (path) => ((await api.find(path)) === undefined ? [] : [path])));
    left = found.flat();
    if (left.length === 0) return;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  const objects = await Promise.all(left.map((path) => api.find(path)));
  throw new Error(`not gone within ${withinMs / 1000} s: ${JSON.stringify(objects)}`);
}

/** The API path of an object; undefined if its kind is no longer served. */
export async function findPath(api: KubeApi, manifest: Manifest): Promise<string | undefined> {
  try {
    return await objectPath(api, manifest);
  } catch (error) {
    if (error instanceof ApiStatusError && error.status === 404) return undefined;
    throw error;
  }
}

/** The API path of an object, found by discovery. */
async function objectPath(api: KubeApi, manifest: Manifest): Promise<string> {
  const { apiVersion, kind, metadata } = manifest;
  const root = apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const { resources } = await api.get<{ resources: { name: string; kind: string; namespaced: boolean }[] }>(root);
  const resource = resources.find((candidate) => candidate.kind === kind && !candidate.name.includes("/"));
  if (resource === undefined) throw new Error(`the API server does not serve ${apiVersion} ${kind}`);
  const scope = resource.namespaced ? `/namespaces/${metadata.namespace ?? "default"}` : "";
  return `${root}${scope}/${resource.name}/${metadata.name}`;
}

/** Waits until the CRD is Established and discovery lists its kind. Both take some time after the CRD is applied. */
export async function waitUntilEstablished(api: KubeApi, name: string): Promise<void> {
  const deadlineMs = performance.now() + ESTABLISHED_TIMEOUT_MS;
  while (performance.now() < deadlineMs) {
    const crd = await api.get<{
      spec: { group: string; names: { plural: string }; versions: { name: string; storage: boolean }[] };
      status?: { conditions?: { type: string; status: string }[] };
    }>(`/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${name}`);
    const version = crd.spec.versions.find((candidate) => candidate.storage)?.name ?? "";
    const established = crd.status?.conditions?.some(
      (condition) => condition.type === "Established" && condition.status === "True",
    );
    if (established === true && (await isServed(api, `/apis/${crd.spec.group}/${version}/${crd.spec.names.plural}`))) {
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  throw new Error(`CRD ${name} was not established within ${ESTABLISHED_TIMEOUT_MS / 1000} s`);
}

async function isServed(api: KubeApi, path: string): Promise<boolean> {
  try {
    await api.get(`${path}?limit=1`);
    return true;
  } catch (error) {
    if (error instanceof ApiStatusError && (error.status === 404 || error.status === 503)) return false;
    throw error;
  }
}
