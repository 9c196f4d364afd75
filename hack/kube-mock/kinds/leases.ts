import { isObject, objectOf } from "../json.ts";
import { define } from "./define.ts";
import { decodeMicroTimes } from "./times.ts";

/** coordination.k8s.io/v1 */
export const LEASES = define(
  {
    group: "coordination.k8s.io",
    kind: "Lease",
    plural: "leases",
    namespaced: true,
    shortNames: [],
    hasStatus: false,
    strategy: {
      unconditionalUpdate: false,
      createOnUpdate: true,
      stampsWrites: true,
      prepareCreate: (object) => ({ ...object, spec: objectOf(object["spec"]) }),
      validate: (object) => {
        const spec = isObject(object["spec"]) ? object["spec"] : {};
        return ["leaseDurationSeconds", "leaseTransitions"].flatMap((name) => {
          const value = spec[name];
          const min = name === "leaseDurationSeconds" ? 1 : 0;
          if (typeof value !== "number" || value >= min) return [];
          const why = min === 1 ? "must be greater than 0" : "must be greater than or equal to 0";
          return [
            { reason: "FieldValueInvalid" as const, message: `Invalid value: ${value}: ${why}`, field: `spec.${name}` },
          ];
        });
      },
    },
  },
  { decode: (sent) => decodeMicroTimes(sent, "Lease", ["spec.renewTime", "spec.acquireTime"]) },
);
