import { REMOVED_IMAGE } from "../../../../api/names/annotations.ts";
import { fieldAt, parseJson, textAt } from "../../../../api/schema/read-fields.ts";
import type { JsonPatchOperation } from "../../../../kube/client.ts";
import { pointer } from "../../../../kube/objects/json-pointer.ts";
import type { KubeObject } from "../../../../kube/resource.ts";

// What is installed on a BareMetalHost, and the note on the host of the image that a remediation has removed. The
// status of the remediation has it as well, but that object may be removed by force.

/** The fields of a BareMetalHost's spec that say what is installed on it. */
const IMAGE_FIELDS = ["image", "customDeploy"] as const;

/** A longer note is not written: all annotations of an object together may have 256 KiB. */
const NOTE_BYTES_MAX = 32_768;

/** What is installed, by field. */
export function imageOf(raw: KubeObject): Record<string, unknown> {
  const present = IMAGE_FIELDS.map((field) => [field, fieldAt(raw, "spec", field)] as const);
  return Object.fromEntries(present.filter(([, value]) => value !== undefined && value !== null));
}

/** What is installed, as `status.installation.image` holds it; undefined for nothing. */
export function savedImage(raw: KubeObject): string | undefined {
  const image = imageOf(raw);
  return Object.keys(image).length === 0 ? undefined : JSON.stringify(image);
}

/** Operations that note on the host which image the remediation with that UID removes. */
export function noteImage({ metadata }: KubeObject, uid: string, image: string): JsonPatchOperation[] {
  const value = JSON.stringify({ uid, image });
  if (Buffer.byteLength(value) > NOTE_BYTES_MAX) return [];
  const path = pointer("metadata", "annotations");
  const none: JsonPatchOperation[] = metadata.annotations === undefined ? [{ op: "add", path, value: {} }] : [];
  return [...none, { op: "add", path: pointer("metadata", "annotations", REMOVED_IMAGE), value }];
}

/** Operations that restore an image that `savedImage` has saved, and remove the note. */
export function putBack({ metadata }: KubeObject, image: string): JsonPatchOperation[] {
  const saved = parseJson(image);
  const fields = IMAGE_FIELDS.flatMap((field): JsonPatchOperation[] => {
    const value = fieldAt(saved, field);
    return value === undefined ? [] : [{ op: "add", path: pointer("spec", field), value }];
  });
  const isNoted = metadata.annotations?.[REMOVED_IMAGE] !== undefined;
  const path = pointer("metadata", "annotations", REMOVED_IMAGE);
  return isNoted ? [...fields, { op: "remove", path }] : fields;
}

/**
 * The image that a remediation has removed from the host, from the note; undefined if there is no note that can be
 * parsed.
 */
export function removedImage({ metadata }: Pick<KubeObject, "metadata">): { uid: string; image: string } | undefined {
  const noted = parseJson(metadata.annotations?.[REMOVED_IMAGE]);
  const uid = textAt(noted, "uid");
  const image = textAt(noted, "image");
  return uid === undefined || image === undefined || parseJson(image) === undefined ? undefined : { uid, image };
}
