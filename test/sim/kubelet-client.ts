import type { ApiServer } from "../../hack/kube-mock/api-server.ts";
import { ApiError } from "../../hack/kube-mock/api-error.ts";
import { parseFieldSelector } from "../../hack/kube-mock/selectors.ts";
import type { KubeletClient } from "../../hack/rack/kubelet.ts";
import type { Pod } from "../../src/api/kubernetes/core.ts";
import { failureOf } from "../../src/kube/answers/api-answers.ts";
import type { ObjectKey } from "../../src/kube/client.ts";
import { KubeError } from "../../src/kube/errors.ts";
import type { ResourceType } from "../../src/kube/resource.ts";
import type { Clock } from "../../src/runtime/clock.ts";
import { sleep } from "../../src/runtime/clock.ts";

/** Delay of a registration, so that other clients see the Node before it is Ready. */
const CREATE_MS = 20;

/**
 * A client for simulated kubelets with direct access to the store: the same checks as for any client, without JSON and
 * transport. Kubelets are part of the world and send most requests.
 */
export function kubeletClient(server: ApiServer, clock: Clock): KubeletClient {
  return {
    get: async (type, key, signal) => {
      signal.throwIfAborted();
      const found = server.collection(type).get(key);
      if (found === undefined) throw failed("get", type, key, new ApiError(404, "NotFound", "not found"));
      // The kind that the caller names determines the type, also in the functions below.
      return found as never;
    },
    list: async (type, { fieldSelector = "" }, signal) => {
      signal.throwIfAborted();
      const fits = parseFieldSelector(fieldSelector, {
        "spec.nodeName": (object) => (object as unknown as Pod).spec.nodeName ?? "",
      });
      const all = [...server.collection(type).values()];
      const items = fits === undefined ? all : all.filter((object) => fits(object as never));
      return { items: items as never[], resourceVersion: "" };
    },
    create: async (type, object, _options, signal) => {
      signal.throwIfAborted();
      const key = { name: object.metadata.name ?? "" };
      const created = attempt("create", type, key, () => server.collection(type).create({ ...object }));
      await sleep(clock, CREATE_MS, signal);
      return created as never;
    },
    mergePatch: async (type, key, guard, content, { subresource }, signal) => {
      signal.throwIfAborted();
      const patch = { ...content, metadata: guard };
      return attempt("patch", type, key, () =>
        server.collection(type).mergePatch(key, patch, subresource === "status" ? "status" : undefined),
      ) as never;
    },
    delete: async (type, key, { guard, gracePeriodSeconds }, signal) => {
      signal.throwIfAborted();
      const options = { uid: guard.uid, ...(gracePeriodSeconds !== undefined && { gracePeriodSeconds }) };
      attempt("delete", type, key, () => server.collection(type).delete(key, options));
    },
  };
}

/** The network between kubelets and the API server. */
export interface KubeletNetwork {
  /** Hosts whose requests get no answer now. */
  readonly cut: Set<string>;
  /** Time in transit of a request. */
  latencyMs: () => number;
  /**
   * By how many milliseconds the clock of the API server that kubelets reach is ahead of the cluster's. It timestamps
   * their writes.
   */
  serverAheadMs: number;
}

/** The timeout of a real kubelet for its status requests, which is the period of its status. */
const REQUEST_TIMEOUT_MS = 10_000;

/**
 * Wraps the API client of one host's kubelet. A request that is sent while the host is cut off is lost, even if the
 * network comes back.
 */
export function networked(
  client: KubeletClient,
  clock: Clock,
  { host, network, server }: { host: string; network: KubeletNetwork; server: Pick<ApiServer, "jumpClock"> },
): KubeletClient {
  const pass = async <T>(signal: AbortSignal, send: () => Promise<T>): Promise<T> => {
    if (network.cut.has(host)) {
      await sleep(clock, REQUEST_TIMEOUT_MS, signal);
      throw new KubeError("Timeout", `the request of ${host} was lost`);
    }
    const latencyMs = network.latencyMs();
    if (latencyMs > 0) await sleep(clock, latencyMs, signal);
    if (network.serverAheadMs === 0) return send();
    // A request takes effect synchronously within its call.
    server.jumpClock(network.serverAheadMs);
    const answer = send();
    server.jumpClock(-network.serverAheadMs);
    return answer;
  };
  return {
    get: (type, key, signal) => pass(signal, () => client.get(type, key, signal)),
    list: (type, selection, signal) => pass(signal, () => client.list(type, selection, signal)),
    create: (type, object, options, signal) => pass(signal, () => client.create(type, object, options, signal)),
    mergePatch: (type, key, guard, content, options, signal) =>
      pass(signal, () => client.mergePatch(type, key, guard, content, options, signal)),
    delete: (type, key, options, signal) => pass(signal, () => client.delete(type, key, options, signal)),
  };
}

function attempt<T>(what: string, type: ResourceType, key: ObjectKey, act: () => T): T {
  try {
    return act();
  } catch (error) {
    throw error instanceof ApiError ? failed(what, type, key, error) : error;
  }
}

function failed(what: string, { plural }: ResourceType, { name }: ObjectKey, error: ApiError): Error {
  const body = JSON.stringify(error.toStatus());
  return failureOf(`${what} ${plural} ${name}`, { status: error.code, headers: {}, body });
}
