import type { ApiServer } from "../../hack/kube-mock/api-server.ts";
import { ApiError } from "../../hack/kube-mock/api-error.ts";
import { parseFieldSelector } from "../../hack/kube-mock/selectors.ts";
import type { KubeletClient } from "../../hack/rack/kubelet.ts";
import type { Pod } from "../../src/api/core.ts";
import { failureOf } from "../../src/kube/api-answers.ts";
import type { ObjectKey } from "../../src/kube/client.ts";
import type { ResourceType } from "../../src/kube/resource.ts";
import type { Clock } from "../../src/runtime/clock.ts";
import { sleep } from "../../src/runtime/clock.ts";

/** A kubelet that has just registered is not Ready at once: others see its Node before. */
const CREATE_MS = 20;

/**
 * The simulated kubelets' way into the store: the same checks as for any client, without JSON and without a wire. Kubelets are
 * part of the world, and they make most of its requests.
 */
export function kubeletClient(server: ApiServer, clock: Clock): KubeletClient {
  return {
    get: async (type, key, signal) => {
      signal.throwIfAborted();
      const found = server.collection(type).get(key);
      if (found === undefined) throw failed("get", type, key, new ApiError(404, "NotFound", "not found"));
      // The caller names the kind, which says what it looks like; so in all of these.
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
