import type { KubeObject } from "../../kube/resource.ts";
import { toTime } from "../../runtime/time.ts";
import type { ConditionForms } from "./cluster-api.ts";
import { CLUSTER_API_GROUP } from "./cluster-api.ts";
import { listAt, textAt } from "../schema/read-fields.ts";
import type { Condition } from "../schema/meta.ts";

// Writes conditions to objects of Cluster API. Upstream keeps them in two forms. Newer controllers read
// metav1.Condition. Older controllers read the form of v1beta1, which has a severity, and no reason while the condition
// is true.

/** Absent if the condition is true. */
export type Severity = "Error" | "Warning" | "Info";

/** A condition to write, in both forms. */
export interface ConditionWrite {
  type: string;
  status: "True" | "False";
  reason: string;
  message: string;
  /**
   * What the v1beta1 form contains. Ignored if the condition is true, because that form then has only a status.
   * Undefined if that form does not have this condition.
   */
  v1beta1: { reason: string; message: string; severity: Severity } | undefined;
}

/** An object's conditions in both forms. Its version decides which form is its own. */
type VersionedConditions = ConditionForms & { apiVersion: string };

type Form = "metav1" | "v1beta1";

/**
 * Whether the object already has this condition in the form of its version, and in the other form if it has that one.
 */
export function hasCondition(object: VersionedConditions, wanted: ConditionWrite): boolean {
  return compare(object, wanted, (found, { message = "" }) => found.message === message);
}

/**
 * Like `hasCondition`, but with any message: releases of upstream's controller differ in their messages. If such a
 * controller worked on the same object, both would overwrite each other's message forever.
 */
export function hasConditionWithAnyMessage(object: VersionedConditions, wanted: ConditionWrite): boolean {
  return compare(object, wanted, () => true);
}

function compare(
  object: VersionedConditions,
  wanted: ConditionWrite,
  isWorded: (found: Condition, texts: ConditionTexts) => boolean,
): boolean {
  return formsOf(object).every(([form, conditions]) => {
    if (!isKnownTo(form, wanted)) return true;
    const texts = conditionTextsOf(wanted, form);
    const found = conditions.find(({ type }) => type === wanted.type);
    return found?.status === texts.status && found.reason === (texts.reason ?? "") && isWorded(found, texts);
  });
}

/** A list of conditions that has to be replaced. */
export interface ConditionListChange {
  /** Its path in the object. */
  path: readonly string[];
  conditions: readonly unknown[];
}

/**
 * The changes that give the object the conditions `wanted`, and remove conditions of the types `unwanted`. Guard the
 * write by a resourceVersion, because whole lists are replaced. Empty if nothing has to change.
 *
 * @param raw the object as the server sent it.
 */
export function changeConditions(
  raw: KubeObject,
  wanted: readonly ConditionWrite[],
  unwanted: readonly string[],
  nowMs: number,
): ConditionListChange[] {
  const own = ownForm(raw.apiVersion);
  const forms: Form[] = ["metav1", "v1beta1"];
  return forms.flatMap((form) => {
    const path = pathOf(raw.apiVersion, form);
    const before = listAt(raw, ...path);
    // The other form is updated only if the object has it. If the CRD does not define that form, the API server drops
    // it, and each evaluation would write it again.
    if (form !== own && before.length === 0) return [];
    let conditions = before.filter((condition) => !unwanted.includes(textAt(condition, "type") ?? ""));
    for (const write of wanted) if (isKnownTo(form, write)) conditions = upsert(conditions, write, form, raw, nowMs);
    const isSame = conditions.length === before.length && conditions.every((item, index) => item === before[index]);
    return isSame ? [] : [{ path, conditions }];
  });
}

function isKnownTo(form: Form, { v1beta1 }: ConditionWrite): boolean {
  return form === "metav1" || v1beta1 !== undefined;
}

function ownForm(apiVersion: string): Form {
  return apiVersion === `${CLUSTER_API_GROUP}/v1beta2` ? "metav1" : "v1beta1";
}

function pathOf(apiVersion: string, form: Form): string[] {
  if (form === ownForm(apiVersion)) return ["status", "conditions"];
  return form === "metav1" ? ["status", "v1beta2", "conditions"] : ["status", "deprecated", "v1beta1", "conditions"];
}

/**
 * The conditions by form, from the fields that `readConditions` fills. An object of another vendor has only one form.
 */
function formsOf({ apiVersion, conditions, v1beta1Conditions }: VersionedConditions): [Form, readonly Condition[]][] {
  const own = ownForm(apiVersion);
  const isFirst = apiVersion !== `${CLUSTER_API_GROUP}/v1beta1`;
  const [ownOnes, others] = isFirst ? [conditions, v1beta1Conditions] : [v1beta1Conditions, conditions];
  return others.length === 0
    ? [[own, ownOnes]]
    : [
        [own, ownOnes],
        [own === "metav1" ? "v1beta1" : "metav1", others],
      ];
}

interface ConditionTexts {
  status: string;
  reason?: string;
  message?: string;
  severity?: Severity;
}

function conditionTextsOf({ status, reason, message, v1beta1 }: ConditionWrite, form: Form): ConditionTexts {
  if (form === "metav1") return { status, reason, message };
  if (status === "True" || v1beta1 === undefined) return { status };
  return {
    status,
    severity: v1beta1.severity,
    reason: v1beta1.reason,
    ...(v1beta1.message !== "" && { message: v1beta1.message }),
  };
}

function upsert(
  list: readonly unknown[],
  write: ConditionWrite,
  form: Form,
  { metadata }: KubeObject,
  nowMs: number,
): unknown[] {
  const place = list.findIndex((condition) => textAt(condition, "type") === write.type);
  const before = list[place];
  const texts = conditionTextsOf(write, form);
  // Compare with what the server stores: it may omit an empty reason or message.
  const isSame =
    textAt(before, "status") === texts.status &&
    (textAt(before, "reason") ?? "") === (texts.reason ?? "") &&
    (textAt(before, "message") ?? "") === (texts.message ?? "");
  if (isSame) return [...list];
  const sinceBefore = textAt(before, "status") === texts.status ? textAt(before, "lastTransitionTime") : undefined;
  const after = {
    type: write.type,
    ...texts,
    lastTransitionTime: sinceBefore ?? toTime(nowMs),
    ...(form === "metav1" && metadata.generation !== undefined && { observedGeneration: metadata.generation }),
  };
  return place < 0 ? [...list, after] : list.with(place, after);
}
