import { REMEDIATION_ATTEMPTS } from "../../../api/names/annotations.ts";
import { FENCING_TARGETS } from "../../../api/ironfence/fencing-target.ts";
import { NODE_HEALTH_CHECKS } from "../../../api/ironfence/node-health-check.ts";
import { EXTERNAL_REMEDIATION_ANNOTATION } from "../../../api/okd/okd-machine.ts";
import type { KubeObject } from "../../../kube/resource.ts";
import { field } from "./remediation.ts";

const OWNER_KINDS: readonly string[] = [NODE_HEALTH_CHECKS.kind, "Machine"];
const PROOFS: readonly string[] = ["offProof", "earlyOffProof", "owner"];
const MACHINE_MARKS: readonly string[] = ["HealthCheckSucceeded", "OwnerRemediated"];

/**
 * Returns an object without the data that another controller has recorded for health checks, as if this detector alone
 * served them. An agent that only observes reads objects in this way. Otherwise the other controller would often be
 * faster, and the agent would decide that a remediation is already in progress.
 *
 * @returns undefined for a remediation that a health check made.
 */
export function readAsIfAlone(raw: KubeObject): KubeObject | undefined {
  if (raw.kind === NODE_HEALTH_CHECKS.kind) return withoutRecords(raw);
  if (raw.kind === "Machine") return withoutMarks(raw);
  if (raw.kind === FENCING_TARGETS.kind) return withoutProofs(raw);
  const isRemediation = raw.kind.endsWith("Remediation");
  const owners = raw.metadata.ownerReferences ?? [];
  return isRemediation && owners.some(({ kind }) => OWNER_KINDS.includes(kind)) ? undefined : raw;
}

function withoutRecords(raw: KubeObject): KubeObject {
  const { status: _status, ...rest } = raw as KubeObject & { status?: unknown };
  return withoutAnnotation(rest, REMEDIATION_ATTEMPTS);
}

/** A FencingTarget without the off proofs of another agent, and without the remediation that owns it. */
function withoutProofs(raw: KubeObject): KubeObject {
  const status = field(raw, "status");
  if (typeof status !== "object" || status === null || !PROOFS.some((name) => name in status)) return raw;
  const kept = Object.entries(status).filter(([name]) => !PROOFS.includes(name));
  return { ...raw, status: Object.fromEntries(kept) } as KubeObject;
}

/** A Machine without what a health check writes to it. */
function withoutMarks(raw: KubeObject): KubeObject {
  const plain = withoutAnnotation(raw, EXTERNAL_REMEDIATION_ANNOTATION);
  const status = field(raw, "status");
  return typeof status === "object" && status !== null
    ? ({ ...plain, status: withoutConditions(status) } as KubeObject)
    : plain;
}

/** Removes the conditions at any depth, because API versions of Machines keep them in different places. */
function withoutConditions(section: object): object {
  return Object.fromEntries(
    Object.entries(section).map(([name, value]: [string, unknown]) => {
      if (name === "conditions" && Array.isArray(value)) {
        return [name, value.filter((condition: unknown) => !MACHINE_MARKS.includes(String(field(condition, "type"))))];
      }
      const isSection = typeof value === "object" && value !== null && !Array.isArray(value);
      return [name, isSection ? withoutConditions(value) : value];
    }),
  );
}

function withoutAnnotation(object: KubeObject, name: string): KubeObject {
  const { annotations } = object.metadata;
  if (annotations?.[name] === undefined) return object;
  const rest = Object.fromEntries(Object.entries(annotations).filter(([key]) => key !== name));
  return { ...object, metadata: { ...object.metadata, annotations: rest } };
}
