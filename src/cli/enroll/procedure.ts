import type { Enrolment, FencingTarget } from "../../api/ironfence/fencing-target.ts";
import { outletAnswers } from "../../bmc/topology/outlets.ts";
import type { OutletAnswer } from "../../bmc/topology/outlets.ts";
import type { PowerDriver } from "../../bmc/interface/driver.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import { identityJudge } from "../../remediator/hosts/model/identity.ts";
import { enrolledSpecDigest } from "../../remediator/hosts/model/enrolment.ts";
import { sleep } from "../../runtime/clock.ts";
import { formatDuration } from "../../runtime/duration.ts";
import { toTime } from "../../runtime/time.ts";
import { BmcWitness } from "./bmc-witness.ts";
import { failEnrolment } from "./fail-enrolment.ts";
import { HeldTarget } from "./held-target.ts";
import { hasMoved, readLoads } from "./moved-load.ts";
import { OtherNodes } from "./other-nodes.ts";
import { OutletSwitch } from "./outlet-switch.ts";
import { LiveNode } from "./live-node.ts";

const POLL_MS = 2_000;
/**
 * How long a host may still renew its lease after its outlets are off: its supplies store energy, and a renewal takes
 * time to arrive.
 */
export const HOLD_UP_MS = 5_000;
/** With one outlet off, the node has to renew its lease this often within this time. */
const RENEWALS_ALONE = 3;
const ALONE_MAX_MS = 90_000;
/** How long a supply needs after its outlet is on, before the next outlet is switched off. */
const SETTLE_MS = 15_000;
/** With all outlets off, no renewal may come for this long: several times what a live kubelet takes. */
const DARK_MS = 60_000;
/** A node that renews its lease again in its old boot gets this long to report a new one. */
const SAME_BOOT_MS = 60_000;
/** Once the node is back, its BMC gets this long to start, and to show that the host lost its power. */
const WITNESS_MS = 5 * 60_000;

export interface EnrollSubject {
  target: FencingTarget;
  outlets: readonly PowerDriver[];
  bmcs: readonly PowerDriver[];
  enrolledBy: string | undefined;
  /** How long the node may take to come back. */
  timeoutMs: number;
  /** Addresses of outlets that feed the host according to the user. Their loads need not show it. */
  confirmed: readonly string[];
}

export interface EnrollReport {
  note(text: string): void;
  wait(what: string): void;
}

/**
 * Shows that outlets, and nothing else, feed a host, and stores it. Whatever happens, the outlets are switched on again
 * at the end.
 */
export class EnrollProcedure {
  readonly #runtime: KubeRuntime;
  readonly #subject: EnrollSubject;
  readonly #report: EnrollReport;
  readonly #liveNode: LiveNode;
  readonly #switch: OutletSwitch;
  readonly #bmc: BmcWitness;
  readonly #others: OtherNodes;
  readonly #target: HeldTarget;
  /** What the PDUs report about the outlets when the procedure begins. */
  #answers: readonly OutletAnswer[] = [];

  constructor(runtime: KubeRuntime, subject: EnrollSubject, report: EnrollReport) {
    this.#runtime = runtime;
    this.#subject = subject;
    this.#report = report;
    const { nodeName } = subject.target.spec;
    this.#target = new HeldTarget(runtime, subject.target);
    this.#liveNode = new LiveNode(runtime, nodeName);
    this.#others = new OtherNodes(runtime, nodeName);
    this.#switch = new OutletSwitch(runtime.clock);
    this.#bmc = new BmcWitness(runtime.clock, subject.bmcs, (answers) =>
      identityJudge(subject.target, this.#liveNode.node?.status.nodeInfo?.systemUUID)(answers),
    );
  }

  /** @throws CommandFailure if it is not shown that the outlets feed the host. Then nothing is enrolled. */
  async run(signal: AbortSignal): Promise<Enrolment> {
    const { outlets } = this.#subject;
    try {
      await this.#begin(signal);
      if (outlets.length > 1) for (const outlet of outlets) await this.#switchAlone(outlet, signal);
      const bootIDBefore = await this.#switchAllOff(signal);
      const bootIDAfter = await this.#comeBack(bootIDBefore, signal);
      return await this.#store(bootIDBefore, bootIDAfter, signal);
    } finally {
      await this.#restore();
    }
  }

