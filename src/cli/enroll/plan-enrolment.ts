import type { Node, Pod } from "../../api/kubernetes/core.ts";
import type { BareMetalRemediation } from "../../api/ironfence/bare-metal-remediation.ts";
import { isReady } from "../../nodes/ready.ts";
import { mayRunEtcd } from "../../remediator/machine/rules/admission/quorum.ts";
import { enrolmentProblem, outletsOf } from "../../remediator/hosts/model/enrolment.ts";
import { expectedIdentity, meaningfulUuid, sameUuid } from "../../remediator/hosts/model/identity.ts";
import { isEvicted, namesOf } from "../fence/drain.ts";
import type { TargetContext } from "../hosts/targets.ts";
import type { Plan } from "../terminal/plan.ts";

/**
 * The annotation that Self Node Remediation sets on nodes that reset themselves when they are cut off from the API
 * server.
 */
const RESETS_ITSELF = "is-reboot-capable.self-node-remediation.medik8s.io";

/** What is read before an enrolment, all of it live. */
export interface EnrollFacts {
  host: TargetContext;
  /** Why the target is ambiguous; undefined if it is not. */
  conflict: string | undefined;
  /** All pods of the node. */
  pods: readonly Pod[];
  /** Remediations of this node that have not ended. */
  underWay: readonly BareMetalRemediation[];
}

/** Plans an enrolment; pure. The host loses its power, so anything that this could harm prevents the enrolment. */
export function planEnrolment({ host, conflict, pods, underWay }: EnrollFacts): Plan {
  const { target } = host;
  const { name, namespace } = target.metadata;
  const { nodeName, clusterRef, maintenance } = target.spec;
  const outlets = outletsOf(target);
  const obstacles: string[] = [];
  if (outlets.length === 0) obstacles.push("spec.devices has no outlet (snmp://HOST/OUTLET)");
  if (outlets.length === target.spec.devices.length) {
    obstacles.push("spec.devices has no BMC, which has to show that the host loses its power without the outlets");
  }
  const problem = enrolmentProblem(target, undefined);
  if (problem?.reason === "OutletsMisplaced") obstacles.push(problem.message);
  if (!maintenance) {
    const patch = `kubectl patch fencingtarget -n ${namespace} ${name} --type merge -p '{"spec":{"maintenance":true}}'`;
    obstacles.push(`the target is not in maintenance: ${patch}`);
  }
  if (conflict !== undefined) obstacles.push(`the target is ambiguous: ${conflict}`);
  if (target.status?.owner !== undefined) obstacles.push("a remediation owns the host: wait for it, or delete it");
  for (const { metadata } of underWay)
    obstacles.push(`BareMetalRemediation ${metadata.namespace}/${metadata.name} is under way`);
  if (clusterRef !== undefined) obstacles.push("the node is of another cluster, which this command does not read");
  obstacles.push(...nodeObstacles(host, pods));
  const list = outlets.map(({ address }) => address).join(", ");
  const shows = outlets.length > 2 ? ", and the other outlets must take its load over" : "";
  const alone = outlets.map(
    ({ address }) => `switch ${address} off and on: node ${nodeName} must keep running${shows}`,
  );
  if (outlets.length === 0) return { obstacles, steps: [] };
  return {
    obstacles,
    steps: [
      ...(outlets.length > 1 ? alone : []),
      `switch ${list} off: node ${nodeName} must stop`,
      `switch ${list} on: node ${nodeName} must come back Ready in a new boot, and its BMC must show the loss of power`,
      `store the enrolment in the status of FencingTarget ${namespace}/${name}`,
    ],
  };
}

function nodeObstacles({ target, node }: TargetContext, pods: readonly Pod[]): string[] {
  const { nodeName } = target.spec;
  if (node === undefined) return [`there is no node ${nodeName}`];
  const obstacles: string[] = [];
  if (!isReady(node)) obstacles.push(`node ${nodeName} is not Ready: an enrolment is for a host that works`);
  if (node.spec.unschedulable !== true) obstacles.push(`node ${nodeName} is not cordoned: kubectl cordon ${nodeName}`);
  const left = pods.filter(isEvicted);
  if (left.length > 0) {
    const drain = `kubectl drain ${nodeName} --ignore-daemonsets`;
    obstacles.push(`node ${nodeName} is not drained (${namesOf(left)}): ${drain}`);
  }
  if (mayRunEtcd(node)) obstacles.push(`node ${nodeName} belongs to the control plane or runs etcd`);
  if (node.metadata.annotations?.[RESETS_ITSELF] === "true") {
    const why = "its new boot would then not show that it lost its power";
    obstacles.push(`node ${nodeName} resets itself when it is cut off (Self Node Remediation), and ${why}`);
  }
  const uuid = meaningfulUuid(node.status.nodeInfo?.systemUUID);
  const expected = expectedIdentity(target)?.systemUUID;
  if (uuid === undefined) obstacles.push(`node ${nodeName} reports no system UUID of its own`);
  else if (expected !== undefined && !sameUuid(uuid, expected)) {
    obstacles.push(`node ${nodeName} runs on system UUID ${uuid}, and the target expects ${expected}`);
  }
  if ((node.status.nodeInfo?.bootID ?? "") === "") obstacles.push(`node ${nodeName} reports no boot ID`);
  return obstacles;
}

/** What the user has to know before the outlets are switched. */
export function concernsOf(node: Node, labels: readonly string[]): string[] {
  return [
    `whatever else is plugged into these outlets loses its power as well: ${labels.join(", ")}`,
    `node ${node.metadata.name} is powered off without a shutdown`,
  ];
}
