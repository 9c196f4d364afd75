import type { BareMetalRemediation } from "../../../src/api/ironfence/bare-metal-remediation.ts";
import type { FencingTarget } from "../../../src/api/ironfence/fencing-target.ts";
import { fieldAt } from "../../../src/api/schema/read-fields.ts";
import { CONTROL_PLANE_ROLES } from "../../../src/api/names/labels.ts";
import { readBareMetalHost } from "../../../src/api/metal3/metal3.ts";
import type { KubeObject } from "../../../src/kube/resource.ts";
import { offRequestersOf, storedOwner } from "../../../src/remediator/hosts/bare-metal-host/store/host-annotations.ts";
import { maintenanceOf } from "../../../src/remediator/hosts/bare-metal-host/store/power-path.ts";
import type { Change, HostTruth, Invariant, OrderRecord } from "./facts.ts";
import { agentWrite } from "./facts.ts";

// Presents BareMetalHosts to the rules as targets. Adding and removing an off request count as orders.

/** A BareMetalHost in the form of a FencingTarget. */
export function asTarget(object: KubeObject): FencingTarget {
  const host = readBareMetalHost(object);
  const { apiVersion, kind, metadata } = host;
  const devices = [{ address: host.bmc.address ?? "", credentialsSecretRef: { name: "" }, level: 1 }];
  const identity = { verification: "Required" as const };
  const owner = storedOwner(host);
  const since = "2026-01-01T00:00:00Z";
  return {
    apiVersion,
    kind,
    metadata,
    spec: { nodeName: metadata.name, maintenance: maintenanceOf(host) !== undefined, identity, devices },
    status: owner === undefined ? {} : { owner: { ...owner, since } },
  };
}

/**
 * S6. Only a remediation that reprovisions and has stored this may remove the image of a BareMetalHost. The host must
 * really be off and have no consumer, its node must not belong to the control plane, and the reboots of the strategy
 * must have turned the host off before.
 */
export const imageAfterReboots: Invariant = {
  name: "S6",
  says: "a BareMetalHost is wiped only after reboots that each proved it off; never a control plane host, nor a consumer's",
  check: (facts, step) => {
    const write = agentWrite<KubeObject>(step, "BareMetalHost");
    if (write === undefined || !losesImage({ object: write.object, previous: write.previous })) return undefined;
    const host = readBareMetalHost(write.object);
    const { name } = host.metadata;
    const uid = storedOwner(host)?.uid ?? "";
    const remediation = facts.remediations.get(uid);
    const { attempt, backup, installation, node, retryCount = 0 } = remediation?.status ?? {};
    if (remediation === undefined || attempt?.kind !== "Reprovision" || installation === undefined)
      return `${name} was wiped without a stored intent`;
    if (host.consumerRef !== undefined) return `${name} was wiped although ${host.consumerRef.name} has taken it`;
    if (facts.hosts.get(name)?.power !== "Off") return `${name} was wiped while it is ${facts.hosts.get(name)?.power}`;
    const labels = { ...backup?.labels, ...facts.nodes.get(node?.name ?? "")?.metadata.labels };
    if (CONTROL_PLANE_ROLES.some((role) => role in labels)) return `control plane host ${name} was wiped`;
    const { type, retryLimit, requireReboot } = remediation.spec.strategy;
    const offs = facts.orders.filter(
      ({ host, order, outcome }) => host === name && order === "ForceOff" && outcome !== "Refused",
    );
    const cycles = new Set(offs.filter((off) => off.remediation === uid).map((off) => off.attempt?.retryCount));
    const isEnough =
      type === "Escalate"
        ? cycles.size > 1 + retryLimit
        : !requireReboot || retryCount > 0 || offs.some((off) => off.remediation !== uid);
    return isEnough ? undefined : `${name} was wiped after ${cycles.size - 1} reboots of its own`;
  },
};

/**
 * Whether the operator of a BareMetalHost would power it on: it should be on, has an image, and no agent keeps it off.
 */
export function isOperated(object: KubeObject): boolean {
  const host = readBareMetalHost(object);
  return host.online && isInstalled(object) && offRequestersOf(host).length === 0;
}

function losesImage({ object, previous }: Pick<Change, "object"> & { previous?: KubeObject | undefined }): boolean {
  return isInstalled(previous) && !isInstalled(object);
}

/** Whether the spec of a BareMetalHost has an image. */
function isInstalled(object: KubeObject | undefined): boolean {
  return ["image", "customDeploy"].some((field) => fieldAt(object, "spec", field) !== undefined);
}

/** The order that a change of off requests stands for; undefined if it does not change whether the host is kept off. */
export function holdOrder(
  { object, previous }: Change,
  agent: string,
  atMs: number,
  hosts: ReadonlyMap<string, HostTruth>,
  remediations: ReadonlyMap<string, BareMetalRemediation>,
): OrderRecord | undefined {
  const [now, before] = [object, previous].map((known) => (known === undefined ? undefined : readBareMetalHost(known)));
  if (now === undefined || before === undefined) return undefined;
  const isHeld = offRequestersOf(now).length > 0;
  // If the image is removed together with the off request, the host is wiped and not powered on. `imageAfterReboots`
  // checks that.
  if (isHeld === offRequestersOf(before).length > 0 || losesImage({ object, previous })) return undefined;
  const { name } = now.metadata;
  const power = hosts.get(name)?.power ?? "";
  // A remediation that gives a host up removes its off request in the same write.
  const remediation = (storedOwner(now) ?? storedOwner(before))?.uid;
  const { attempt, retryCount = 0 } = remediations.get(remediation ?? "")?.status ?? {};
  // If the host is already on, the removal of the off request orders nothing.
  if (!isHeld && power !== "Off" && power !== "PoweringOff") return undefined;
  const isChange = !isHeld || power === "On" || power === "PoweringOn";
  return {
    atMs,
    agent,
    host: name,
    order: isHeld ? "ForceOff" : "On",
    outcome: isChange ? "Started" : "NoChange",
    remediation,
    attempt: attempt && { id: attempt.id, action: attempt.action, retryCount },
  };
}
