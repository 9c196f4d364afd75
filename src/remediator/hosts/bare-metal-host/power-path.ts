import type { BareMetalHost } from "../../../api/metal3.ts";
import { HostRefusal } from "../host.ts";

// Who powers a BareMetalHost, and whether it may be fenced as it is. Pure.

/**
 * Operator: Metal3's operator asserts what the host's spec wants, again and again, so it is asked to hold the host off. Direct: it
 * has let go of the host, and nobody else powers it. Changing: one of the two is not over yet, so nobody may rely on either.
 */
export type PowerPath = "Operator" | "Direct" | "Changing";

export function powerPathOf({ detached, operationalStatus }: BareMetalHost): PowerPath {
  const hasLetGo = operationalStatus === "detached";
  if (detached !== hasLetGo) return "Changing";
  return detached ? "Direct" : "Operator";
}

/** Provisioning states in which the operator heeds reboot annotations. */
const POWERED_STATES: readonly (string | undefined)[] = ["provisioned", "externally provisioned"];

/** Why the host must not be powered off as it is; undefined where it may. */
export function refusalOf(host: BareMetalHost): HostRefusal | undefined {
  const name = hostText(host);
  if (host.metadata.deletionTimestamp !== undefined) {
    return new HostRefusal("HostBeingDeleted", `${name} is being deleted: its operator decides about its power`);
  }
  if (host.disablePowerOff) {
    const message = `${name} has spec.disablePowerOff: nobody can prove that it is off, so it is not fenced`;
    return new HostRefusal("PowerOffDisabled", message);
  }
  const path = powerPathOf(host);
  if (path === "Changing") {
    const [from, to] = host.detached ? ["has not let go of it yet", "detached"] : ["has not taken it back yet", "OK"];
    const message = `the operator of ${name} ${from}: status.operationalStatus is ${host.operationalStatus ?? "missing"}, not ${to}`;
    return new HostRefusal("HostDetaching", message);
  }
  if (path === "Direct") return undefined;
  if (!POWERED_STATES.includes(host.provisioningState)) {
    const message = `${name} is ${host.provisioningState ?? "in no provisioning state"}: only a provisioned or externally provisioned host is powered by annotation`;
    return new HostRefusal("HostNotProvisioned", message);
  }
  if (!host.online) {
    return new HostRefusal("HostOffline", `${name} has spec.online: false: it is meant to be off, and would stay off`);
  }
  return undefined;
}

/** Hands off: what a person has told the operator holds for us as well. Undefined where nobody has. */
export function maintenanceOf(host: BareMetalHost): string | undefined {
  if (!host.paused || powerPathOf(host) !== "Operator") return undefined;
  return `${hostText(host)} is paused, so its operator would not heed us: take the annotation baremetalhost.metal3.io/paused off`;
}

export function hostText({ metadata }: BareMetalHost): string {
  return `BareMetalHost ${metadata.namespace}/${metadata.name}`;
}