  async #restore(): Promise<void> {
    if (!this.#switch.mayBeOff) return;
    this.#report.note("switching the outlets on again");
    try {
      await this.#switch.on();
      this.#report.note("all outlets are on again");
    } catch {
      const left = this.#switch.leftOff.join(", ");
      this.#report.note(`left behind: these outlets may be off: ${left}; switch them on at their PDU`);
    }
  }

  /** Ensures that every outlet is on and that the node lives, and removes an earlier enrolment. */
  async #begin(signal: AbortSignal): Promise<void> {
    const { outlets } = this.#subject;
    for (const outlet of outlets) {
      const { state, raw } = await outlet.readPower(signal);
      if (state !== "On") failEnrolment(`${outlet.address} is not on (${raw}): switch it on first`);
    }
    this.#answers = await outletAnswers(outlets, signal);
    await this.#renewals(1, "the node to renew its lease", signal);
    await this.#bmc.begin(signal);
    await this.#others.begin(signal);
    await this.#target.write({ enrolment: null }, signal);
  }

  /**
   * Switches one outlet off for a while. All nodes have to keep running, which shows that the other outlets feed this
   * host.
   */
  async #switchAlone(outlet: PowerDriver, signal: AbortSignal): Promise<void> {
    await this.#target.ensureHeld(signal);
    const boot = this.#liveNode.bootID;
    const { outlets, confirmed } = this.#subject;
    const others = outlets.filter((other) => other !== outlet);
    const [[load], before] = await Promise.all([readLoads([outlet], signal), readLoads(others, signal)]);
    await this.#switch.off([outlet], signal);
    await sleep(this.#runtime.clock, HOLD_UP_MS, signal);
    await this.#others.mark(signal);
    await this.#renewals(RENEWALS_ALONE, `the node to keep running without ${outlet.address}`, signal);
    await this.#others.ensureRunning(outlet.address, signal);
    if (this.#liveNode.bootID !== boot)
      failEnrolment(`the node began a new boot while ${outlet.address} alone was off`);
    const without = await readLoads(others, signal);
    await this.#switch.on();
    await sleep(this.#runtime.clock, SETTLE_MS, signal);
    const after = await readLoads(others, signal);
    if (outlets.length > 2 && !confirmed.includes(outlet.address) && !hasMoved({ before, without, after })) {
      const unmetered = others.filter((_, index) => before[index] === undefined || without[index] === undefined);
      const why =
        unmetered.length > 0
          ? `there is no meter that shows what ${unmetered.map(({ address }) => address).join(" and ")} took over`
          : `not every other outlet took over its load${load === undefined ? "" : ` of ${load}`}`;
      failEnrolment(
        `${outlet.address} is not shown to feed this host: ${why}. If there are more than two outlets, one may feed nothing or another host: check its plug, and name it with --confirm-outlets`,
      );
    }
    this.#report.note(`the node keeps running without ${outlet.address}`);
  }

  /** @returns the boot that ended. */
  async #switchAllOff(signal: AbortSignal): Promise<string> {
    const { clock } = this.#runtime;
    await this.#renewals(1, "the node to renew its lease", signal);
    await this.#target.ensureHeld(signal);
    const bootID = this.#liveNode.bootID ?? failEnrolment("the node reports no boot ID");
    await this.#switch.off(this.#subject.outlets, signal);
    const offAtMs = clock.monotonicMs();
    let isMarked = false;
    while (clock.monotonicMs() - offAtMs < DARK_MS) {
      await this.#liveNode.read(signal);
      const ranOnMs = this.#liveNode.renewedAtMs - offAtMs;
      if (ranOnMs > HOLD_UP_MS) {
        failEnrolment(
          `the node still renewed its lease ${Math.round(ranOnMs / 1_000)} s after all outlets were off: the host has another supply, or a battery`,
        );
      }
      if (clock.monotonicMs() - offAtMs > HOLD_UP_MS) {
        if (!isMarked) await this.#others.mark(signal);
        isMarked = true;
        await this.#bmc.ensureNotOn(signal);
      }
      this.#report.wait("the node to stop without its outlets");
      await sleep(clock, POLL_MS, signal);
    }
    await this.#others.ensureRunning("every outlet", signal);
    await this.#target.ensureHeld(signal);
    this.#report.note(`the node has been silent for ${DARK_MS / 1_000} s with all outlets off`);
    return bootID;
  }

  /** @returns the boot that began. */
  async #comeBack(bootIDBefore: string, signal: AbortSignal): Promise<string> {
    const { clock } = this.#runtime;
    const onAtMs = clock.monotonicMs();
    const onAtEpochMs = clock.nowMs();
    await this.#switch.on();
    this.#report.note("all outlets are on again");
    let sameSinceMs: number | undefined;
    let backSinceMs: number | undefined;
    for (;;) {
      await this.#liveNode.read(signal);
      const { bootID: boot, isReady, renewedAtMs } = this.#liveNode;
      const isRenewed = renewedAtMs > onAtMs;
      const isNewBoot = isRenewed && isReady && boot !== undefined && boot !== bootIDBefore;
      if (isNewBoot) {
        backSinceMs ??= clock.monotonicMs();
        const lack = await this.#bmc.findLack(onAtEpochMs, signal);
        if (lack === undefined) {
          await this.#others.ensureUntouched(signal);
          this.#report.note("the node is Ready in a new boot, and its BMC shows the loss of power");
          return boot;
        }
        if (clock.monotonicMs() - backSinceMs >= WITNESS_MS) failEnrolment(lack);
      }
      if (isRenewed && boot === bootIDBefore) sameSinceMs ??= clock.monotonicMs();
      else sameSinceMs = undefined;
      if (sameSinceMs !== undefined && clock.monotonicMs() - sameSinceMs >= SAME_BOOT_MS) {
        failEnrolment(
          "the node is back in the same boot, so its host never lost its power: the outlets feed something else, such as its switch",
        );
      }
      if (clock.monotonicMs() - onAtMs >= this.#subject.timeoutMs) {
        const next = "power the host on by hand, and let it power on after a loss of power in its firmware settings";
        failEnrolment(
          `the node did not come back Ready in a new boot within ${formatDuration(this.#subject.timeoutMs)}: ${next}`,
        );
      }
      this.#report.wait(isNewBoot ? "the BMC to show the loss of power" : "the node to come back in a new boot");
      await sleep(clock, POLL_MS, signal);
    }
  }

  async #store(bootIDBefore: string, bootIDAfter: string, signal: AbortSignal): Promise<Enrolment> {
    const { target, outlets, enrolledBy } = this.#subject;
    const { nodeName, clusterRef } = target.spec;
    const { node } = this.#liveNode;
    const answers = await outletAnswers(outlets, signal);
    for (const [index, { address, pdu, outlet }] of answers.entries()) {
      const before = this.#answers[index];
      if (pdu !== before?.pdu || outlet !== before.outlet) {
        failEnrolment(
          `${address} was outlet ${before?.outlet} of PDU ${before?.pdu}, and is outlet ${outlet} of ${pdu} now`,
        );
      }
    }
    const enrolment: Enrolment = {
      time: toTime(this.#runtime.clock.nowMs()),
      ...(enrolledBy !== undefined && { enrolledBy }),
      nodeName,
      ...(clusterRef !== undefined && { clusterRef }),
      nodeUID: node?.metadata.uid ?? "",
      systemUUID: node?.status.nodeInfo?.systemUUID ?? "",
      bootIDBefore,
      bootIDAfter,
      specDigest: enrolledSpecDigest(target),
      outlets: answers.map(({ address, pdu, outlet, label, metered }) => ({
        address,
        pdu,
        outlet,
        ...(label !== undefined && { label }),
        ...(metered !== undefined && { metered }),
      })),
    };
    await this.#target.write({ enrolment }, signal);
    return enrolment;
  }

  /** Waits until the node has renewed its lease `times` more times. */
  async #renewals(times: number, what: string, signal: AbortSignal): Promise<void> {
    const { clock } = this.#runtime;
    const endMs = clock.monotonicMs() + ALONE_MAX_MS;
    await this.#liveNode.read(signal);
    const wanted = this.#liveNode.renewals + times;
    while (this.#liveNode.renewals < wanted) {
      if (clock.monotonicMs() >= endMs)
        failEnrolment(`the command waited ${ALONE_MAX_MS / 1_000} s in vain for ${what}`);
      this.#report.wait(what);
      await sleep(clock, POLL_MS, signal);
      await this.#liveNode.read(signal);
    }
  }
}
