import type { Cause } from "../api-error.ts";
import { jsonEqual, listOf, objectOf, omit, textOf } from "../json.ts";
import type { ApiObject, JsonObject } from "../json.ts";
import { COMMON_FIELDS } from "../selectors.ts";
import { define } from "./define.ts";

const DEFAULT_GRACE_SECONDS = 30;
/**
 * The tolerations that the admission plugin DefaultTolerationSeconds adds to pods without tolerations of these taints.
 */
const DEFAULT_TOLERATIONS = ["not-ready", "unreachable"].map((condition) => ({
  key: `node.kubernetes.io/${condition}`,
  operator: "Exists",
  effect: "NoExecute",
  tolerationSeconds: 300,
}));

/** core/v1 */
export const PODS = define(
  {
    group: "",
    kind: "Pod",
    plural: "pods",
    namespaced: true,
    shortNames: ["po"],
    hasStatus: true,
    strategy: {
      returnsDeleted: true,
      generationOf: (pod) => pod["spec"],
      prepareCreate,
      validate,
      graceSeconds,
    },
  },
  {
    fields: {
      ...COMMON_FIELDS,
      "spec.nodeName": (pod) => textOf(objectOf(pod["spec"])["nodeName"]),
      "status.phase": (pod) => textOf(objectOf(pod["status"])["phase"]),
    },
  },
);

function prepareCreate(pod: ApiObject): ApiObject {
  const spec = objectOf(pod["spec"]);
  return {
    ...pod,
    spec: {
      restartPolicy: "Always",
      terminationGracePeriodSeconds: DEFAULT_GRACE_SECONDS,
      dnsPolicy: "ClusterFirst",
      securityContext: {},
      schedulerName: "default-scheduler",
      priority: 0,
      enableServiceLinks: true,
      preemptionPolicy: "PreemptLowerPriority",
      ...spec,
      tolerations: withDefaultTolerations(listOf(spec["tolerations"])),
    },
    status: { phase: "Pending", qosClass: "BestEffort" },
  };
}

function withDefaultTolerations(tolerations: readonly unknown[]): readonly unknown[] {
  const covers = (toleration: unknown, key: string): boolean => {
    const { key: own, effect, operator } = objectOf(toleration);
    const coversKey = own === key || (textOf(own) === "" && operator === "Exists");
    return coversKey && (textOf(effect) === "" || effect === "NoExecute");
  };
  const missing = DEFAULT_TOLERATIONS.filter(({ key }) => !tolerations.some((toleration) => covers(toleration, key)));
  return [...tolerations, ...missing];
}

function validate(pod: ApiObject, previous: ApiObject | undefined): Cause[] {
  const spec = objectOf(pod["spec"]);
  if (listOf(spec["containers"]).length === 0) {
    return [{ reason: "FieldValueRequired", message: "Required value", field: "spec.containers" }];
  }
  if (previous === undefined || jsonEqual(fixedPart(spec), fixedPart(objectOf(previous["spec"])))) return [];
  const message =
    "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
  return [{ reason: "FieldValueForbidden", message, field: "spec" }];
}

function fixedPart(spec: JsonObject): JsonObject {
  const rest = omit(spec, "containers", "initContainers", "activeDeadlineSeconds", "tolerations");
  const containers = listOf(spec["containers"]).map((container) => omit(objectOf(container), "image"));
  return { ...rest, containers };
}

/**
 * A pod without a kubelet is deleted at once. Other pods are deleted when their kubelet confirms or by a forced
 * deletion.
 */
function graceSeconds(pod: ApiObject, requestedSeconds: number | undefined): number {
  const spec = objectOf(pod["spec"]);
  const phase = objectOf(pod["status"])["phase"];
  if (textOf(spec["nodeName"]) === "" || phase === "Succeeded" || phase === "Failed") return 0;
  const own = spec["terminationGracePeriodSeconds"];
  const seconds = requestedSeconds ?? (typeof own === "number" ? own : DEFAULT_GRACE_SECONDS);
  return seconds < 0 ? 1 : seconds;
}
