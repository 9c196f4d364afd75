import { NODES } from "../../api/kubernetes/core-types.ts";
import type { Node } from "../../api/kubernetes/core.ts";
import { DRILL } from "../../api/names/annotations.ts";
import { isKubeError } from "../../kube/errors.ts";
import { pointer } from "../../kube/objects/json-pointer.ts";
import { setField } from "../../kube/objects/set-field.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import { sleep } from "../../runtime/clock.ts";
import { CommandRefusal } from "../errors/failures.ts";
import { findNode } from "../hosts/targets.ts";

// A cordon has no owner in Kubernetes. A drill marks the cordon that it sets, and removes no other.

const UNSCHEDULABLE = "/spec/unschedulable";
const MARK = ["metadata", "annotations", DRILL] as const;
/** How often a write is tried. The kubelet writes its Node, too. */
const TRIES_MAX = 5;
const RETRY_MS = 500;

/** Whether a node has the cordon with this mark. */
export function hasCordon({ metadata, spec }: Node, mark: string): boolean {
  return spec.unschedulable === true && metadata.annotations?.[DRILL] === mark;
}

/**
 * Cordons a node under a mark. The patch fails if another user has changed the node since it was read.
 *
 * @throws CommandRefusal if the node is already cordoned, or was deleted. Then nothing was changed.
 */
export async function cordon(runtime: KubeRuntime, planned: Node, mark: string, signal: AbortSignal): Promise<void> {
  const { name, uid } = planned.metadata;
  let node = planned;
  for (let tries = 1; ; tries += 1) {
    if (node.spec.unschedulable === true) {
      throw new CommandRefusal(
        "Refused",
        `no drill on node ${name}, since another user or tool has cordoned it. Nothing was changed`,
      );
    }
    const guard = { uid, resourceVersion: node.metadata.resourceVersion };
    const operations = [{ op: "add" as const, path: UNSCHEDULABLE, value: true }, ...setField(node, MARK, mark)];
    try {
      await runtime.client.patch<Node>(NODES, { name }, guard, operations, {}, signal);
      return;
    } catch (error) {
      if (!isKubeError(error, "Conflict") || tries === TRIES_MAX) throw error;
    }
    const live = await findNode(runtime, name, signal);
    if (live?.metadata.uid !== uid) {
      throw new CommandRefusal("Refused", `no drill on node ${name}, since it was deleted. Nothing was changed`);
    }
    node = live;
  }
}

/**
 * Removes the cordon with this mark, and the mark. A node that another user has uncordoned or cordoned since stays as
 * it is.
 *
 * @returns whether the node had that cordon.
 */
export async function uncordon(runtime: KubeRuntime, of: Node, mark: string, signal: AbortSignal): Promise<boolean> {
  const { name, uid } = of.metadata;
  for (let tries = 1; ; tries += 1) {
    const node = await findNode(runtime, name, signal);
    if (node?.metadata.uid !== uid || node.metadata.annotations?.[DRILL] !== mark) return false;
    const isCordoned = hasCordon(node, mark);
    const path = pointer(...MARK);
    try {
      await runtime.client.patch<Node>(
        NODES,
        { name },
        { uid },
        [
          { op: "test", path, value: mark },
          { op: "remove", path },
          ...(isCordoned
            ? [
                { op: "test" as const, path: UNSCHEDULABLE, value: true },
                { op: "remove" as const, path: UNSCHEDULABLE },
              ]
            : []),
        ],
        {},
        signal,
      );
      return isCordoned;
    } catch (error) {
      const mayWorkLater = isKubeError(error) && (error.retryable || error.code === "Conflict");
      if (!mayWorkLater || tries === TRIES_MAX) throw error;
    }
    await sleep(runtime.clock, RETRY_MS, signal);
  }
}
