import type { BareMetalRemediation } from "../../api/ironfence/bare-metal-remediation.ts";
import type { Node } from "../../api/kubernetes/core.ts";
import type { FencingTarget } from "../../api/ironfence/fencing-target.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import type { Watched } from "../../kube/watched.ts";
import type { KubeletLeases, KubeletLease } from "../../nodes/leases/kubelet-leases.ts";
import { isPaceKnown } from "../../nodes/leases/silence.ts";
import { sleep } from "../../runtime/clock.ts";
import type { FencingTargetDirectory } from "../hosts/fencing-target/directory.ts";
import { hasReturned } from "../machine/rules/outage/early.ts";
import { isFinal } from "../machine/model/decision/state.ts";
import { whyNotEarly } from "./candidate.ts";
import { EarlyProof } from "./early-proof.ts";
import { EarlyStarts } from "./release-limits.ts";
import { RatePermits } from "./rate-permits.ts";
import type { Wave } from "./wave.ts";
import { mayRead, mayUse, NO_WAVE, noteOverdue, noteReading } from "./wave.ts";

/** How often nodes whose renewals are overdue are checked. A check makes no calls. */
const LOOK_MS = 250;
/**
 * How many hosts are read at the same time, and how many reads may begin in a second. The lease of a node is read live
 * before its host, and again before each proof is stored. So no more than 20 leases are read live in a second.
 */
const HOSTS_AT_ONCE = 8;
const HOSTS_A_SECOND = 8;
/** How long no proof is made after a call to the API server failed, was refused because of its load, or was slow. */
const TROUBLE_MS = 30_000;
/** How long no lease is read after the watch of the leases was found to lag. */
const LAG_MS = 5_000;
/**
 * The time until a host that is not off is read again, while its node still does not renew its lease. It doubles up to
 * the maximum.
 */
const RETRY_MIN_MS = 5_000;
const RETRY_MAX_MS = 60_000;

/** Which nodes health checks may remediate although they are Ready. */
export interface EarlyProofsWanted {
  /** Resolves as soon as there is such a health check. Rejects with the signal's reason as soon as `signal` aborts. */
  whenEarlyWanted(signal: AbortSignal): Promise<void>;
  /** Whether one of them covers this node. */
  isEarlyWantedFor(node: Node): boolean;
}

export interface EarlyProverDeps {
  runtime: KubeRuntime;
  nodes: Watched<Node>;
  leases: KubeletLeases;
  targets: Watched<FencingTarget>;
  directory: FencingTargetDirectory;
  proofs: EarlyProofsWanted;
  /** Whether power-offs are held. */
  isStopped: () => boolean;
  remediations: () => Iterable<BareMetalRemediation>;
  /** Whether another operator powers the host of a target. */
  isManaged: (target: FencingTarget) => boolean;
}

/** A node whose renewal is overdue, with the version of the lease that it has not renewed. */
interface Suspect {
  lease: Pick<KubeletLease, "uid" | "resourceVersion">;
  /** Whether its host has been read since. */
  isRead: boolean;
  tries: number;
  /** Infinity after a device failed: it may have restarted, and its Off proves nothing until the node renews. */
  retryAtMs: number;
  running: Promise<void> | undefined;
}

/**
 * Proves that hosts are off whose nodes are still Ready but no longer renew their leases. It sends no orders. It writes
 * a proof to the status of the FencingTarget, where the detector reads it. While all nodes renew their leases, it calls
 * no BMC.
 */
export class EarlyProver {
  readonly #deps: EarlyProverDeps;
  readonly #suspects = new Map<string, Suspect>();
  readonly #starts = new EarlyStarts();
  readonly #hostPermits: RatePermits;
  readonly #granted = new Set<string>();
  #wave: Wave = NO_WAVE;
  /** Hosts of the wave that may be read and were not read yet. */
  #unread = 0;
  #laggingUntilMs = -Infinity;

  constructor(deps: EarlyProverDeps) {
    this.#deps = deps;
    this.#hostPermits = new RatePermits(deps.runtime.clock, HOSTS_A_SECOND);
  }

