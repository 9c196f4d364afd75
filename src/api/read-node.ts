import type { KubeObject } from "../kube/resource.ts";
import type { Node } from "./core.ts";
import { isRecord } from "./foreign.ts";

/** What a field must be, where it is there at all. */
type Shape =
  | "string"
  | "boolean"
  | "number"
  | "texts"
  | { listOf: Shape }
  | { fields: Readonly<Record<string, Shape>>; needs?: readonly string[] };

const TAINT: Shape = {
  fields: { key: "string", effect: "string", value: "string", timeAdded: "string" },
  needs: ["key", "effect"],
};
const CONDITION: Shape = {
  fields: { type: "string", status: "string", reason: "string", message: "string", lastTransitionTime: "string" },
  needs: ["type", "status"],
};
const OWNER: Shape = {
  fields: { apiVersion: "string", kind: "string", name: "string", uid: "string", controller: "boolean" },
  needs: ["apiVersion", "kind", "name", "uid"],
};
const NODE: Shape = {
  fields: {
    metadata: {
      fields: {
        labels: "texts",
        annotations: "texts",
        finalizers: { listOf: "string" },
        ownerReferences: { listOf: OWNER },
        generateName: "string",
        generation: "number",
        creationTimestamp: "string",
        deletionTimestamp: "string",
      },
    },
    spec: { fields: { taints: { listOf: TAINT }, providerID: "string", unschedulable: "boolean" } },
    status: {
      fields: {
        conditions: { listOf: CONDITION },
        nodeInfo: { fields: { bootID: "string", systemUUID: "string", machineID: "string" } },
      },
    },
  },
};

/** What is kept of an identity that a kubelet reports: real ones have 36 characters, and what is kept is stored in other objects. */
const IDENTITY_LENGTH_MAX = 256;

/**
 * A Node whose fields, as far as they are read, have the types that Kubernetes gives them. The API server of a workload cluster may
 * be anybody's, and the identities are a kubelet's word.
 *
 * @throws TypeError naming the field that has another type.
 */
export function readNode(raw: KubeObject): Node {
  const wrong = misshapen(raw, NODE, "");
  if (wrong !== undefined) throw new TypeError(`${wrong} is not what a Node has there`);
  const node = raw as Partial<Node> & KubeObject;
  const { nodeInfo } = node.status ?? {};
  const identities = Object.entries(nodeInfo ?? {}).map(([name, value]) => [
    name,
    typeof value === "string" ? value.slice(0, IDENTITY_LENGTH_MAX) : value,
  ]);
  return {
    ...node,
    spec: node.spec ?? {},
    status: { ...node.status, ...(nodeInfo !== undefined && { nodeInfo: Object.fromEntries(identities) }) },
  };
}

/** The path of the first field that is not of its shape; undefined where all are. */
function misshapen(value: unknown, shape: Shape, path: string): string | undefined {
  if (typeof shape === "string" && shape !== "texts") return typeof value === shape ? undefined : path;
  if (shape === "texts") {
    return isRecord(value) && Object.values(value).every((text) => typeof text === "string") ? undefined : path;
  }
  if ("listOf" in shape) {
    return Array.isArray(value) ? firstOf(value, (item) => misshapen(item, shape.listOf, path)) : path;
  }
  if (!isRecord(value)) return path;
  const { fields, needs = [] } = shape;
  if (needs.some((name) => value[name] === undefined)) return path;
  return firstOf(Object.entries(fields), ([name, inner]) =>
    value[name] === undefined ? undefined : misshapen(value[name], inner, `${path}.${name}`),
  );
}

function firstOf<T>(items: readonly T[], find: (item: T) => string | undefined): string | undefined {
  for (const item of items) {
    const found = find(item);
    if (found !== undefined) return found;
  }
  return undefined;
}
