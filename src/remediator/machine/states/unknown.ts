import { bareMetalRemediationStateSchema } from "../../../api/ironfence/bare-metal-remediation.ts";
import { newAttempt, undo } from "../rules/attempts.ts";
import { run, waitBecause } from "../rules/transitions.ts";
import { mayOweUndo } from "./resolving.ts";
import type { Now, Snapshot } from "../model/facts/snapshot.ts";
import type { UnknownState } from "../model/decision/state.ts";
import { STATE_VERSION } from "../model/decision/state.ts";
import { UNKNOWN_RECHECK_MS, UNREAD_RECHECK_MS } from "../model/decision/timings.ts";
import type { Decision } from "../model/decision/decision.ts";

/**
 * Decides about a remediation that this version cannot act on: another version wrote its state or its spec. The
 * out-of-service taint is removed, because this agent does not prove the host off. Everything else stays, and the
 * status names the version that wrote it. If the remediation is being deleted, everything is undone that this version
 * can undo. Pure.
 */
export function decideUnknown(snapshot: Snapshot, state: UnknownState, now: Now): Decision {
  const { remediation, status, observations, clusterProblem, strategy } = snapshot;
  if (remediation.deleting) {
    // There is nothing to undo and no finalizer to remove.
    if (!remediation.hasFinalizer && !mayOweUndo(snapshot, state.attempt)) return { notes: [], effects: [] };
    const known = withoutUnknown(status);
    const isNodeLost = status.node !== undefined && known.node === undefined;
    const lost = isNodeLost ? "; the node cannot be identified: no labels, annotations or taints are restored" : "";
    const message = `the remediation is being deleted; ${whatIsUnknown(snapshot, state)}${lost}`;
    // An attempt that cannot be read may have turned the host off.
    const attempt =
      state.attempt ??
      ({ ...newAttempt(snapshot, now, "Reboot", undefined, strategy.powerOnTimeoutMs), action: "Inherited" } as const);
    const outcome = { verdict: "Deleted", reason: "RemediationDeleted", message } as const;
    return undo({ ...snapshot, status: known, state: { ...state, attempt } }, now, outcome);
  }
  const mayWrite =
    clusterProblem === undefined && (observations.kube === undefined || observations.kube.retryAtMs <= now.monotonicMs);
  if (!observations.taintCleared && mayWrite) return run({ do: "untaint" });
  const first = state.of === "spec" ? "run an agent of that version" : "run that version again";
  const next = `${first} until the remediation has ended, or delete the remediation to undo it`;
  const message = `${whatIsUnknown(snapshot, state)}: its out-of-service taint is off, and nothing is done to the host, which may be OFF; ${next}`;
  // The check is repeated even if nothing changes: after its deadline the remediation is overdue, and its slot lapses.
  const inMs = observations.taintCleared ? UNKNOWN_RECHECK_MS : UNREAD_RECHECK_MS;
  return waitBecause(snapshot, now, "UnknownState", message, inMs);
}

const { installation, replacement, backup, node, machine, target } = bareMetalRemediationStateSchema.shape;
const PARTS = { replacement, backup, node, machine, target };

/**
 * The status without the parts that this version cannot read. An undo that stored an unreadable part could not read its
 * own status and would restart at every reconcile. Readable fields are kept, and so is the record of an image that was
 * removed, so that the image is put back.
 */
function withoutUnknown(status: Snapshot["status"]): Snapshot["status"] {
  const { installation: taken, ...rest } = status;
  const image = { step: "Deprovisioning", image: taken?.image };
  const kept = [taken, image].map((part) => installation.safeParse(part)).find(({ success }) => success)?.data;
  const known: Record<string, unknown> = { ...rest };
  for (const [name, schema] of Object.entries(PARTS)) {
    const part = name === "node" ? readableNode(known[name]) : readablePart(schema, known[name]);
    if (part === undefined) delete known[name];
    else known[name] = part;
  }
  // Each part has passed its schema, and the rest is unchanged.
  return { ...(known as Snapshot["status"]), ...(taken !== undefined && kept !== undefined && { installation: kept }) };
}

interface PartSchema {
  safeParse(part: unknown): { success: boolean; error?: { issues: readonly { path: readonly PropertyKey[] }[] } };
}

/** A part of a status without the fields that cannot be read; undefined if the rest is not valid without them. */
function readablePart(schema: PartSchema, part: unknown): unknown {
  const read = schema.safeParse(part);
  if (read.success) return part;
  if (typeof part !== "object" || part === null) return undefined;
  const bad = new Set(read.error?.issues.map(({ path }) => String(path[0])));
  const rest = Object.fromEntries(Object.entries(part).filter(([field]) => !bad.has(field)));
  return schema.safeParse(rest).success ? rest : undefined;
}

/**
 * The readable part of the node's record; undefined if it no longer identifies the node. Without its cluster, the name
 * would mean a node of the agent's own cluster. Without its UID, the cluster may be another one with the same name.
 */
function readableNode(part: unknown): unknown {
  const { cluster } = (part ?? {}) as { cluster?: { uid?: unknown } };
  if (cluster === undefined) return readablePart(node, part);
  const known = readablePart(node.unwrap().shape.cluster, cluster) as typeof cluster | undefined;
  if (known === undefined || known.uid !== cluster.uid) return undefined;
  return readablePart(node, { ...(part as object), cluster: known });
}

function whatIsUnknown({ status }: Snapshot, { of, why }: UnknownState): string {
  if (of === "spec") return `this agent cannot act on the spec: ${why}`;
  const writer =
    status.writtenBy === undefined ? "an agent that does not say its version" : `agent ${status.writtenBy}`;
  return `${writer} wrote a status that this agent, which knows state version ${STATE_VERSION}, cannot act on (${why})`;
}
