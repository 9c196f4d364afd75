import { NODES } from "../../api/kubernetes/core-types.ts";
import type { Node } from "../../api/kubernetes/core.ts";
import { readNode, readNodeMarks } from "../../api/kubernetes/read-node.ts";
import type { JsonPatchOperation, KubeClient } from "../../kube/client.ts";
import { isKubeError, KubeError } from "../../kube/errors.ts";
import type { KubeObject } from "../../kube/resource.ts";

/** The most tries of one guarded patch, because a kubelet or another controller may write in between. */
const TRIES_MAX = 5;

/** The live node; undefined if there is none, or if `name` is undefined. */
export async function getNode(
  client: KubeClient,
  name: string | undefined,
  signal: AbortSignal,
  read: (raw: KubeObject) => Node = readNode,
): Promise<Node | undefined> {
  if (name === undefined) return undefined;
  try {
    return read(await client.get(NODES, { name }, signal));
  } catch (error) {
    if (isKubeError(error, "NotFound")) return undefined;
    if (error instanceof TypeError)
      throw new KubeError("BadResponse", `get Node ${name}: ${error.message}`, { cause: error });
    throw error;
  }
}

/**
 * Reads the node live and applies the patch that `patchFor` returns, guarded by UID and resourceVersion. After a failed
 * guard it reads the node again.
 *
 * @param watched the watched node, which saves the live read of the first try. `patchFor` must work on a trimmed node.
 * @returns the node as it is now; undefined if there is none, or if `name` is undefined.
 */
export async function patchNode(
  client: KubeClient,
  name: string | undefined,
  patchFor: (node: Node) => readonly JsonPatchOperation[],
  signal: AbortSignal,
  watched?: Node,
): Promise<Node | undefined> {
  for (let tried = 1; ; tried += 1) {
    const node = tried === 1 && watched !== undefined ? watched : await getNode(client, name, signal, readNodeMarks);
    if (name === undefined || node === undefined) return undefined;
    const operations = patchFor(node);
    if (operations.length === 0) return node;
    const { uid, resourceVersion } = node.metadata;
    try {
      return await client.patch<Node>(NODES, { name }, { uid, resourceVersion }, operations, {}, signal);
    } catch (error) {
      if (tried < TRIES_MAX && isKubeError(error, "Conflict", "NotFound")) continue;
      throw error;
    }
  }
}
