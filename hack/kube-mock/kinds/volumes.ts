import { toTime } from "../../../src/runtime/time.ts";
import type { Cause } from "../api-error.ts";
import { jsonEqual, objectOf, textOf } from "../json.ts";
import type { ApiObject } from "../json.ts";
import { isSubdomain } from "../metadata.ts";
import { define } from "./define.ts";

function withFinalizer(object: ApiObject, finalizer: string): ApiObject {
  const finalizers = object.metadata.finalizers ?? [];
  if (finalizers.includes(finalizer)) return object;
  return { ...object, metadata: { ...object.metadata, finalizers: [...finalizers, finalizer] } };
}

/** core/v1 */
export const PERSISTENT_VOLUMES = define({
  group: "",
  kind: "PersistentVolume",
  plural: "persistentvolumes",
  namespaced: false,
  shortNames: ["pv"],
  hasStatus: true,
  strategy: {
    returnsDeleted: true,
    prepareCreate: (object, { clock }) => ({
      ...withFinalizer(object, "kubernetes.io/pv-protection"),
      spec: { persistentVolumeReclaimPolicy: "Retain", volumeMode: "Filesystem", ...objectOf(object["spec"]) },
      status: { phase: "Pending", lastPhaseTransitionTime: toTime(clock.nowMs()) },
    }),
  },
});

/** core/v1 */
export const PERSISTENT_VOLUME_CLAIMS = define({
  group: "",
  kind: "PersistentVolumeClaim",
  plural: "persistentvolumeclaims",
  namespaced: true,
  shortNames: ["pvc"],
  hasStatus: true,
  strategy: {
    returnsDeleted: true,
    prepareCreate: (object) => ({
      ...withFinalizer(object, "kubernetes.io/pvc-protection"),
      spec: { volumeMode: "Filesystem", ...objectOf(object["spec"]) },
      status: { phase: "Pending" },
    }),
  },
});

/** storage.k8s.io/v1 */
export const VOLUME_ATTACHMENTS = define({
  group: "storage.k8s.io",
  kind: "VolumeAttachment",
  plural: "volumeattachments",
  namespaced: false,
  shortNames: [],
  hasStatus: true,
  strategy: {
    unconditionalUpdate: false,
    returnsDeleted: true,
    prepareCreate: (object) => ({ ...object, spec: objectOf(object["spec"]), status: { attached: false } }),
    validate: validateAttachment,
  },
});

function validateAttachment(object: ApiObject, previous: ApiObject | undefined): Cause[] {
  const spec = objectOf(object["spec"]);
  if (previous !== undefined) {
    if (jsonEqual(spec, previous["spec"])) return [];
    const message = `Invalid value: ${JSON.stringify(spec)}: field is immutable`;
    return [{ reason: "FieldValueInvalid", message, field: "spec" }];
  }
  const causes: Cause[] = [];
  if (textOf(spec["attacher"]) === "") {
    causes.push({ reason: "FieldValueRequired", message: "Required value", field: "spec.attacher" });
  }
  const { persistentVolumeName, inlineVolumeSpec } = objectOf(spec["source"]);
  if ((persistentVolumeName === undefined) === (inlineVolumeSpec === undefined)) {
    const message = "Required value: must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    causes.push({ reason: "FieldValueRequired", message, field: "spec.source" });
  }
  if (!isSubdomain(textOf(spec["nodeName"]))) {
    const message = `Invalid value: ${JSON.stringify(spec["nodeName"] ?? "")}: a lowercase RFC 1123 subdomain`;
    causes.push({ reason: "FieldValueInvalid", message, field: "spec.nodeName" });
  }
  return causes;
}
