import type { BareMetalRemediation, BareMetalRemediationSpec } from "../../api/ironfence/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../../api/ironfence/bare-metal-remediation.ts";
import { REQUEST } from "../../api/names/labels.ts";
import { Controller } from "../../kube/reconcile/controller.ts";
import { isKubeError } from "../../kube/errors.ts";
import type { KubeObject, OwnerReference, ResourceType } from "../../kube/resource.ts";
import { apiVersionOf } from "../../kube/resource.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import { keyOf, keyText, parseKey } from "../../kube/watched.ts";

// What the requests of other kinds have in common (a Metal3Remediation, or an OKD Machine that asks for external
// remediation). A request fences nothing itself. It has exactly one child, a BareMetalRemediation, which does. The code
// here keeps the two in step. It has no state of its own, so it can restart at any time.

/** One family of requests. */
export interface RequestKind<T extends KubeObject> {
  /** Value of the label `ironfence.io/request` of its children, and the name in logs. */
  readonly family: "metal3-remediation" | "okd-machine";
  readonly type: ResourceType;
  /** Returns the parts of an object that the family needs; undefined if it asks for nothing. Must not throw. */
  trim(raw: KubeObject): T | undefined;
  /**
   * Takes one request a step further: creates or deletes its child, and mirrors the progress in the request. Called
   * when either changes, and again after an error or `requeueAfterMs`.
   *
   * @param child the watched child; undefined if there is none yet.
   */
  reconcile(
    request: T,
    child: BareMetalRemediation | undefined,
    signal: AbortSignal,
  ): Promise<{ requeueAfterMs?: number } | void>;
}

/** How many requests are reconciled at the same time. */
const CONCURRENCY = 8;
/** Longest wait after failures: a request must not wait long once the API server is back. */
const BACKOFF_MAX_MS = 15_000;

/** Serves every request of one family until `signal` aborts. When it settles, all its tasks have ended. */
export async function runRequests<T extends KubeObject>(
  runtime: KubeRuntime,
  kind: RequestKind<T>,
  signal: AbortSignal,
): Promise<void> {
  const ended = new AbortController();
  const running = AbortSignal.any([signal, ended.signal]);
  const requests = runtime.watch<T>({ type: kind.type, trim: (raw) => kind.trim(raw) }, running);
  const children = runtime.watch<BareMetalRemediation>(
    {
      type: BARE_METAL_REMEDIATIONS,
      labelSelector: `${REQUEST}=${kind.family}`,
      trim: (raw) => raw as BareMetalRemediation,
    },
    running,
  );
  const controller = new Controller(runtime, {
    name: kind.family,
    concurrency: CONCURRENCY,
    maxBackoffMs: BACKOFF_MAX_MS,
    reconcile: async (key, signal) => {
      const request = requests.get(parseKey(key));
      const wanted = request === undefined ? undefined : childName(request);
      let child: BareMetalRemediation | undefined;
      for (const found of children.values()) {
        if (requestKey(found) !== key) continue;
        if (found.metadata.name === wanted) child = found;
        // Its request is gone, but the garbage collector keeps a child that has a second owner.
        else await removeChild(runtime, found, signal);
      }
      if (request !== undefined) return kind.reconcile(request, child, signal);
    },
  });
  requests.subscribe(({ object }) => controller.enqueue(keyText(keyOf(object))));
  children.subscribe(({ object }) => controller.enqueue(requestKey(object)));
  try {
    await Promise.all([requests.whenSynced(running), children.whenSynced(running)]);
    await controller.run(running);
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    ended.abort(new Error(`requests of ${kind.family} have ended`));
  }
}

/** The most characters of a request's name in the name of its child, which may have 253 in all. */
const NAME_MAX = 244;

/**
 * The name of a request's only child. If a request is created again under the same name, its child has another name.
 */
export function childName({ metadata: { name, uid } }: KubeObject): string {
  return `${name.slice(0, NAME_MAX)}-${uid.slice(0, 8)}`;
}

/**
 * Creates the child if it does not exist yet.
 *
 * @param metadata.owners in addition to the request itself: if the request is not a Machine, its Machine shows which
 * node is meant.
 */
export async function createChild<T extends KubeObject>(
  { client }: Pick<KubeRuntime, "client">,
  kind: Pick<RequestKind<T>, "family" | "type">,
  request: T,
  spec: BareMetalRemediationSpec,
  { owners = [], annotations = {} }: { owners?: readonly OwnerReference[]; annotations?: Record<string, string> },
  signal: AbortSignal,
): Promise<void> {
  const { namespace, name, uid } = request.metadata;
  const self = { apiVersion: apiVersionOf(kind.type), kind: kind.type.kind, name, uid, controller: true };
  const others = owners.map(({ apiVersion, kind, name, uid }) => ({ apiVersion, kind, name, uid }));
  const child = {
    apiVersion: apiVersionOf(BARE_METAL_REMEDIATIONS),
    kind: BARE_METAL_REMEDIATIONS.kind,
    metadata: {
      ...(namespace !== undefined && { namespace }),
      name: childName(request),
      labels: { [REQUEST]: kind.family },
      annotations,
      ownerReferences: [self, ...others],
    },
    spec,
  };
  try {
    await client.create<BareMetalRemediation>(BARE_METAL_REMEDIATIONS, child, {}, signal);
  } catch (error) {
    // The child exists, but the watch did not show it yet.
    if (!isKubeError(error, "AlreadyExists")) throw error;
  }
}

/** Deletes the child, which undoes its changes before it disappears. */
export async function removeChild(
  { client }: Pick<KubeRuntime, "client">,
  child: BareMetalRemediation,
  signal: AbortSignal,
): Promise<void> {
  if (child.metadata.deletionTimestamp !== undefined) return;
  try {
    const guard = { uid: child.metadata.uid };
    await client.delete(BARE_METAL_REMEDIATIONS, keyOf(child), { guard }, signal);
  } catch (error) {
    if (!isKubeError(error, "NotFound", "Conflict")) throw error;
  }
}

/** The key of the request that a child serves, even after the garbage collector has removed the owner reference. */
function requestKey({ metadata }: BareMetalRemediation): string {
  const owner = metadata.ownerReferences?.find(({ controller }) => controller === true);
  const name = owner?.name ?? metadata.name.slice(0, -"-12345678".length);
  return keyText({ ...(metadata.namespace !== undefined && { namespace: metadata.namespace }), name });
}
