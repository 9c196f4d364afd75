import type { State } from "./model/decision/state.ts";
import { nothingObservedOfAttempt } from "./model/facts/nothing-observed.ts";
import type { Observations } from "./model/facts/observations.ts";
import { ownsHost } from "./model/facts/observations.ts";

/** Updates the observations after a status was stored: discards those that do not apply to its state. */
export function statusStored(observations: Observations, from: State, to: State): Observations {
  const begins = from.name !== to.name;
  switch (to.name) {
    case "Verifying": {
      const again = from.name === "Verifying" && from.attempt.id === to.attempt.id;
      // A host that was released may belong to another remediation, so it has to be claimed again.
      return again
        ? observations
        : {
            ...observations,
            ...nothingObservedOfAttempt(),
            claim: ownsHost(observations) ? observations.claim : undefined,
          };
    }
    case "PoweringOff":
      // A further order also needs a fresh read of the node, so the next identity check must come with one.
      return begins && from.name !== "Verifying" ? { ...observations, identity: undefined } : observations;
    case "Releasing":
      if (begins) return { ...observations, released: false, drain: undefined };
      return observations.drain === undefined
        ? observations
        : { ...observations, drain: { ...observations.drain, isReported: true } };
    case "Undoing":
      if (!begins) return observations;
      // The owner of the host may have released it since the last claim.
      return {
        ...observations,
        claim: observations.claim?.owned === true ? observations.claim : undefined,
        // A reading On of one device says nothing about the others, which may have been turned off.
        power: nothingObservedOfAttempt().power,
        // A device that cannot set a boot override can still power the host on.
        device: observations.device?.reason === "BMCUnsupported" ? undefined : observations.device,
        taintCleared: false,
        marksCleared: false,
      };
    default:
      return observations;
  }
}
