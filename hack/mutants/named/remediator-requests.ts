import { METAL3 } from "./killers.ts";
import { mutantsOf } from "./mutant.ts";
import type { Mutant } from "./mutant.ts";

const mutant = mutantsOf("src/remediator");

export const REMEDIATOR_REQUESTS_MUTANTS: readonly Mutant[] = [
  // Requests of other kinds.
  mutant(
    "child-outlives-request",
    "requests/request",
    "a child is deleted with its request, even if the Machine owns it as well",
    "else await removeChild(runtime, found, signal);",
    "",
    METAL3,
  ),

  mutant(
    "metal3-child-without-readiness",
    "requests/metal3-remediation",
    "the remediation of a Metal3Remediation records whether its node was Ready when the request was created",
    "const metadata = { owners: [step.machine], annotations: record };",
    "const metadata = { owners: [step.machine], annotations: {} };",
    "test/sim/metal3/remediation.test.ts",
  ),
  mutant(
    "metal3-child-without-node",
    "requests/metal3-remediation",
    "the remediation of a Metal3Remediation records the Node as it was when the request was created",
    "const RECORDS: readonly string[] = [NODE_READY_IN_BOOT, NODE_AT_CREATION];",
    "const RECORDS: readonly string[] = [NODE_READY_IN_BOOT];",
    "test/sim/metal3/remediation.test.ts",
  ),

  // OKD.
  mutant(
    "okd-live-request",
    "requests/okd-machine",
    "no fence begins because a view still shows a fulfilled request",
    "const machine = await rereadMachine(runtime, this.type, watched, signal);",
    "const machine: Machine | undefined = watched;",
    "test/sim/okd.test.ts",
  ),
  mutant(
    "okd-request-without-readiness",
    "requests/okd-machine",
    "a node that is back since its health check has requested the fence is not powered off",
    "const readyInBoot = readyInBootOf(machine);",
    "const readyInBoot = undefined;",
    "test/sim/okd.test.ts",
  ),
  mutant(
    "okd-child-without-readiness",
    "requests/okd-machine",
    "the remediation of a Machine records whether its node was Ready when it was created",
    "...creationRecord(node, this.#zoneLabel),",
    "...creationRecord(undefined, this.#zoneLabel),",
    "test/sim/okd.test.ts",
  ),
  mutant(
    "okd-child-without-node",
    "requests/okd-machine",
    "the remediation of a Machine records the Node also if the request has recorded its readiness",
    "...creationRecord(node, this.#zoneLabel),",
    "...(readyInBoot === undefined && creationRecord(node, this.#zoneLabel)),",
    "test/sim/okd.test.ts",
  ),
];