  /** Runs until `signal` aborts. When it settles, all its tasks have ended and all devices are closed. */
  async run(signal: AbortSignal): Promise<void> {
    const { runtime, leases, proofs } = this.#deps;
    try {
      for (;;) {
        await proofs.whenEarlyWanted(signal);
        leases.start(signal);
        this.#look(signal);
        // Nothing is due before a renewal is overdue, so the loop usually sleeps for seconds.
        const waitMs = this.#suspects.size > 0 ? LOOK_MS : Math.max(LOOK_MS, leases.nextOverdueInMs);
        await sleep(runtime.clock, waitMs, signal);
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      await Promise.all([...this.#suspects.values()].flatMap(({ running }) => running ?? []));
    }
  }

  #look(signal: AbortSignal): void {
    const { runtime, leases, nodes, targets, proofs } = this.#deps;
    const nowMs = runtime.clock.monotonicMs();
    const early = [...this.#deps.remediations()].filter(({ spec }) => spec.powerOnNotBefore !== undefined);
    this.#starts.note(new Set(early.map(({ metadata }) => metadata.uid)), nowMs);
    this.#forgetRenewed();
    if (!leases.synced || !nodes.synced || !targets.synced) return;
    const waiting: [string, Suspect, Node, FencingTarget][] = [];
    for (const name of leases.overdue()) {
      const node = nodes.get({ name });
      const target = this.#targetOf(name);
      if (node === undefined || target === undefined || this.#deps.isManaged(target)) continue;
      if (!isPaceKnown(leases.of(name) ?? { gapsMs: [] })) continue;
      if (!proofs.isEarlyWantedFor(node) || whyNotEarly(node, target) !== undefined) continue;
      const suspect = this.#suspectOf(name, nowMs);
      if (suspect === undefined || suspect.running !== undefined || suspect.retryAtMs > nowMs) continue;
      waiting.push([name, suspect, node, target]);
    }
    this.#unread = waiting.filter(([, { isRead }]) => !isRead).length;
    for (const [name, suspect, node, target] of waiting) {
      if (!this.#mayBegin(nowMs)) break;
      this.#unread -= suspect.isRead ? 0 : 1;
      suspect.running = this.#prove(name, suspect, node, target, signal).finally(() => {
        suspect.running = undefined;
      });
    }
  }

  #mayBegin(nowMs: number): boolean {
    const running = [...this.#suspects.values()].filter((suspect) => suspect.running !== undefined);
    const unread = running.filter(({ isRead }) => !isRead).length;
    return (
      running.length < HOSTS_AT_ONCE &&
      mayRead(this.#wave, unread, nowMs) &&
      this.#isCalm(nowMs) &&
      this.#hostPermits.take()
    );
  }

  /** Whether the API server answers as it should, and nothing holds power-offs. */
  #isCalm(nowMs: number): boolean {
    const { troubledAtMs = -Infinity } = this.#deps.runtime.contact();
    return nowMs - troubledAtMs >= TROUBLE_MS && nowMs >= this.#laggingUntilMs && !this.#deps.isStopped();
  }

  /** Forgets nodes that have renewed their lease or have another Lease object. */
  #forgetRenewed(): void {
    const { leases } = this.#deps;
    for (const [name, { lease, running }] of this.#suspects) {
      const observed = leases.of(name);
      const isSame = observed?.uid === lease.uid && observed.resourceVersion === lease.resourceVersion;
      if (!isSame && running === undefined) this.#suspects.delete(name);
    }
  }

  /** Undefined while a proof for an earlier version of the lease is still ending. */
  #suspectOf(name: string, nowMs: number): Suspect | undefined {
    const observed = this.#deps.leases.of(name);
    if (observed === undefined) return undefined;
    const known = this.#suspects.get(name);
    if (known !== undefined) return known.lease.resourceVersion === observed.resourceVersion ? known : undefined;
    const { uid, resourceVersion } = observed;
    const suspect = {
      lease: { uid, resourceVersion },
      isRead: false,
      tries: 0,
      retryAtMs: -Infinity,
      running: undefined,
    };
    this.#suspects.set(name, suspect);
    this.#wave = noteOverdue(this.#wave, nowMs);
    return suspect;
  }

  /** The only target that names the node. */
  #targetOf(name: string): FencingTarget | undefined {
    const [target, other] = this.#deps.directory.index.byNode({ cluster: undefined, name });
    return other === undefined ? target : undefined;
  }

  async #prove(name: string, suspect: Suspect, node: Node, target: FencingTarget, signal: AbortSignal): Promise<void> {
    const { runtime, leases, directory } = this.#deps;
    const { clock, logger } = runtime;
    const proof = new EarlyProof(
      { runtime, leases, directory, nodes: this.#deps.nodes },
      { name, node, target, lease: suspect.lease },
      {
        onLag: () => {
          this.#laggingUntilMs = clock.monotonicMs() + LAG_MS;
        },
        onFirstReading: (isOff) => {
          if (!suspect.isRead) this.#wave = noteReading(this.#wave, isOff, clock.monotonicMs());
          suspect.isRead = true;
        },
        onDeviceFailure: () => {
          suspect.retryAtMs = Infinity;
        },
        mayGrant: () => this.#mayGrant(name),
        onGranted: (isGranted) => {
          if (isGranted) this.#granted.add(name);
          else this.#granted.delete(name);
        },
      },
    );
    try {
      const why = await proof.run(signal);
      logger.info({ node: name, target: target.metadata.name, why }, "early off proof ended");
    } catch (error) {
      if (signal.aborted) return;
      logger.warn({ node: name, target: target.metadata.name, err: error }, "early off proof failed");
    } finally {
      // A host that could not be read counts as one that is not off.
      if (!suspect.isRead) this.#wave = noteReading(this.#wave, false, clock.monotonicMs());
      suspect.isRead = true;
      if (suspect.retryAtMs !== Infinity) {
        suspect.retryAtMs = clock.monotonicMs() + Math.min(RETRY_MIN_MS * 2 ** suspect.tries, RETRY_MAX_MS);
      }
      suspect.tries += 1;
    }
  }

  /** Whether the proof of this node may be given to the detector now. */
  #mayGrant(name: string): boolean {
    const nowMs = this.#deps.runtime.clock.monotonicMs();
    if (!this.#isCalm(nowMs)) return false;
    const reading = [...this.#suspects.values()].filter(
      ({ isRead, running }) => !isRead && running !== undefined,
    ).length;
    if (!mayUse(this.#wave, this.#unread + reading, nowMs)) return false;
    if (this.#granted.has(name)) return true;
    return this.#starts.mayStart({ proven: this.#granted.size, releasing: this.#releasing() }, nowMs);
  }

  /** Remediations that began early and have not released the workloads of their nodes yet. */
  #releasing(): number {
    let count = 0;
    for (const { spec, status = {}, metadata } of this.#deps.remediations()) {
      if (spec.powerOnNotBefore === undefined || isFinal(status.phase) || hasReturned({ status })) continue;
      const { phase = "Resolving" } = status;
      const isBefore = ["Resolving", "Verifying", "PoweringOff", "Releasing"].includes(phase);
      // These nodes no longer count as proven, because a remediation owns their hosts.
      if (isBefore && metadata.deletionTimestamp === undefined) count += 1;
    }
    return count;
  }
}
