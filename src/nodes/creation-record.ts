import type { Node } from "../api/kubernetes/core.ts";
import { NODE_AT_CREATION } from "../api/names/annotations.ts";
import { parseJson, textAt } from "../api/schema/read-fields.ts";
import { readinessRecord } from "./ready.ts";

/** A Node when its remediation was created: all that is known of it if it is deleted before a status is stored. */
export interface NodeAtCreation {
  uid: string;
  bootID?: string;
  /** Its failure zone, from the label that the creating agent was configured with. */
  zone?: string;
}

/** The longest value that is read. A UID, a boot ID and the value of a label are much shorter. */
const VALUE_LENGTH_MAX = 1_000;

/** The annotations of a new remediation that record its node; empty if it has none. */
export function creationRecord(node: Node | undefined, zoneLabel: string): Record<string, string> {
  if (node === undefined) return {};
  const { bootID } = node.status.nodeInfo ?? {};
  const zone = zoneOf(node, zoneLabel);
  // JSON leaves out what is undefined.
  const record = { uid: node.metadata.uid, bootID, zone };
  return { ...readinessRecord(node), [NODE_AT_CREATION]: JSON.stringify(record) };
}

/** What the creator of a remediation recorded of its Node; undefined if it recorded nothing. */
export function readCreationRecord(annotations: Record<string, string> | undefined): NodeAtCreation | undefined {
  const value = annotations?.[NODE_AT_CREATION];
  if (value === undefined || value.length > VALUE_LENGTH_MAX) return undefined;
  const record = parseJson(value);
  const [uid, bootID, zone] = [textAt(record, "uid"), textAt(record, "bootID"), textAt(record, "zone")];
  if (uid === undefined) return undefined;
  return { uid, ...(bootID !== undefined && { bootID }), ...(zone !== undefined && { zone }) };
}

/** The failure zone in the label of a node; undefined if the label is empty. */
export function zoneOf(node: Node | undefined, label: string): string | undefined {
  const zone = node?.metadata.labels?.[label];
  return zone === "" ? undefined : zone;
}
