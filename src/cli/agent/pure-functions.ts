import { invalidMachineCheckDecider, machineCheckDecider } from "../../detector/machines/decide/deciders.ts";
import { CLUSTER_API_CHECKS } from "../../detector/machines/vendors/cluster-api.ts";
import { OKD_CHECKS } from "../../detector/machines/vendors/okd.ts";
import { INVALID_NODE_CHECK, NODE_CHECK } from "../../detector/nodes/decide/deciders.ts";
import type { Decider } from "../../detector/shared/model/decider.ts";
import { REMEDIATOR_FUNCTIONS } from "../../remediator/machine/log/functions.ts";
import type { PureFunctions } from "../../telemetry/decisions/replay.ts";

/** The pure functions of both halves, with which a log of decisions is replayed. */
export const PURE_FUNCTIONS: PureFunctions = {
  ...REMEDIATOR_FUNCTIONS,
  deciders: {
    ...REMEDIATOR_FUNCTIONS.deciders,
    ...Object.fromEntries([
      replayed(NODE_CHECK),
      replayed(INVALID_NODE_CHECK),
      ...[CLUSTER_API_CHECKS, OKD_CHECKS].flatMap((kind) => [
        replayed(machineCheckDecider(kind)),
        replayed(invalidMachineCheckDecider(kind)),
      ]),
    ]),
  },
};

/** Adapts a decider to the log, which has the fields of the input, and the time as a number. */
function replayed<I extends object, D>(decider: Decider<I, D>): [string, PureFunctions["deciders"][string]] {
  const { name, decide, inputOf, recorded } = decider;
  return [name, (fields, now) => recorded(decide(inputOf(fields), now as number))];
}
