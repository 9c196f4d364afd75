import type { BareMetalRemediation } from "../../../api/ironfence/bare-metal-remediation.ts";
import type { Node } from "../../../api/kubernetes/core.ts";
import type { ClusterRef } from "../../../clusters/workload-clusters.ts";
import type { Clock, Timer } from "../../../runtime/clock.ts";
import { parseTimeMs } from "../../../runtime/time.ts";
import { readCreationRecord, zoneOf } from "../../../nodes/creation-record.ts";
import { isReady } from "../../../nodes/ready.ts";
import { etcdNodes, mayRunEtcd } from "../../machine/rules/admission/quorum.ts";
import { isDeletedMember } from "./deleted-members.ts";
import { ReplacementAdmission } from "./replacement-admission.ts";
import type { NodeCluster } from "../../clusters/node-clusters.ts";
import { isBegun, isUnderWay, slotOf } from "../../machine/model/decision/state.ts";
import { clusterKey, subjectOf } from "../../../nodes/subject.ts";
import { SLOT_KEPT_MS } from "../../machine/model/decision/timings.ts";
import type { Contender, AdmissionLimits } from "../../machine/rules/admission/admission.ts";
import { admit } from "../../machine/rules/admission/admission.ts";
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
  /** All remediations, in the newest version that this process knows: the watch may not show its latest writes yet. */
  remediations(): Iterable<BareMetalRemediation>;
  /** Wakes a remediation that may have been admitted. */
  wake(remediation: BareMetalRemediation): void;
  /** Receives the number of waiting remediations. */
  onWaiting(count: number): void;
}

/** How old the reported position of a waiting remediation may be. A new answer causes a write of its status. */
const REPORT_AGAIN_MS = 60_000;
const REVIEW_MS = 5_000;
/**
 * A review reads every remediation. If this many wait, all changes within REVIEW_PAUSE_MS share one review: otherwise
 * the work in a large outage grows with the square of the number of hosts.
 */
const MANY_WAITING = 100;
/** The longest time by which such a review is postponed. */
const REVIEW_PAUSE_MS = 100;

/**
 * Admits remediations. Those that have begun are read from the stored states, so that a restart or a change of leader
 * exceeds no limit. Only this process knows which remediations have asked, which were admitted and have not stored
 * their beginning yet, and since when a slot has been lapsing.
 */
export class Admissions {
  readonly #deps: AdmissionsDeps;
  readonly #granted = new Set<string>();
  readonly #waiting = new Map<string, BareMetalRemediation>();
  /** By UID, the zone of the node when its remediation asked: the Node may be deleted during the wait. */
  readonly #zones = new Map<string, string>();
  #reviewedAtMs = -Infinity;
  #postponedReview: Timer | undefined;
  readonly #answers = new Map<string, { admission: Admission; atMs: number }>();
  /** By UID, the monotonic time since which a slot has been lapsing. */
  readonly #lapsingSinceMs = new Map<string, number>();
  readonly #replace: ReplacementAdmission;

  constructor(deps: AdmissionsDeps) {
    this.#deps = deps;
    this.#replace = new ReplacementAdmission(() => deps.remediations());
  }

  /** Whether the Machine of a remediation may be replaced now, or which remediation comes first. */
  askToReplace(remediation: BareMetalRemediation): ReturnType<ReplacementAdmission["ask"]> {
    return this.#replace.ask(remediation);
  }

  /** The answer to a remediation; undefined if it has not asked. */
  of(uid: string): Admission | undefined {
    return this.#granted.has(uid) ? { granted: true } : this.#answers.get(uid)?.admission;
  }

  ask(remediation: BareMetalRemediation): void {
    const { uid } = remediation.metadata;
    this.#waiting.set(uid, remediation);
    const zone = zoneOf(this.#nodeOf(remediation), this.#deps.zoneLabel);
    if (zone !== undefined) this.#zones.set(uid, zone);
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
    this.#zones.delete(uid);
    if (wasKnown) this.review();
  }

  /** Call it after each reconcile of a remediation, because its slot may have begun to lapse. */
  observe({ metadata: { uid }, status }: BareMetalRemediation): void {
    const { clock } = this.#deps;
    if (slotOf(status, clock.nowMs()) !== "Lapsing") this.#lapsingSinceMs.delete(uid);
    else if (!this.#lapsingSinceMs.has(uid)) this.#lapsingSinceMs.set(uid, clock.monotonicMs());
  }

  /** Reviews if the last review is old. No change reports that a time is over, such as that of a lapsing slot. */
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
    else this.#postponedReview ??= clock.schedule(inMs, () => this.#reviewNow());
  }

  /** Cancels a postponed review. */
  close(): void {
    this.#postponedReview?.cancel();
    this.#postponedReview = undefined;
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
    const node = this.#nodeOf(remediation);
    // If the Node is gone and no status was stored, its zone is only in what the creator of the remediation recorded.
    const isUnstored = node === undefined && status?.node?.wasReady === undefined;
    const recorded = isUnstored ? readCreationRecord(metadata.annotations) : undefined;
    return {
      uid: metadata.uid,
      name: `${metadata.namespace}/${metadata.name}`,
      cluster: clusterKey(cluster),
      node: nodeName,
      // As stored, since its Node may be gone now.
      zone: status?.node?.zone ?? zoneOf(node, this.#deps.zoneLabel) ?? this.#zones.get(metadata.uid) ?? recorded?.zone,
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
    // A waiting remediation that nothing wakes is observed only here.
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
      // Nodes are searched only if a remediation of a control plane node waits.
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
