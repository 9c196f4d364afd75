import type { BareMetalRemediation } from "../../api/bare-metal-remediation.ts";
import type { Node } from "../../api/core.ts";
import type { ClusterRef } from "../../clusters/workload-clusters.ts";
import type { Clock } from "../../runtime/clock.ts";
import { parseTimeMs } from "../../runtime/time.ts";
import { isReady } from "../machine/node-patches/marks.ts";
import { etcdNodes, mayRunEtcd } from "../machine/rules/quorum.ts";
import { ReplacementAdmission } from "./replacement-admission.ts";
import type { NodeCluster } from "../clusters/node-clusters.ts";
import { isBegun, isUnderWay, placeOf } from "../machine/model/state.ts";
import { clusterKey, subjectOf } from "../../nodes/subject.ts";
import { PLACE_KEPT_MS } from "../machine/model/timings.ts";
import type { Contender, AdmissionLimits } from "../machine/rules/admission.ts";
import { allot, zoneOf } from "../machine/rules/admission.ts";
import type { EtcdMember } from "../machine/model/observations.ts";
import type { Turn } from "../machine/model/snapshot.ts";

export interface AdmissionsDeps {
  clock: Clock;
  limits: AdmissionLimits;
  /** Label of a node that names its failure zone. */
  zoneLabel: string;
  /** The nodes of one cluster, as watched. */
  nodesOf(cluster: ClusterRef | undefined): NodeCluster["nodes"];
  /** Whether the etcd of a cluster, by its `clusterKey`, runs outside of it. */
  hasExternalEtcd(cluster: string): boolean;
  /** Every remediation, each as new as this process knows it: what it has stored itself may not have been watched yet. */
  remediations(): Iterable<BareMetalRemediation>;
  /** Wakes a remediation whose turn may have come. */
  wake(remediation: BareMetalRemediation): void;
  /** Told how many wait. */
  onWaiting(count: number): void;
}

/** How old the place may be that a waiting remediation has been told: each one told is a write. */
const RETELL_MS = 60_000;
const REVIEW_MS = 5_000;

/**
 * Hands out the turns to begin. Who has begun is read from the stored states, so that a restart or a change of leader
 * exceeds no limit; here is kept only who has asked, and who was granted a turn and has not stored its beginning yet.
 */
export class Admissions {
  readonly #deps: AdmissionsDeps;
  readonly #granted = new Set<string>();
  readonly #waiting = new Map<string, BareMetalRemediation>();
  #reviewedAtMs = -Infinity;
  readonly #told = new Map<string, { turn: Turn; atMs: number }>();
  /** By UID, since when a place has been lapsing, by the monotonic clock. */
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

  /** What a remediation that has asked is told; undefined for one that has not. */
  of(uid: string): Turn | undefined {
    return this.#granted.has(uid) ? { granted: true } : this.#told.get(uid)?.turn;
  }

  ask(remediation: BareMetalRemediation): void {
    this.#waiting.set(remediation.metadata.uid, remediation);
    this.review();
  }

  /** Forgets one that has begun, has ended, or waits no longer: the stored states tell the rest. */
  leave(uid: string): void {
    const wasKnown = this.#granted.delete(uid) || this.#waiting.delete(uid);
    this.#told.delete(uid);
    this.#lapsingSinceMs.delete(uid);
    if (wasKnown) this.review();
  }

  /** To be called with each look at a remediation: its place may have begun to lapse. */
  observe({ metadata: { uid }, status }: BareMetalRemediation): void {
    const { clock } = this.#deps;
    if (placeOf(status, clock.nowMs()) !== "Lapsing") this.#lapsingSinceMs.delete(uid);
    else if (!this.#lapsingSinceMs.has(uid)) this.#lapsingSinceMs.set(uid, clock.monotonicMs());
  }

  /** Looks again from time to time, for what no change tells: a time that has run out. */
  reviewIfOld(): void {
    if (this.#deps.clock.monotonicMs() - this.#reviewedAtMs >= REVIEW_MS) this.review();
  }

  /** Looks again whose turn it is; to be called whenever a remediation or a node of the control plane has changed. */
  review(): void {
    this.#reviewedAtMs = this.#deps.clock.monotonicMs();
    const { limits } = this.#deps;
    if (this.#waiting.size > 0) {
      const turns = allot(this.#underWay(), [...this.#waiting.values()].map(this.#contender), limits, this.#members());
      for (const [uid, turn] of turns) this.#tell(uid, turn);
    }
    this.#deps.onWaiting(this.#waiting.size);
  }

  #tell(uid: string, turn: Turn): void {
    const remediation = this.#waiting.get(uid);
    const told = this.#told.get(uid);
    const nowMs = this.#deps.clock.monotonicMs();
    if (remediation === undefined) return;
    if (turn.granted) {
      this.#waiting.delete(uid);
      this.#told.delete(uid);
      this.#granted.add(uid);
    } else {
      const isNews = told === undefined || told.turn.granted || told.turn.reason !== turn.reason;
      if (!isNews && nowMs - told.atMs < RETELL_MS) return;
      this.#told.set(uid, { turn, atMs: nowMs });
    }
    this.#deps.wake(remediation);
  }

  #underWay(): Contender[] {
    const nowMs = this.#deps.clock.nowMs();
    const begun = [...this.#deps.remediations()].filter(
      (remediation) => isUnderWay(remediation.status, nowMs) || this.#holdsPlace(remediation),
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
      // As stored, since its Node may be gone by now.
      zone: status?.node?.zone ?? zoneOf(this.#nodeOf(remediation), this.#deps.zoneLabel),
      createdAtMs: parseTimeMs(metadata.creationTimestamp) ?? 0,
      inherits: status?.attempt?.action === "Inherited",
      attempts: isBegun(status) ? (status?.retryCount ?? 0) + 1 : 0,
      holdsPlace: this.#holdsPlace(remediation),
    };
  };

  #holdsPlace({ metadata: { uid }, status }: BareMetalRemediation): boolean {
    const { clock } = this.#deps;
    if (this.#granted.has(uid)) return true;
    const place = placeOf(status, clock.nowMs());
    const nowMs = clock.monotonicMs();
    if (place !== "Lapsing") return place === "Held";
    // One that nothing wakes while it waits is observed here alone.
    const sinceMs = this.#lapsingSinceMs.get(uid) ?? nowMs;
    this.#lapsingSinceMs.set(uid, sinceMs);
    return nowMs - sinceMs <= PLACE_KEPT_MS;
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
      // Nodes are looked through only where somebody waits whom that concerns.
      if (node === undefined || !mayRunEtcd(node)) continue;
      const nodes = etcdNodes(this.#deps.nodesOf(cluster).values());
      const external = this.#deps.hasExternalEtcd(key);
      const toMember = (member: Node): EtcdMember => ({ node: member.metadata.name, up: isReady(member), external });
      members.set(key, nodes.map(toMember));
    }
    return (cluster) => members.get(cluster) ?? [];
  }
}
