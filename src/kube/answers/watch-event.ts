import { completeKind, failureOfStatusObject, isStoredObject } from "./api-answers.ts";
import { isRecord } from "../../runtime/record.ts";
import { KubeError } from "../errors.ts";
import type { KubeObject, ResourceType } from "../resource.ts";

/** One line of a watch. `resourceVersion` is the version that the watch has reached with it. */
export type WatchEvent =
  | { type: "added" | "modified" | "deleted"; object: KubeObject; resourceVersion: string }
  | { type: "bookmark"; resourceVersion: string };

/**
 * Reads one line of a watch (`metav1.WatchEvent`).
 *
 * @throws KubeError with the code of an ERROR event (Gone: list again); BadResponse if the line is not an event.
 */
export function parseWatchEvent(what: string, type: ResourceType, line: string): WatchEvent {
  let event: unknown;
  try {
    event = JSON.parse(line);
  } catch (error) {
    throw new KubeError("BadResponse", `${what}: an event is not JSON`, { cause: error });
  }
  if (!isRecord(event)) throw new KubeError("BadResponse", `${what}: an event is not an object`);
  if (event["type"] === "ERROR") throw failureOfStatusObject(what, event["object"]);
  if (event["type"] === "BOOKMARK")
    return { type: "bookmark", resourceVersion: bookmarkVersion(what, event["object"]) };
  const object = completeKind(type, event["object"]);
  if (!isStoredObject(object)) throw new KubeError("BadResponse", `${what}: an event without a Kubernetes object`);
  const { resourceVersion } = object.metadata;
  switch (event["type"]) {
    case "ADDED":
      return { type: "added", object, resourceVersion };
    case "MODIFIED":
      return { type: "modified", object, resourceVersion };
    case "DELETED":
      return { type: "deleted", object, resourceVersion };
    default:
      throw new KubeError("BadResponse", `${what}: an event of unknown type`);
  }
}

function bookmarkVersion(what: string, object: unknown): string {
  const metadata = isRecord(object) ? object["metadata"] : undefined;
  const version = isRecord(metadata) ? metadata["resourceVersion"] : undefined;
  if (typeof version !== "string" || version === "") {
    throw new KubeError("BadResponse", `${what}: a bookmark without a resource version`);
  }
  return version;
}
