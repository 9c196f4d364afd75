import { mutantsOf } from "./mutant.ts";
import type { Mutant } from "./mutant.ts";

const SIM = "test/sim/ac-cycle.test.ts";
const OUTLETS = "test/unit/bmc/devices/outlets.test.ts";
const DRIVERS = "test/integration/bmc-ac-cycle.test.ts";
const remediator = mutantsOf("src/remediator");
const bmc = mutantsOf("src/bmc");

export const AC_CYCLE_MUTANTS: readonly Mutant[] = [
  remediator(
    "cycle-ordered-again",
    "machine/rules/orders/ac-cycle",
    "a power cycle orders one AC cycle at most, also if another agent stored the order",
    "return status.acCycle?.attemptID === attempt.id ? status.acCycle : undefined;",
    "return status.acCycle?.attemptID === attempt.id && status.acCycle.result ? status.acCycle : undefined;",
    SIM,
  ),
  remediator(
    "cycle-before-release",
    "machine/rules/orders/ac-cycle",
    "no AC cycle before the workloads have left",
    "if (attempt.offConfirmedAtMs === undefined || !isReleased) return undefined;",
    "if (attempt.offConfirmedAtMs === undefined || (!isReleased && attempt.orders > 0)) return undefined;",
    SIM,
  ),
  remediator(
    "cycle-with-taint",
    "machine/rules/orders/ac-cycle",
    "no AC cycle while the out-of-service taint may stand",
    'if (!observations.taintCleared) return run({ do: "untaint" });',
    "",
    SIM,
  ),
  remediator(
    "cycle-without-bound",
    "machine/rules/orders/ac-cycle",
    "no host is kept off for a BMC that does not come back from an AC cycle",
    "const leftMs = Math.min(remainingMs - (attempt.deadlineMs - endsAtMs), strategy.acCycleTimeoutMs);",
    "const leftMs = Math.max(remainingMs - (attempt.deadlineMs - endsAtMs), strategy.acCycleTimeoutMs);",
    SIM,
  ),
  remediator(
    "cycle-over-too-early",
    "machine/rules/orders/ac-cycle",
    "a host is not powered on before its BMC has stopped answering and answers again",
    "(acCycle?.isAway === true || hasRestarted(last.bmcUpMs, cycle, now))",
    "acCycle?.isAway !== undefined",
    SIM,
  ),
  remediator(
    "cycle-leaves-host-off",
    "machine/states/powering-on",
    "an On after an AC cycle is not the last word: the cycle may still come",
    "mayBeOff !== true && observations.unseenOffs === undefined && !isCyclePending(snapshot, now.monotonicMs, now),",
    "mayBeOff !== true && observations.unseenOffs === undefined,",
    SIM,
  ),
  remediator(
    "cycle-forgotten-by-undo",
    "machine/rules/orders/power-orders",
    "a host that reads On is not given up by an undo while an AC cycle may still cut it off",
    "if (isCyclePending(snapshot, readAtMs, now)) return false;",
    "if (isCyclePending(snapshot, Infinity, now)) return false;",
    SIM,
  ),
  remediator(
    "cycle-unstored",
    "effects/power/send-once",
    "no AC cycle is ordered that the API server has not stored for this power cycle",
    "const isStored = status.acCycle?.attemptID === attemptId;",
    "const isStored = status.acCycle?.attemptID !== undefined || attemptId === undefined;",
    "test/unit/remediator/effects/power/device-effects.test.ts",
  ),
  bmc(
    "cycle-of-running-host",
    "redfish/orders/power-orders",
    "only a host that reads Off is cycled",
    'if (state !== "Off") throw new BmcError("Refused", `${text}: no AC cycle',
    'if (state === "On") throw new BmcError("Refused", `${text}: no AC cycle',
    DRIVERS,
  ),
  bmc(
    "cycle-of-enclosure",
    "redfish/orders/ac-cycle",
    "no chassis is cycled that may hold another host",
    "if (chassis === undefined || !isOfOneHost(origin, chassis.body, system.paths)) continue;",
    "if (chassis === undefined || system.paths.length === 0) continue;",
    DRIVERS,
  ),
  bmc(
    "cycle-of-one-supply",
    "devices/topology",
    "one of several supplies alone is not cycled",
    "this.#levels.filter(({ length }) => length === 1).flat()",
    "this.#levels.filter(({ length }) => length >= 1).flat()",
    DRIVERS,
  ),
  bmc(
    "order-sent-once-while-held",
    "devices/send-once",
    "what begins to hold power-offs while the power of a host is read holds an NMI and an AC cycle too",
    "if (found !== undefined) return",
    'if (found === "") return',
    SIM,
    "test/sim/crash-dump.test.ts",
    "test/sim/ac-cycle-outlets.test.ts",
  ),
  // By outlets.
  bmc(
    "supply-cut-of-host-on",
    "devices/send-once",
    "the outlets of a host that does not read Off are not switched off for an AC cycle",
    "if (state !== needs) return",
    'if (state !== needs && needs === "On") return',
    OUTLETS,
  ),
  bmc(
    "supply-cut-unenrolled",
    "devices/topology",
    "outlets are switched off for an AC cycle only if their enrolment holds now",
    "requireVerified: (signal) => this.#verifyAgain(level, signal),\n      send: (signal) => cutSupply",
    "requireVerified: () => Promise.resolve(),\n      send: (signal) => cutSupply",
    OUTLETS,
    SIM,
  ),
  bmc(
    "supply-cut-unread",
    "devices/topology",
    "an AC cycle by outlets is one only if each of them reads Off",
    'if (supplyPower(values, level.length).state === "Off") return;',
    'if (supplyPower(values, level.length).state !== "On") return;',
    OUTLETS,
    SIM,
  ),
  remediator(
    "supply-cut-short",
    "machine/rules/orders/ac-cycle",
    "the outlets of an AC cycle stay off until the supplies are discharged",
    'return inMs <= 0 ? end("DoneBySupply") : wait(snapshot, inMs);',
    'return inMs <= SUPPLY_CUT_MS ? end("DoneBySupply") : wait(snapshot, inMs);',
    SIM,
  ),
];
