import type { RemediationRecord } from "../../../api/ironfence/node-health-check.ts";
import type { RemediationKind } from "./decision.ts";
import { parseTimeMs, toTime } from "../../../runtime/time.ts";
import type { RemediationStep } from "../../shared/model/template-reference.ts";
import { remediationKind } from "../../shared/model/template-reference.ts";
import type { Remediation } from "../../shared/model/remediation.ts";

/** Wait before the list of steps starts again: it doubles with every round that failed. */
const RESTART_MIN_MS = 600_000;
const RESTART_MAX_MS = 7_200_000;
/** Rounds that are remembered: after these the wait does not grow any more. */
const ROUNDS_KEPT_MAX = 5;

/** The next step for a node. */
export interface NextStep {
  step: RemediationStep;
  /** How often every step has failed. */
  rounds: number;
  /** When the list may start again; undefined if `step` continues a list that has begun. */
  restartAtMs: number | undefined;
  /** When the last step of the list that failed was given up; undefined as `restartAtMs`. */
  failedMs: number | undefined;
}

/**
 * The step to take for a node whose attempts so far are `records`: the first in order that has not timed out. If the
 * list names one template twice, each of the two steps needs a timed-out record of its own. When every step has one,
 * the list starts again.
 */
export function nextStep(
  steps: readonly RemediationStep[],
  records: readonly RemediationRecord[],
): NextStep | undefined {
  const spent = records.filter(({ timedOut }) => timedOut !== undefined);
  let missing: RemediationStep | undefined;
  let rounds = -1;
  while (missing === undefined && rounds < records.length) {
    rounds += 1;
    missing = takeRound(steps, spent);
  }
  if (missing === undefined) return undefined;
  if (rounds === 0 || missing !== steps[0])
    return { step: missing, rounds, restartAtMs: undefined, failedMs: undefined };
  const failedMs = Math.max(...records.map(({ timedOut }) => parseTimeMs(timedOut) ?? -Infinity));
  return { step: missing, rounds, restartAtMs: failedMs + restartWaitMs(rounds), failedMs };
}

/** How long to wait after `rounds` rounds have failed, in milliseconds. */
export function restartWaitMs(rounds: number): number {
  return Math.min(RESTART_MIN_MS * 2 ** (rounds - 1), RESTART_MAX_MS);
}

/** Drops the oldest rounds, so that the list of attempts in the status does not grow without limit. */
export function forgetRounds(steps: readonly RemediationStep[], records: RemediationRecord[]): RemediationRecord[] {
  const { rounds = 0 } = nextStep(steps, records) ?? {};
  if (rounds <= ROUNDS_KEPT_MAX) return records;
  const spent = records.filter(({ timedOut }) => timedOut !== undefined);
  takeRound(steps, spent);
  const kept = new Set(spent);
  return forgetRounds(
    steps,
    records.filter((record) => record.timedOut === undefined || kept.has(record)),
  );
}

/** Takes a record of each step out of `spent`. @returns the first step that has none. */
function takeRound(steps: readonly RemediationStep[], spent: RemediationRecord[]): RemediationStep | undefined {
  return steps.find((step) => {
    const index = spent.findIndex((record) => isOfStep(step, record));
    if (index >= 0) spent.splice(index, 1);
    return index < 0;
  });
}

/**
 * Whether the record is an attempt of this step. The API version is not compared: a kind keeps its meaning across them.
 */
export function isOfStep(step: RemediationStep, record: Pick<RemediationRecord, "resource" | "templateName">): boolean {
  const { resource, templateName } = record;
  return (
    resource.kind === remediationKind(step.template) &&
    groupOf(resource.apiVersion ?? "") === groupOf(step.template.apiVersion) &&
    (templateName === undefined || templateName === "" || templateName === step.template.name)
  );
}

/** Whether the spec has the template that the CR was made from. */
export function isOfAnyStep(steps: readonly RemediationStep[], { object, templateName }: Remediation): boolean {
  const { apiVersion, kind } = object;
  const record = { resource: { apiVersion, kind }, ...(templateName !== undefined && { templateName }) };
  return steps.some((step) => isOfStep(step, record));
}

/**
 * The records of one node, brought up to date with its CRs: a CR without a record gets one (the agent ended between
 * creating and recording it), and the record of a CR with the time-out annotation times out. An attempt that was not
 * given up and whose CR was deleted is dropped, so that the next one starts with its full time. Records of kinds that
 * are not watched now stay as they are.
 */
export function reconcileRecords(
  previous: readonly RemediationRecord[],
  remediations: readonly Remediation[],
  unseenKinds: readonly RemediationKind[],
  nowMs: number,
): RemediationRecord[] {
  const byUid = new Map(remediations.map((remediation) => [remediation.uid, remediation]));
  const kept = previous.flatMap((record) => {
    const remediation = byUid.get(record.resource.uid ?? "");
    if (remediation !== undefined) return [withTimeOut(record, remediation)];
    return record.timedOut !== undefined || isUnseen(record, unseenKinds) ? [record] : [];
  });
  const known = new Set(previous.map(({ resource }) => resource.uid));
  const adopted = remediations
    .filter(({ uid }) => !known.has(uid))
    .map((remediation) => withTimeOut(newRecord(remediation, nowMs), remediation));
  return [...kept, ...adopted];
}

/** Whether the kind of the record cannot be read now, so that an absent CR is not proven to be deleted. */
export function isUnseen({ resource }: RemediationRecord, unseenKinds: readonly RemediationKind[]): boolean {
  const { apiVersion = "", kind = "" } = resource;
  return unseenKinds.some((unseen) => unseen.apiVersion === apiVersion && unseen.kind === kind);
}

function newRecord(remediation: Remediation, nowMs: number): RemediationRecord {
  const { apiVersion, kind, metadata } = remediation.object;
  return {
    resource: {
      apiVersion,
      kind,
      name: metadata.name,
      uid: metadata.uid,
      ...(metadata.namespace !== undefined && { namespace: metadata.namespace }),
    },
    started: toTime(remediation.createdMs ?? nowMs),
    ...(remediation.templateName !== undefined && { templateName: remediation.templateName }),
  };
}

function withTimeOut(record: RemediationRecord, remediation: Remediation): RemediationRecord {
  if (record.timedOut !== undefined || remediation.timedOut === undefined) return record;
  // Anyone may have written the annotation. A value that is not a time must not make the status invalid.
  return parseTimeMs(remediation.timedOut) === undefined ? record : { ...record, timedOut: remediation.timedOut };
}

function groupOf(apiVersion: string): string {
  const slash = apiVersion.indexOf("/");
  return slash < 0 ? "" : apiVersion.slice(0, slash);
}
