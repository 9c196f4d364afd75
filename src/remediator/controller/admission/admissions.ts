import type { BareMetalRemediation } from "../../../api/ironfence/bare-metal-remediation.ts";
import type { Node } from "../../../api/kubernetes/core.ts";
import type { ClusterRef } from "../../../clusters/workload-clusters.ts";
import type { Clock, Timer } from "../../../runtime/clock.ts";
import { parseTimeMs } from "../../../runtime/time.ts";
import { isReady } from "../../../nodes/ready.ts";
import { etcdNodes, mayRunEtcd } from "../../machine/rules/admission/quorum.ts";
import { isDeletedMember } from "./deleted-members.ts";
import { ReplacementAdmission } from "./replacement-admission.ts";
import type { NodeCluster } from "../../clusters/node-clusters.ts";
import { isBegun, isUnderWay, slotOf } from "../../machine/model/decision/state.ts";
import { clusterKey, subjectOf } from "../../../nodes/subject.ts";
import { SLOT_KEPT_MS } from "../../machine/model/decision/timings.ts";
import type { Contender, AdmissionLimits } from "../../machine/rules/admission/admission.ts";
import { admit, zoneOf } from "../../machine/rules/admission/admission.ts";
import type { EtcdMember } from "../../machine/model/facts/observations.ts";
import type { Admission } from "../../machine/model/facts/snapshot.ts";

export interface AdmissionsDeps {
  clock: Clock;
  limits: AdmissionLimits;
  /** Label of a node that names its failure zone. */
  zoneLabel: string;
  /** The nodes of one cluster, as watched. */
  nodesOf(cluster: ClusterRef | undefined): NodeCluster["nodes"];
  /** Whether the etcd of a cluster, by its `clusterKey`, runs outside of it. */
  hasExternalEtcd(cluster: string): boolean;
  /**
   * Every remediation, each as new as this process knows it: what it has stored itself may not have been watched yet.
   */
  remediations(): Iterable<BareMetalRemediation>;
  /** Wakes a remediation that may have been admitted. */
  wake(remediation: BareMetalRemediation): void;
  /** Receives how many wait. */
  onWaiting(count: number): void;
}

/** How old the position may be that a waiting remediation was given: each further answer is a write. */
const REPORT_AGAIN_MS = 60_000;
const REVIEW_MS = 5_000;
/**
 * A review looks at every remediation. If so many wait, the changes of one moment have one review together: otherwise
 * the work of a storm grows with the square of its hosts.
 */
const MANY_WAITING = 100;
/** How long such a review is put off at most. */
const REVIEW_PAUSE_MS = 100;

/**
 * Admits remediations. Those that have begun are read from the stored states, so that a restart or a change of leader
 * exceeds no limit. Only two things are kept here: which remediations have asked, and which were admitted and have not
 * stored their beginning yet.
 */
export class Admissions {
  readonly #deps: AdmissionsDeps;
  readonly #granted = new Set<string>();
  readonly #waiting = new Map<string, BareMetalRemediation>();
  #reviewedAtMs = -Infinity;
  #reviewPutOff: Timer | undefined;
  readonly #answers = new Map<string, { admission: Admission; atMs: number }>();
  /** By UID, the monotonic time since which a slot has been lapsing. */
  readonly #lapsingSinceMs = new Map<string, number>();
  readonly #replace: ReplacementAdmission;

  constructor(deps: AdmissionsDeps) {
    this.#deps = deps;
    this.#replace = new ReplacementAdmission(() => deps.remediations());
  }

  /** Whether a remediation may have its Machine replaced now, or who may. */
  askToReplace(remediation: BareMetalRemediation): ReturnType<ReplacementAdmission["ask"]> {
    return this.#replace.ask(remediation);
  }

  /** What a remediation that has asked receives; undefined for one that has not. */
  of(uid: string): Admission | undefined {
    return this.#granted.has(uid) ? { granted: true } : this.#answers.get(uid)?.admission;
  }

  ask(remediation: BareMetalRemediation): void {
    const { uid } = remediation.metadata;
    this.#waiting.set(uid, remediation);
    this.review();
    if (this.of(uid) !== undefined) return;
    const message = `${this.#waiting.size - 1} other remediations wait for admission`;
    const admission = { granted: false, reason: "WaitingForTurn", message } as const;
    this.#answers.set(uid, { admission, atMs: this.#deps.clock.monotonicMs() });
  }

  /** Forgets a remediation that has begun, has ended, or no longer waits. From then on its stored state counts. */
  withdraw(uid: string): void {
    const wasKnown = this.#granted.delete(uid) || this.#waiting.delete(uid);
    this.#answers.delete(uid);
    this.#lapsingSinceMs.delete(uid);
    if (wasKnown) this.review();
  }

