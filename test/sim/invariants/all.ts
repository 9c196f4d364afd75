import { imageAfterReboots } from "./bare-metal-host.ts";
import { holdsFromStored, noOffForStale, noOffOfReturned } from "./came-back.ts";
import { healthBudget, limitsHold, noRemediationStarves } from "./budget.ts";
import { finalizerKeptWhileOwing, noOverrideLeft, notLeftOff, rebootBeforeReprovision } from "./endings.ts";
import { leavesReturned } from "./early.ts";
import type { Invariant } from "./facts.ts";
import {
  finalHasNothing,
  oneOwner,
  onlyOwnMarks,
  onlyTheLeader,
  verifiedBeforeTaint,
  wrongHostIsSaid,
} from "./marks.ts";
import { overdueIsReported } from "./overdue.ts";
import {
  boundedCycles,
  drainedIsTrue,
  onePowerOffAnId,
  oneWriter,
  onlyWhileOff,
  onOnlyAfterRelease,
  taintFollowsPower,
} from "./power.ts";
import { quorumKept } from "./quorum.ts";

/**
 * Every rule that is checked after each step of a simulated world. L1 (`unsettled`) is checked after all faults have
 * ended.
 */
export const INVARIANTS: readonly Invariant[] = [
  onlyWhileOff,
  taintFollowsPower,
  oneWriter,
  onOnlyAfterRelease,
  drainedIsTrue,
  notLeftOff,
  onePowerOffAnId,
  boundedCycles,
  onlyOwnMarks,
  rebootBeforeReprovision,
  noOverrideLeft,
  imageAfterReboots,
  verifiedBeforeTaint,
  wrongHostIsSaid,
  healthBudget,
  limitsHold,
  noRemediationStarves,
  onlyTheLeader,
  finalHasNothing,
  oneOwner,
  finalizerKeptWhileOwing,
  noOffOfReturned,
  holdsFromStored,
  noOffForStale,
  overdueIsReported,
  quorumKept,
  leavesReturned,
];
