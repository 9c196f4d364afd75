import type { Cause } from "../api-error.ts";
import { isObject, listOf, objectOf, textOf } from "../json.ts";
import type { ApiObject } from "../json.ts";
import { COMMON_FIELDS } from "../selectors.ts";
import { define } from "./define.ts";

const EFFECTS: readonly string[] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
const NOT_READY = { key: "node.kubernetes.io/not-ready", effect: "NoSchedule" };

/** core/v1 */
export const NODES = define(
  {
    group: "",
    kind: "Node",
    plural: "nodes",
    namespaced: false,
    shortNames: ["no"],
    hasStatus: true,
    strategy: { prepareCreate, prepareUpdate, validate },
  },
  {
    fields: {
      ...COMMON_FIELDS,
      "spec.unschedulable": (node) => String(objectOf(node["spec"])["unschedulable"] === true),
    },
  },
);

/**
 * Does what the admission plugin TaintNodesByCondition does: it taints a new node, so that no pods start there before
 * it is Ready.
 */
function prepareCreate(node: ApiObject): ApiObject {
  const spec = objectOf(node["spec"]);
  const taints = listOf(spec["taints"]);
  const isTainted = taints.some((taint) => objectOf(taint)["key"] === NOT_READY.key);
  return {
    ...node,
    spec: { ...spec, taints: isTainted ? taints : [...taints, NOT_READY] },
    status: objectOf(node["status"]),
  };
}

function prepareUpdate(next: ApiObject): ApiObject {
  const spec = objectOf(next["spec"]);
  if (listOf(spec["taints"]).length > 0) return next;
  const { taints: _taints, ...rest } = spec;
  return { ...next, spec: rest };
}

function validate(node: ApiObject, previous: ApiObject | undefined): Cause[] {
  const spec = objectOf(node["spec"]);
  const causes = validateTaints(listOf(spec["taints"]));
  const knownId = textOf(objectOf(previous?.["spec"])["providerID"]);
  if (knownId !== "" && spec["providerID"] !== knownId) {
    const message = 'Forbidden: node updates may not change providerID except from "" to valid';
    causes.push({ reason: "FieldValueForbidden", message, field: "spec.providerID" });
  }
  return causes;
}

function validateTaints(taints: readonly unknown[]): Cause[] {
  const causes: Cause[] = [];
  const seen = new Set<string>();
  taints.forEach((taint, index) => {
    const { key, effect } = isObject(taint) ? taint : {};
    const field = `metadata.taints[${index}]`;
    if (textOf(key) === "") {
      causes.push({
        reason: "FieldValueInvalid",
        message: 'Invalid value: "": name part must be non-empty',
        field: `${field}.key`,
      });
    }
    if (!EFFECTS.includes(textOf(effect))) {
      const supported = EFFECTS.map((name) => `"${name}"`).join(", ");
      const message = `Unsupported value: ${JSON.stringify(effect ?? "")}: supported values: ${supported}`;
      causes.push({ reason: "FieldValueNotSupported", message, field: `${field}.effect` });
    }
    const identity = `${textOf(key)} ${textOf(effect)}`;
    if (seen.has(identity)) {
      const message = `Duplicate value: ${JSON.stringify(taint)}: taints must be unique by key and effect pair`;
      causes.push({ reason: "FieldValueDuplicate", message, field });
    }
    seen.add(identity);
  });
  return causes;
}
