import { FAILED_STEPS } from "./failed.ts";
import { HOST_INSTALLATION_STEPS } from "./host-installation.ts";
import { MACHINE_DELETION_STEPS } from "./machine-deletion.ts";
import { POWERING_OFF_HELD_STEPS } from "./powering-off-held.ts";
import { POWERING_OFF_RETURNED_STEPS } from "./powering-off-returned.ts";
import { PROVEN_OFF_STEPS } from "./proven-off.ts";
import { HANDING_OVER_STEPS } from "./handing-over.ts";
import { POWERING_OFF_STEPS } from "./powering-off.ts";
import { POWERING_ON_STEPS } from "./powering-on.ts";
import { PROVISIONING_STEPS } from "./provisioning.ts";
import { REJOINING_STEPS } from "./rejoining.ts";
import { RELEASING_STEPS } from "./releasing.ts";
import { RESOLVING_STEPS } from "./resolving.ts";
import { RESTORING_STEPS } from "./restoring.ts";
import type { Step } from "./situations.ts";
import { SUCCEEDED_STEPS } from "./succeeded.ts";
import { UNDOING_STEPS } from "./undoing.ts";
import { VERIFYING_STEPS } from "./verifying.ts";

/** Steps within states that the pairs of state and event (`decide.test.ts`) do not reach. */
export const STEPS: Readonly<Record<string, readonly Step[]>> = {
  "a remediation in Resolving": RESOLVING_STEPS,
  "a remediation in Verifying": VERIFYING_STEPS,
  "a remediation in PoweringOff": POWERING_OFF_STEPS,
  "a remediation in PoweringOff that something holds": POWERING_OFF_HELD_STEPS,
  "a remediation in PoweringOff whose node came back": POWERING_OFF_RETURNED_STEPS,
  "a remediation in PoweringOff whose host is proven off": PROVEN_OFF_STEPS,
  "a remediation in Releasing": RELEASING_STEPS,
  "a remediation in Provisioning": PROVISIONING_STEPS,
  "a remediation in PoweringOn": POWERING_ON_STEPS,
  "a remediation in Rejoining": REJOINING_STEPS,
  "a remediation in Restoring": RESTORING_STEPS,
  "a remediation in Undoing": UNDOING_STEPS,
  "a remediation in Succeeded": SUCCEEDED_STEPS,
  "a remediation in Failed": FAILED_STEPS,
  "a remediation that has its Machine deleted": MACHINE_DELETION_STEPS,
  "a remediation that has its host installed again": HOST_INSTALLATION_STEPS,
  "a remediation that hands a Machine to its owner": HANDING_OVER_STEPS,
};
