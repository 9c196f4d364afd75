import type { RemediationRecord } from "../../../api/ironfence/node-health-check.ts";
import type { RemediationKind } from "./decision.ts";
import { parseTimeMs, toTime } from "../../../runtime/time.ts";
import type { RemediationStep } from "../../shared/model/template-reference.ts";
import { remediationKind } from "../../shared/model/template-reference.ts";
import type { Remediation } from "../../shared/model/remediation.ts";

/** The wait before the next round starts. It doubles with every failed round. */
const RESTART_MIN_MS = 600_000;
const RESTART_MAX_MS = 7_200_000;
/** How many rounds are kept. After this many rounds the wait no longer grows. */
const ROUNDS_KEPT_MAX = 5;

/** The next step for a node. */
export interface NextStep {
  step: RemediationStep;
  /** How many rounds have failed. */
  rounds: number;
  /** When the next round may start; undefined if `step` continues the current round. */
  restartAtMs: number | undefined;
  /** When the last step of the failed round was given up; undefined if `restartAtMs` is. */
  failedMs: number | undefined;
}

/**
 * The next step for a node with the attempts `records`: the first step in order that has not timed out. If two steps
 * name the same template, each of them needs its own record that timed out. When every step has such a record, the next
 * round starts.
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

/** Drops the oldest rounds, so that the list of attempts in the status stays bounded. */
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

/** Removes one record of each step from `spent`. @returns the first step without a record. */
function takeRound(steps: readonly RemediationStep[], spent: RemediationRecord[]): RemediationStep | undefined {
  return steps.find((step) => {
    const index = spent.findIndex((record) => isOfStep(step, record));
    if (index >= 0) spent.splice(index, 1);
    return index < 0;
  });
}

/**
 * Whether the record is an attempt of this step. API versions are not compared, because a kind is the same in all of
 * them.
 */
export function isOfStep(step: RemediationStep, record: Pick<RemediationRecord, "resource" | "templateName">): boolean {
  const { resource, templateName } = record;
  return (
    resource.kind === remediationKind(step.template) &&
    groupOf(resource.apiVersion ?? "") === groupOf(step.template.apiVersion) &&
    (templateName === undefined || templateName === "" || templateName === step.template.name)
  );
}

/** Whether the spec still has the template of the CR. */
export function isOfAnyStep(steps: readonly RemediationStep[], { object, templateName }: Remediation): boolean {
  const { apiVersion, kind } = object;
  const record = { resource: { apiVersion, kind }, ...(templateName !== undefined && { templateName }) };
  return steps.some((step) => isOfStep(step, record));
}

/**
 * Updates the records of one node by its CRs. A CR without a record gets one, because the agent may have ended after it
 * created the CR. The record of a CR with the timeout annotation times out. If the CR of an attempt was deleted before
 * the attempt was given up, its record is dropped, so that the next attempt gets its full time. Records of kinds that
 * are not watched now do not change.
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

/** Whether the kind of the record cannot be read now. If so, a missing CR is not proven to be deleted. */
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
  // Any client may write the annotation. A value that is not a time must not make the status invalid.
  return parseTimeMs(remediation.timedOut) === undefined ? record : { ...record, timedOut: remediation.timedOut };
}

function groupOf(apiVersion: string): string {
  const slash = apiVersion.indexOf("/");
  return slash < 0 ? "" : apiVersion.slice(0, slash);
}