  /** To be called with each check of a remediation: its slot may have begun to lapse. */
  observe({ metadata: { uid }, status }: BareMetalRemediation): void {
    const { clock } = this.#deps;
    if (slotOf(status, clock.nowMs()) !== "Lapsing") this.#lapsingSinceMs.delete(uid);
    else if (!this.#lapsingSinceMs.has(uid)) this.#lapsingSinceMs.set(uid, clock.monotonicMs());
  }

  /** Reviews from time to time, for what no change shows: a time that has run out. */
  reviewIfOld(): void {
    if (this.#deps.clock.monotonicMs() - this.#reviewedAtMs >= REVIEW_MS) this.review();
  }

  /**
   * Decides again which remediations are admitted: now, or soon if many wait. Call it when a remediation or a node of
   * the control plane has changed.
   */
  review(): void {
    const { clock } = this.#deps;
    const inMs = this.#reviewedAtMs + REVIEW_PAUSE_MS - clock.monotonicMs();
    if (this.#waiting.size < MANY_WAITING || inMs <= 0) this.#reviewNow();
    else this.#reviewPutOff ??= clock.schedule(inMs, () => this.#reviewNow());
  }

  /** Nothing is reviewed on its own afterwards. */
  close(): void {
    this.#reviewPutOff?.cancel();
    this.#reviewPutOff = undefined;
  }

  #reviewNow(): void {
    this.close();
    this.#reviewedAtMs = this.#deps.clock.monotonicMs();
    const { limits } = this.#deps;
    if (this.#waiting.size > 0) {
      const admissions = admit(
        this.#underWay(),
        [...this.#waiting.values()].map(this.#contender),
        limits,
        this.#members(),
      );
      for (const [uid, admission] of admissions) this.#answer(uid, admission);
    }
    this.#deps.onWaiting(this.#waiting.size);
  }

  #answer(uid: string, admission: Admission): void {
    const remediation = this.#waiting.get(uid);
    const previous = this.#answers.get(uid);
    const nowMs = this.#deps.clock.monotonicMs();
    if (remediation === undefined) return;
    if (admission.granted) {
      this.#waiting.delete(uid);
      this.#answers.delete(uid);
      this.#granted.add(uid);
    } else {
      const isNews =
        previous === undefined || previous.admission.granted || previous.admission.reason !== admission.reason;
      if (!isNews && nowMs - previous.atMs < REPORT_AGAIN_MS) return;
      this.#answers.set(uid, { admission, atMs: nowMs });
    }
    this.#deps.wake(remediation);
  }

  #underWay(): Contender[] {
    const nowMs = this.#deps.clock.nowMs();
    const begun = [...this.#deps.remediations()].filter(
      (remediation) => isUnderWay(remediation.status, nowMs) || this.#holdsSlot(remediation),
    );
    return begun.map(this.#contender);
  }

  readonly #contender = (remediation: BareMetalRemediation): Contender => {
    const { metadata, status } = remediation;
    const { cluster, nodeName } = subjectOf(remediation);
    return {
      uid: metadata.uid,
      name: `${metadata.namespace}/${metadata.name}`,
      cluster: clusterKey(cluster),
      node: nodeName,
      // As stored, since its Node may be gone now.
      zone: status?.node?.zone ?? zoneOf(this.#nodeOf(remediation), this.#deps.zoneLabel),
      createdAtMs: parseTimeMs(metadata.creationTimestamp) ?? 0,
      inherits: status?.attempt?.action === "Inherited",
      attempts: isBegun(status) ? (status?.retryCount ?? 0) + 1 : 0,
      holdsSlot: this.#holdsSlot(remediation),
    };
  };

  #holdsSlot({ metadata: { uid }, status }: BareMetalRemediation): boolean {
    const { clock } = this.#deps;
    if (this.#granted.has(uid)) return true;
    const slot = slotOf(status, clock.nowMs());
    const nowMs = clock.monotonicMs();
    if (slot !== "Lapsing") return slot === "Held";
    // One that nothing wakes while it waits is observed here alone.
    const sinceMs = this.#lapsingSinceMs.get(uid) ?? nowMs;
    this.#lapsingSinceMs.set(uid, sinceMs);
    return nowMs - sinceMs <= SLOT_KEPT_MS;
  }

  #nodeOf(remediation: BareMetalRemediation): Node | undefined {
    const { cluster, nodeName } = subjectOf(remediation);
    return nodeName === undefined ? undefined : this.#deps.nodesOf(cluster).get({ name: nodeName });
  }

  #members(): (cluster: string) => readonly EtcdMember[] {
    const members = new Map<string, readonly EtcdMember[]>();
    for (const remediation of this.#waiting.values()) {
      const { cluster } = subjectOf(remediation);
      const key = clusterKey(cluster);
      const node = members.has(key) ? undefined : this.#nodeOf(remediation);
      // Nodes are searched only if a remediation waits to which they matter.
      if (node === undefined || !mayRunEtcd(node)) continue;
      const nodes = etcdNodes(this.#deps.nodesOf(cluster).values());
      const external = this.#deps.hasExternalEtcd(key);
      const toMember = (member: Node): EtcdMember => ({
        node: member.metadata.name,
        up: isReady(member),
        external,
        ...(isDeletedMember(member) && { deleted: true }),
      });
      members.set(key, nodes.map(toMember));
    }
    return (cluster) => members.get(cluster) ?? [];
  }
}
