import type { KubeObject } from "../../kube/resource.ts";
import type { Node } from "./core.ts";
import { isRecord } from "../../runtime/record.ts";

/** The type that a field must have if it is present. Null counts as absent. */
type Shape =
  | "string"
  | "boolean"
  | "number"
  | "texts"
  | { listOf: Shape }
  | { fields: readonly (readonly [name: string, shape: Shape])[]; needs: readonly string[] };

/** Lists the fields once, in advance, because every Node that arrives is compared with them. */
function object(fields: Readonly<Record<string, Shape>>, needs: readonly string[] = []): Shape {
  return { fields: Object.entries(fields), needs };
}

const TAINT = object({ key: "string", effect: "string", value: "string", timeAdded: "string" }, ["key", "effect"]);
const CONDITION = object(
  { type: "string", status: "string", reason: "string", message: "string", lastTransitionTime: "string" },
  ["type", "status"],
);
const OWNER = object(
  {
    apiVersion: "string",
    kind: "string",
    name: "string",
    uid: "string",
    controller: "boolean",
    blockOwnerDeletion: "boolean",
  },
  ["apiVersion", "kind", "name", "uid"],
);
const NODE = object({
  apiVersion: "string",
  kind: "string",
  metadata: object({
    name: "string",
    uid: "string",
    resourceVersion: "string",
    labels: "texts",
    annotations: "texts",
    finalizers: { listOf: "string" },
    ownerReferences: { listOf: OWNER },
    generateName: "string",
    generation: "number",
    creationTimestamp: "string",
    deletionTimestamp: "string",
  }),
  spec: object({ taints: { listOf: TAINT }, providerID: "string", unschedulable: "boolean" }),
  status: object({
    conditions: { listOf: CONDITION },
    nodeInfo: object({ bootID: "string", systemUUID: "string", machineID: "string" }),
  }),
});

/**
 * The longest identity of a node that is kept, in characters. Real ones have 36. The kubelet chooses the text, and
 * ironfence stores it in other objects.
 */
const IDENTITY_LENGTH_MAX = 256;

/**
 * Reads the fields of a Node that ironfence uses, and checks their types. The API server of a workload cluster is not
 * trusted, so no other field is copied, and long identities are cut off.
 *
 * @throws TypeError naming the field that has another type.
 */
export function readNode(raw: KubeObject): Node {
  const wrong = misshapen(raw, NODE);
  if (wrong !== undefined) throw new TypeError(`${wrong} does not have the type that it has in a Node`);
  const node = named(raw, NODE) as Partial<Node> & KubeObject;
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

/**
 * Reads a Node so that its marks can be changed. A status that `readNode` would refuse is replaced by an empty one: a
 * kubelet that reports invalid values must not be able to keep a taint on its node.
 *
 * @throws TypeError as `readNode`, for fields outside the status.
 */
export function readNodeMarks(raw: KubeObject): Node {
  const { status } = raw as Partial<Node>;
  const isSound = status === undefined || misshapen({ status }, NODE) === undefined;
  return readNode(isSound ? raw : ({ ...raw, status: {} } as KubeObject));
}

/**
 * Copies the fields that the shape names, without those that are null. Go writes a time that is not set as null, and a
 * null field counts as absent (API conventions, "Optional vs. Required").
 */
function named(value: unknown, shape: Shape): unknown {
  if (typeof shape === "string") return value;
  if ("listOf" in shape) return (value as readonly unknown[]).map((item) => named(item, shape.listOf));
  const kept: Record<string, unknown> = {};
  for (const [name, innerShape] of shape.fields) {
    const inner = (value as Readonly<Record<string, unknown>>)[name];
    if (inner !== null && inner !== undefined) kept[name] = named(inner, innerShape);
  }
  return kept;
}

/** The path of the first field that does not have its shape; undefined if all fields do. */
function misshapen(value: unknown, shape: Shape): string | undefined {
  if (typeof shape === "string" && shape !== "texts") return typeof value === shape ? undefined : "";
  if (shape === "texts") {
    return isRecord(value) && Object.values(value).every((text) => typeof text === "string") ? undefined : "";
  }
  if ("listOf" in shape) return Array.isArray(value) ? misshapenItem(value, shape.listOf) : "";
  if (!isRecord(value)) return "";
  const { fields, needs } = shape;
  if (needs.some((name) => value[name] === undefined || value[name] === null)) return "";
  for (const [name, inner] of fields) {
    if (value[name] === undefined || value[name] === null) continue;
    const wrong = misshapen(value[name], inner);
    if (wrong !== undefined) return `.${name}${wrong}`;
  }
  return undefined;
}

function misshapenItem(items: readonly unknown[], shape: Shape): string | undefined {
  for (const item of items) {
    const wrong = misshapen(item, shape);
    if (wrong !== undefined) return wrong;
  }
  return undefined;
}
