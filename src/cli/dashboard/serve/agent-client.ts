import type { Node } from "../../../api/kubernetes/core.ts";
import { NODES } from "../../../api/kubernetes/core-types.ts";
import { FENCING_TARGETS } from "../../../api/ironfence/fencing-target.ts";
import type { Family } from "../../../config/parsers.ts";
import type { KubeClient } from "../../../kube/client.ts";
import { KubeError } from "../../../kube/errors.ts";
import type { KubeObject } from "../../../kube/resource.ts";
import type { Watched } from "../../../kube/watched.ts";
import { KINDS_OF_FAMILIES } from "../../cluster/unread-versions.ts";

/**
 * The client by which the agent reads what its page shows. It writes nothing, and requests nothing for which the agent
 * has no permission. It takes the nodes from the agent's own view, because a list of all of them, as the API server
 * sends it, would not fit into the memory of the agent.
 */
export function agentClient(
  client: KubeClient,
  { families, nodes }: { families: ReadonlySet<Family>; nodes: Watched<Node> },
): KubeClient {
  const served = kindsOf([...families]);
  const foreign = kindsOf(FAMILIES);
  const isForeign = (text: string): boolean => foreign.has(text) && !served.has(text);
  const refuse = (): Promise<never> => Promise.reject(new Error("the page writes nothing"));
  return {
    get: (type, key, signal) => client.get(type, key, signal),
    list: async <T extends KubeObject>(...[type, options, signal]: Parameters<KubeClient["list"]>) => {
      if (type.group === NODES.group && type.kind === NODES.kind && isWhole(options)) {
        if (!nodes.synced) throw new KubeError("Unavailable", "the agent has not listed the nodes yet");
        return { items: [...nodes.values()] as unknown as T[], resourceVersion: "" };
      }
      // The agent has permission to list them only in its own namespace.
      if (type.kind === FENCING_TARGETS.kind && options.namespace === undefined) {
        throw new KubeError("Forbidden", "the agent lists no FencingTargets of other namespaces");
      }
      return client.list<T>(type, options, signal);
    },
    discover: async (apiVersion, kind, signal) =>
      isForeign(`${apiVersion.split("/", 1)[0] ?? ""} ${kind}`) ? undefined : client.discover(apiVersion, kind, signal),
    create: refuse,
    patch: refuse,
    mergePatch: refuse,
    delete: refuse,
  };
}

const FAMILIES = Object.keys(KINDS_OF_FAMILIES) as Family[];

function kindsOf(families: readonly Family[]): Set<string> {
  return new Set(families.flatMap((family) => KINDS_OF_FAMILIES[family].map(({ group, kind }) => `${group} ${kind}`)));
}

function isWhole({ labelSelector, fieldSelector }: { labelSelector?: string; fieldSelector?: string }): boolean {
  return labelSelector === undefined && fieldSelector === undefined;
}
