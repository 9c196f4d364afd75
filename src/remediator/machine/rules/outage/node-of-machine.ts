import type { Machine } from "../../../../api/cluster-api/cluster-api.ts";
import { mayBeNodeOf } from "../../../../api/cluster-api/cluster-api.ts";
import type { Node } from "../../../../api/kubernetes/core.ts";
import { fail } from "../attempts.ts";
import { transition, run, waitBecause } from "../transitions.ts";
import type { Now, AttemptSnapshot } from "../../model/facts/snapshot.ts";
import { clusterOf } from "../../../../nodes/subject.ts";
import { IDENTITY_AGE_MAX_MS } from "../../model/decision/timings.ts";
import type { Decision } from "../../model/decision/decision.ts";

/**
 * Compares the live Machine with the status. Fails if the Machine is gone or the node is not its own, and records the
 * node if the Machine has got one since. Undefined if they agree.
 */
export function checkMachine(snapshot: AttemptSnapshot, now: Now): Decision | undefined {
  const { subjectMachine: machine } = snapshot.observations;
  if (machine === undefined) return undefined;
  if (!machine.found) {
    const { reason, message, atMs } = machine;
    if (reason !== "MachineUnreadable") return fail(snapshot, now, reason, message);
    if (snapshot.subject.cluster === undefined) return undefined;
    // Without the Machine, the agent does not know whose node it is.
    const inMs = atMs + IDENTITY_AGE_MAX_MS - now.monotonicMs;
    if (inMs <= 0) return run({ do: "examine" });
    return waitBecause(snapshot, now, reason, message, Math.min(snapshot.remainingMs, inMs));
  }
  const node = snapshot.observations.examined?.node;
  const stranger = node === undefined ? undefined : whyNotNodeOf(node, machine.machine);
  return stranger === undefined ? recordNode(snapshot, now) : fail(snapshot, now, "SubjectMismatch", stranger);
}

/**
 * Why a Node is not proven to belong to the Machine that names it; undefined if it is. Cluster API finds the Node of a
 * Machine by its providerID. If the Node or the Machine has none, only the name connects them, and any Node can have
 * that name. An OKD Machine is in the cluster of its Node, and its hosts may have no providerID.
 */
function whyNotNodeOf(node: Node, machine: Machine): string | undefined {
  const { namespace, name } = machine.metadata;
  const isStrict = clusterOf(machine) !== undefined;
  const [nodeText, machineText] = [`node ${node.metadata.name}`, `Machine ${namespace}/${name}`];
  if (isStrict && machine.providerID === undefined) {
    return `${machineText} has no spec.providerID, so only the name connects it with ${nodeText}`;
  }
  if (isStrict && node.spec.providerID === undefined) {
    return `${nodeText} has no spec.providerID, so only the name connects it with ${machineText}`;
  }
  if (mayBeNodeOf(node, machine)) return undefined;
  return `${nodeText} has another providerID than ${machineText}: check whether the kubeconfig is for the Machine's cluster`;
}

/** Records the name of the Machine's node; undefined if it is already recorded, or if the Machine has no node yet. */
export function recordNode(snapshot: AttemptSnapshot, now: Now): Decision | undefined {
  const { subjectMachine: machine } = snapshot.observations;
  const name = machine?.found === true ? machine.machine.nodeName : undefined;
  if (snapshot.subject.nodeName !== undefined || name === undefined) return undefined;
  return transition(snapshot, now, {
    to: snapshot.state.name,
    step: "NodeNamed",
    message: `the Machine has become node ${name}`,
    attempt: snapshot.attempt,
    fields: { node: { ...snapshot.status.node, name } },
  });
}
