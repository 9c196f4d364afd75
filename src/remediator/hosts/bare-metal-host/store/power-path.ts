import type { BareMetalHost } from "../../../../api/metal3/metal3.ts";
import { HostRefusal } from "../../model/host.ts";

// Who powers a BareMetalHost, and whether its state allows a fence. Pure.

/**
 * Operator: the operator of Metal3 keeps enforcing the spec of the host, so ironfence requests that it holds the host
 * off. Direct: it has detached the host, and nothing else powers it. Changing: the host is in between, so neither may
 * be relied on.
 */
export type PowerPath = "Operator" | "Direct" | "Changing";

export function powerPathOf({ detached, operationalStatus }: BareMetalHost): PowerPath {
  const hasLetGo = operationalStatus === "detached";
  if (detached !== hasLetGo) return "Changing";
  return detached ? "Direct" : "Operator";
}

/** Provisioning states in which the operator acts on reboot annotations. */
const FENCEABLE_STATES: readonly (string | undefined)[] = ["provisioned", "externally provisioned"];

/** Why the host must not be powered off in its present state; undefined if it may. */
export function powerOffRefusal(host: BareMetalHost): HostRefusal | undefined {
  const name = hostText(host);
  if (host.metadata.deletionTimestamp !== undefined) {
    return new HostRefusal("HostBeingDeleted", `${name} is being deleted: its operator decides about its power`);
  }
  if (host.disablePowerOff) {
    const message = `${name} has spec.disablePowerOff: it cannot be proven off, so it is not fenced`;
    return new HostRefusal("PowerOffDisabled", message);
  }
  const path = powerPathOf(host);
  if (path === "Changing") {
    const [from, to] = host.detached ? ["has not detached it yet", "detached"] : ["has not taken it back yet", "OK"];
    const message = `the operator of ${name} ${from}: status.operationalStatus is ${host.operationalStatus ?? "missing"}, not ${to}`;
    return new HostRefusal("HostDetaching", message);
  }
  if (path === "Direct") return undefined;
  if (!FENCEABLE_STATES.includes(host.provisioningState)) {
    const message = `${name} is ${host.provisioningState ?? "in no provisioning state"}: only a provisioned or externally provisioned host is powered by annotation`;
    return new HostRefusal("HostNotProvisioned", message);
  }
  if (!host.online) {
    return new HostRefusal("HostOffline", `${name} has spec.online: false: it is meant to be off, and would stay off`);
  }
  return undefined;
}

/**
 * Maintenance: a host that a user has paused for the operator is paused for ironfence as well. Undefined if it is not
 * paused.
 */
export function maintenanceOf(host: BareMetalHost): string | undefined {
  if (!host.paused || powerPathOf(host) !== "Operator") return undefined;
  return `${hostText(host)} is paused, so its operator would not act on a request: remove the annotation baremetalhost.metal3.io/paused`;
}

export function hostText({ metadata }: BareMetalHost): string {
  return `BareMetalHost ${metadata.namespace}/${metadata.name}`;
}
