import { METAL3, OKD_REQUESTS } from "./killers.ts";
import { mutantsOf } from "./mutant.ts";
import type { Mutant } from "./mutant.ts";

const mutant = mutantsOf("src/remediator");

export const REMEDIATOR_REQUESTS_MUTANTS: readonly Mutant[] = [
  // Requests of other kinds.
  mutant(
    "request-beside-another",
    "requests/decide-metal3-remediation",
    "a request that another controller serves is left to it",
    "if (other !== undefined) {",
    "if (other === undefined && refused !== undefined) {",
    METAL3,
  ),
  mutant(
    "request-served-twice",
    "requests/decide-metal3-remediation",
    "a host is not rebooted again for a request whose remediation somebody deleted",
    "if (request.phase !== undefined) {",
    "if (isEnded(request)) {",
    METAL3,
  ),
  mutant(
    "child-outlives-request",
    "requests/request",
    "a child goes with its request, though the Machine owns it too",
    "else await removeChild(runtime, found, signal);",
    "",
    METAL3,
  ),

  // OKD.
  mutant(
    "okd-live-request",
    "requests/okd-machine",
    "no fence begins on a view that still shows a request that was met",
    "const machine = await liveMachine(runtime, this.type, watched, signal);",
    "const machine: Machine | undefined = watched;",
    "test/sim/okd.test.ts",
  ),
  mutant(
    "okd-steps-back",
    "requests/decide-okd-machine",
    "of two remediators ours steps back",
    "if (otherActor !== undefined) {",
    "if (otherActor === null) {",
    OKD_REQUESTS,
  ),
  mutant(
    "okd-backup-kept",
    "requests/decide-okd-machine",
    "a child that failed stays while it alone holds what its deleted Node had",
    '?.status === "True") return hold;',
    '?.status === "Never") return hold;',
    OKD_REQUESTS,
  ),
  mutant(
    "okd-no-replacement",
    "requests/decide-okd-machine",
    "a Machine of the control plane, or that nobody makes anew, gets reboots alone",
    "const replaceable = !machine.isControlPlane && hasController(machine);",
    "const replaceable = machine.kind !== undefined;",
    OKD_REQUESTS,
  ),
];
