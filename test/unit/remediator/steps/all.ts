import { FAILED_STEPS } from "./failed.ts";
import { HANDING_OVER_STEPS } from "./handing-over.ts";
import { POWERING_OFF_STEPS } from "./powering-off.ts";
import { POWERING_ON_STEPS } from "./powering-on.ts";
import { PROVISIONING_STEPS } from "./provisioning.ts";
import { REJOINING_STEPS } from "./rejoining.ts";
import { RELEASING_STEPS } from "./releasing.ts";
import { REPROVISION_STEPS } from "./reprovisioning.ts";
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
  "a remediation in Releasing": RELEASING_STEPS,
  "a remediation in Provisioning": PROVISIONING_STEPS,
  "a remediation in PoweringOn": POWERING_ON_STEPS,
  "a remediation in Rejoining": REJOINING_STEPS,
  "a remediation in Restoring": RESTORING_STEPS,
  "a remediation in Undoing": UNDOING_STEPS,
  "a remediation in Succeeded": SUCCEEDED_STEPS,
  "a remediation in Failed": FAILED_STEPS,
  "a remediation that reprovisions through others": REPROVISION_STEPS,
  "a remediation that hands a Machine to its owner": HANDING_OVER_STEPS,
};
