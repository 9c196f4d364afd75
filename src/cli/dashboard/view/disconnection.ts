import type { BareMetalRemediation } from "../../../api/ironfence/bare-metal-remediation.ts";
import type { Node } from "../../../api/kubernetes/core.ts";
import type { FencingTarget } from "../../../api/ironfence/fencing-target.ts";
import { readyOf } from "../../../remediator/hosts/fencing-target/target-store.ts";
import { mayRunEtcd } from "../../../remediator/machine/rules/admission/quorum.ts";
import { conditionOf } from "../../../api/schema/read-fields.ts";

/** Whether an operator may disconnect the power of a host now, and why. */
export interface DisconnectionAdvice {
  safe: boolean;
  /** A sentence with the next step. */
  why: string;
}

/** What is known about one node. `unread`: why something that the advice needs cannot be read. */
export interface DisconnectionFacts {
  nodeName: string;
  node: Node | undefined;
  /** All targets that name the node. */
  targets: readonly FencingTarget[];
  /** The remediations of the node that have no verdict. */
  remediations: readonly BareMetalRemediation[];
  unread: string | undefined;
}

/** Phases in which nothing of this power cycle has been released, and which spec.maintenance stops. */
const BEFORE_RELEASE: ReadonlySet<string> = new Set(["Resolving", "Verifying", "PoweringOff"]);

const BMC_NEEDED =
  "ironfence releases the workloads only while the BMC shows that the host is off, and a BMC without power shows nothing: wait for the verdict";

/** Why each phase needs the power of the host. */
const NEEDS_POWER: Readonly<Record<string, string>> = {
  Releasing: BMC_NEEDED,
  Provisioning: "the host is prepared for its installation: wait for the verdict",
  PoweringOn: "ironfence powers the host on: wait for the verdict",
  Rejoining: "the host boots: wait for the verdict",
  Restoring: "the node returns to service: wait for the verdict",
  Undoing: "ironfence undoes its changes and may power the host on: wait for the verdict",
};

/**
 * Whether an operator may disconnect the power of a host by hand. Yes only if ironfence will send no power order to it
 * (maintenance, which the agent has confirmed), depends on no answer of its BMC, and the node serves nothing. Anything
 * that is not known makes it a no. Pure.
 */
export function judgeDisconnection(facts: DisconnectionFacts): DisconnectionAdvice {
  const obstacle = obstacleTo(facts);
  if (obstacle !== undefined) return { safe: false, why: obstacle };
  const why =
    "spec.maintenance holds every power order of ironfence, the node is not Ready, and nothing is being released. Its pods and volumes stay bound to it: docs/how-to/recover-by-hand.md says how to release them";
  return { safe: true, why };
}

function obstacleTo({ nodeName, node, targets, remediations, unread }: DisconnectionFacts): string | undefined {
  if (unread !== undefined) return `this cannot be judged: ${unread}`;
  const [target, ...others] = targets;
  if (target === undefined) {
    return `no FencingTarget names node ${nodeName}, so nothing shows who may power the host`;
  }
  if (others.length > 0) return `${targets.length} FencingTargets name node ${nodeName}: delete the wrong ones first`;
  for (const { status } of remediations) {
    const phase = status?.phase ?? "Resolving";
    if (!BEFORE_RELEASE.has(phase))
      return NEEDS_POWER[phase] ?? `the remediation is in phase ${phase}, which is not known`;
  }
  const where = `FencingTarget ${target.metadata.namespace ?? ""}/${target.metadata.name}`;
  if (!target.spec.maintenance) {
    return `ironfence may power the host off or on at any moment: set spec.maintenance of ${where} to true first`;
  }
  const ready = readyOf(target.status);
  if (ready?.reason !== "Maintenance" || ready.observedGeneration !== target.metadata.generation) {
    return `spec.maintenance of ${where} is true, but the agent has not confirmed it: wait until its condition Ready has the reason Maintenance`;
  }
  const busy = remediations.find(({ status }) => mayHaveOrdered(status) && !isHeldByMaintenance(status));
  if (busy !== undefined) {
    return `BareMetalRemediation ${busy.metadata.name} has not stopped for spec.maintenance yet: wait until its reason is Maintenance`;
  }
  const owner = target.status?.owner;
  if (owner !== undefined && !remediations.some(({ metadata }) => metadata.uid === owner.uid)) {
    return `${where} is owned by ${owner.kind} ${owner.namespace}/${owner.name}, and ironfence cannot see whether that remediation has ended`;
  }
  if (node === undefined) return `there is no node ${nodeName}, so nothing shows what runs on the host`;
  if (mayRunEtcd(node)) {
    return "the node belongs to the control plane, and etcd may run on it although the node is not Ready: check its quorum first";
  }
  const isReady = node.status.conditions?.find(({ type }) => type === "Ready")?.status;
  if (isReady === undefined) return "the node has no condition Ready, so nothing shows whether its kubelet runs";
  if (isReady === "True") {
    return "the node is Ready and may serve workloads: drain it, and power the host off with ironfence power off";
  }
  return undefined;
}

type Status = BareMetalRemediation["status"];

/** A remediation in Resolving has sent no power order, and sends none before it has read spec.maintenance. */
function mayHaveOrdered(status: Status): boolean {
  return (status?.phase ?? "Resolving") !== "Resolving";
}

function isHeldByMaintenance(status: Status): boolean {
  return conditionOf(status?.conditions, "Processing")?.reason === "Maintenance";
}
