import type { IdentityJudge } from "../../bmc/identity/identity-check.ts";
import type { PowerDriver, PowerLossSigns } from "../../bmc/interface/driver.ts";
import { BmcError } from "../../bmc/interface/errors.ts";
import type { Clock } from "../../runtime/clock.ts";
import { DeadlineError, withDeadline } from "../../runtime/deadline.ts";
import { parseTimeMs } from "../../runtime/time.ts";
import { failEnrolment } from "./fail-enrolment.ts";

/**
 * The deadline of a call to a BMC while all outlets are off. The BMC may have lost its power together with its host.
 */
const DARK_CALL_MS = 5_000;
const CALL_MS = 20_000;
/** By how much a reading of a BMC's clock may be wrong. */
const CLOCK_SLACK_MS = 5_000;
/** A BMC starts within this time after its power is back. */
const BMC_START_MAX_MS = 5 * 60_000;
/**
 * A host starts within this time after its power is back. Its firmware may delay the start, and reports it only after
 * its tests.
 */
const HOST_START_MAX_MS = 10 * 60_000;
/** How often a BMC with a supply of its own has to read Off while all outlets are off. */
const OFF_READS_MIN = 3;

/** What one BMC has shown. */
interface Shown extends PowerLossSigns {
  lastReset: string | undefined;
  /** Its readings while all outlets were off. */
  offReads: number;
  otherReads: number;
}

const NO_WITNESS =
  "no BMC of the target shows that the host lost its power: none read Off for as long as all outlets were off, none has started since they were switched on again (LastResetTime of its Manager), and none names restored mains power as the cause of the last start and another cause before (IPMI)";

/**
 * Collects what the BMCs of a host show about a loss of power. A node in a new boot does not show that its host lost
 * power: a watchdog may have reset it, at any time. So a BMC has to show the loss, and none may contradict it.
 */
export class BmcWitness {
  readonly #clock: Clock;
  readonly #bmcs: readonly PowerDriver[];
  readonly #judge: IdentityJudge;
  readonly #before = new Map<PowerDriver, Shown>();

  constructor(clock: Clock, bmcs: readonly PowerDriver[], judge: IdentityJudge) {
    this.#clock = clock;
    this.#bmcs = bmcs;
    this.#judge = judge;
  }

  /** @throws CommandFailure unless every BMC answers, and is that of the host. */
  async begin(signal: AbortSignal): Promise<void> {
    if (this.#bmcs.length === 0) failEnrolment("the target has no BMC that could show that the host loses its power");
    for (const bmc of this.#bmcs) {
      const found = await this.#ask(bmc, CALL_MS, signal, (bounded) => this.#read(bmc, bounded));
      if ("failure" in found) failEnrolment(`a BMC has to answer before outlets are switched: ${found.failure}`);
      this.#before.set(bmc, { ...found.answer, offReads: 0, otherReads: 0 });
    }
  }

  /** @throws CommandFailure if a BMC shows the host On although all outlets are off. */
  async ensureNotOn(signal: AbortSignal): Promise<void> {
    for (const [bmc, shown] of this.#before) {
      const found = await this.#ask(bmc, DARK_CALL_MS, signal, (bounded) => bmc.readPower(bounded));
      const state = "answer" in found ? found.answer.state : undefined;
      if (state === "Off") shown.offReads += 1;
      else shown.otherReads += 1;
      if (state !== "On") continue;
      failEnrolment(
        `${bmc.address} reads On although all outlets are off: the host has a supply that no outlet of the target feeds`,
      );
    }
  }

  /**
   * Looks for the loss of power in what the BMCs show once the node is back.
   *
   * @param onAtMs when the outlets were ordered on, on the wall clock.
   * @returns why the loss is not shown; undefined if it is.
   * @throws CommandFailure if a BMC contradicts the loss.
   */
  async findLack(onAtMs: number, signal: AbortSignal): Promise<string | undefined> {
    let isShown = false;
    for (const [bmc, before] of this.#before) {
      const found = await this.#ask(bmc, CALL_MS, signal, async (bounded) => ({
        ...(await this.#read(bmc, bounded)),
        clockAheadMs: (await bmc.readEvidence?.(bounded))?.clockAheadMs,
        readAtMs: this.#clock.nowMs(),
      }));
      if ("failure" in found) return `a BMC has to show whether the host lost its power: ${found.failure}`;
      const now = found.answer;
      ensureResetInTime(bmc, before, now, onAtMs);
      if (now.isStartedByMains === false) {
        failEnrolment(`${bmc.address} reports that something other than restored mains power last started the host`);
      }
      const isDark = before.offReads >= OFF_READS_MIN && before.otherReads === 0;
      const isByMains = now.isStartedByMains === true && before.isStartedByMains === false;
      isShown ||= isDark || isByMains || hasStartedSince(before, now, onAtMs);
    }
    return isShown ? undefined : NO_WITNESS;
  }

  async #read(bmc: PowerDriver, signal: AbortSignal): Promise<PowerLossSigns & { lastReset: string | undefined }> {
    const check = this.#judge([await bmc.identify(signal)]);
    if (!check.verified) failEnrolment(check.message);
    const { lastReset } = bmc;
    return { ...(await bmc.readPowerLossSigns?.(signal)), lastReset };
  }

  async #ask<T>(
    bmc: PowerDriver,
    timeoutMs: number,
    signal: AbortSignal,
    ask: (signal: AbortSignal) => Promise<T>,
  ): Promise<{ answer: T } | { failure: string }> {
    try {
      return { answer: await withDeadline(this.#clock, `call of ${bmc.address}`, timeoutMs, signal, ask) };
    } catch (error) {
      if (signal.aborted || !(error instanceof BmcError || error instanceof DeadlineError)) throw error;
      return { failure: error.message };
    }
  }
}

/**
 * The last reset of a host that lost its power ended after its outlets were switched on. A BMC that has lost its power
 * with its host may have lost its history as well.
 */
function ensureResetInTime(
  bmc: PowerDriver,
  before: Shown,
  { lastReset, clockAheadMs }: { lastReset: string | undefined; clockAheadMs: number | undefined },
  onAtMs: number,
): void {
  if (lastReset === undefined) return;
  const resetAtMs = parseTimeMs(lastReset);
  const atMs = resetAtMs === undefined || clockAheadMs === undefined ? undefined : resetAtMs - clockAheadMs;
  const isInTime = atMs === undefined || isAfter(atMs, onAtMs, HOST_START_MAX_MS);
  if (lastReset !== before.lastReset && isInTime) return;
  failEnrolment(
    `${bmc.address} reports that the host was last reset at ${lastReset}, which is not when its outlets were switched on: something else has reset it`,
  );
}

/**
 * Whether the BMC has started since the outlets were switched on. One that kept running has been up for longer than
 * before, or as long as before if its clock has stopped.
 */
function hasStartedSince(before: Shown, now: PowerLossSigns & { readAtMs: number }, onAtMs: number): boolean {
  if (before.bmcUpMs === undefined || now.bmcUpMs === undefined) return false;
  const isLess = now.bmcUpMs < before.bmcUpMs - CLOCK_SLACK_MS;
  return isLess && isAfter(now.readAtMs - now.bmcUpMs, onAtMs, BMC_START_MAX_MS);
}

function isAfter(atMs: number, onAtMs: number, withinMs: number): boolean {
  return atMs >= onAtMs - CLOCK_SLACK_MS && atMs <= onAtMs + withinMs;
}
