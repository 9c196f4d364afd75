import type { Node } from "../../api/kubernetes/core.ts";
import type { EarlyOffProof, FencingTarget } from "../../api/ironfence/fencing-target.ts";
import { isKubeError } from "../../kube/errors.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import type { Watched } from "../../kube/watched.ts";
import type { KubeletLeases, KubeletLease } from "../../nodes/leases/kubelet-leases.ts";
import { earlySilenceMs, longEarlySilenceMs, overdueAfterMs } from "../../nodes/leases/silence.ts";
import { BmcError } from "../../bmc/interface/errors.ts";
import type { PowerReading } from "../../bmc/interface/driver.ts";
import { sleep } from "../../runtime/clock.ts";
import { DeadlineError, withDeadline } from "../../runtime/deadline.ts";
import { toMicroTime } from "../../runtime/time.ts";
import type { FencingTargetDirectory } from "../hosts/fencing-target/directory.ts";
import { updateTargetStatus } from "../hosts/fencing-target/target-store.ts";
import type { HostPower } from "../hosts/model/host.ts";
import { whyNotEarly } from "./candidate.ts";

/** The shortest time between the two readings that make the proof. */
export const EARLY_CONFIRM_GAP_MS = 1_000;
/** The time between further readings, and the time without one after which the proof is void. */
export const EARLY_REREAD_MS = 1_500;
export const EARLY_PROOF_AGE_MAX_MS = 5_000;
/**
 * The Off of a BMC that has been up for less proves nothing: a BMC that restarts together with the network switch of
 * its node may report Off without having read the power. This is longer than a whole chassis takes to start.
 */
export const EARLY_BMC_UP_MIN_MS = 600_000;
/** How often a valid proof is stored again. */
const STORE_AGAIN_MS = 2_500;
/** The longest time for one proof, including the waits for the silence of the lease and for the remediation. */
const PROOF_MAX_MS = 60_000;
/** The longest time for the start of a proof: the login, the identity, and the first reading. */
const BEGIN_MAX_MS = 15_000;

export interface EarlyProofDeps {
  runtime: KubeRuntime;
  leases: KubeletLeases;
  directory: FencingTargetDirectory;
  nodes: Watched<Node>;
}

/** The host that is to be proven off. */
export interface EarlySubject {
  name: string;
  node: Node;
  target: FencingTarget;
  /** The version of the lease that must not change. */
  lease: Pick<KubeletLease, "uid" | "resourceVersion">;
}

/** What a proof asks about the other proofs, and what it reports about itself. */
export interface EarlyProofCalls {
  /** The watch of the leases showed an older version than a live read. */
  onLag: () => void;
  onFirstReading: (isOff: boolean) => void;
  /** A device of the host failed: it may be restarting. */
  onDeviceFailure: () => void;
  /** Whether the proof may be given to the detector now. */
  mayGrant: () => boolean;
  onGranted: (isGranted: boolean) => void;
}

/**
 * Proves one host off before the duration of its node begins, and keeps the proof until a remediation has taken the
 * host.
 */
export class EarlyProof {
  readonly #deps: EarlyProofDeps;
  readonly #subject: EarlySubject;
  readonly #calls: EarlyProofCalls;
  #offAtMs = -Infinity;
  #storedAtMs = -Infinity;

  constructor(deps: EarlyProofDeps, subject: EarlySubject, calls: EarlyProofCalls) {
    this.#deps = deps;
    this.#subject = subject;
    this.#calls = calls;
  }

  /** @returns why the proof has ended or could not be made. @throws KubeError if a call to the API server fails. */
  async run(signal: AbortSignal): Promise<string> {
    if (!(await this.#isSilent(signal))) return "its node has renewed its lease";
    let power: HostPower | undefined;
    try {
      const began = await this.#begin(signal);
      if (typeof began === "string") return began;
      power = began;
      return await this.#keep(power, signal);
    } finally {
      this.#calls.onGranted(false);
      await power?.close();
      if (this.#storedAtMs > -Infinity && !signal.aborted) await this.#store(undefined, signal);
    }
  }

  /** Reads the lease live, because a lease may only seem silent while the watch lags. */
  async #isSilent(signal: AbortSignal): Promise<boolean> {
    const { leases, runtime } = this.#deps;
    const { name, lease } = this.#subject;
    const live = await leases.readLive(name, signal);
    const isSame = live?.uid === lease.uid && live.resourceVersion === lease.resourceVersion;
    if (!isSame) this.#calls.onLag();
    return isSame && runtime.clock.monotonicMs() - live.sinceMs > overdueAfterMs(live);
  }

  /** Verifies the identity and takes the first Off reading. @returns the host, or why it cannot be proven off. */
  async #begin(signal: AbortSignal): Promise<HostPower | string> {
    const { runtime, directory } = this.#deps;
    const { name, node } = this.#subject;
    const found = directory.find({ nodeName: name, cluster: undefined, machine: undefined });
    if (!found.found) return found.message;
    const power = await found.host.open(undefined, signal);
    try {
      const what = `the first reading of the host of ${name}`;
      const reading = await withDeadline(runtime.clock, what, BEGIN_MAX_MS, signal, async (bounded) => {
        const check = await power.verifyIdentity(node, bounded);
        return check.verified ? power.readPower(bounded) : check.message;
      });
      const doubt = typeof reading === "string" ? reading : this.#whyNotOff(reading);
      this.#calls.onFirstReading(doubt === undefined);
      if (doubt === undefined) {
        this.#offAtMs = runtime.clock.monotonicMs();
        return power;
      }
      await power.close();
      return doubt;
    } catch (error) {
      await power.close();
      if (signal.aborted || !isDeviceFailure(error)) throw error;
      this.#calls.onDeviceFailure();
      return error.message;
    }
  }

  /** Reads the host repeatedly, and stores the proof when the lease has been silent for long enough. */
  async #keep(power: HostPower, signal: AbortSignal): Promise<string> {
    const { clock } = this.#deps.runtime;
    const endMs = clock.monotonicMs() + PROOF_MAX_MS;
    let gapMs = EARLY_CONFIRM_GAP_MS;
    while (clock.monotonicMs() < endMs) {
      await sleep(clock, gapMs, signal);
      gapMs = EARLY_REREAD_MS;
      const doubt = this.#doubt();
      if (doubt !== undefined) return doubt;
      const reading = await this.#read(power, signal);
      if (reading === undefined) {
        this.#calls.onDeviceFailure();
        return "its BMC does not answer";
      }
      const notOff = this.#whyNotOff(reading);
      if (notOff !== undefined) return notOff;
      this.#offAtMs = clock.monotonicMs();
      const waitMs = this.#silenceLeftMs(reading);
      if (waitMs > 0) {
        gapMs = Math.min(gapMs, waitMs);
        continue;
      }
      if (!this.#calls.mayGrant() || clock.monotonicMs() - this.#storedAtMs < STORE_AGAIN_MS) continue;
      if (!(await this.#isSilent(signal))) return "its node has renewed its lease";
      this.#calls.onGranted(true);
      this.#storedAtMs = clock.monotonicMs();
      if (!(await this.#store(this.#proof(), signal)))
        return "a remediation owns the host, or the target was edited or deleted";
    }
    return "no remediation has begun in time";
  }

  /**
   * Why a reading proves nothing early; undefined if it counts as Off. Reports a device that failed while another one
   * answered.
   */
  #whyNotOff(reading: PowerReading): string | undefined {
    if (!mayHaveRestarted(reading)) return whyNotOff(reading);
    this.#calls.onDeviceFailure();
    return "another device of the host did not answer, and may belong to the same BMC";
  }

  /** Why the proof is void according to watched objects; undefined if it is not. */
  #doubt(): string | undefined {
    const { leases, nodes, directory, runtime } = this.#deps;
    const { name, node, target, lease } = this.#subject;
    const observed = leases.of(name);
    if (observed?.uid !== lease.uid || observed.resourceVersion !== lease.resourceVersion)
      return "its node has renewed its lease";
    if (runtime.contact().sinceMs > observed.sinceMs) return "the API server could not be reached for a while";
    const present = nodes.get({ name });
    const current = directory.index.byUid(target.metadata.uid);
    if (present?.metadata.uid !== node.metadata.uid) return "the Node was replaced";
    if (present.status.nodeInfo?.bootID !== node.status.nodeInfo?.bootID) return "the node is in another boot";
    if (current === undefined || current.metadata.generation !== target.metadata.generation)
      return "the target was edited";
    if (directory.conflictOf(target.metadata.uid) !== undefined) return "the target is ambiguous";
    return whyNotEarly(present, current);
  }

  async #read(power: HostPower, signal: AbortSignal): Promise<PowerReading | undefined> {
    const { clock } = this.#deps.runtime;
    const leftMs = Math.max(this.#offAtMs + EARLY_PROOF_AGE_MAX_MS - clock.monotonicMs(), 1);
    try {
      return await withDeadline(clock, "a reading of the power", leftMs, signal, (bounded) => power.readPower(bounded));
    } catch (error) {
      if (signal.aborted || !isDeviceFailure(error)) throw error;
      return undefined;
    }
  }

  /** How long the lease must still stay silent. The time is longer if only one part of the hardware shows Off. */
  #silenceLeftMs({ agrees }: PowerReading): number {
    const { leases, runtime } = this.#deps;
    const observed = leases.of(this.#subject.name);
    if (observed === undefined) return Infinity;
    const needMs = agrees === true ? earlySilenceMs(observed) : longEarlySilenceMs(observed);
    return observed.sinceMs + needMs - runtime.clock.monotonicMs();
  }

  #proof(): EarlyOffProof {
    const { node, lease } = this.#subject;
    const { clock } = this.#deps.runtime;
    return {
      time: toMicroTime(clock.nowMs() - (clock.monotonicMs() - this.#offAtMs)),
      nodeUID: node.metadata.uid,
      bootID: node.status.nodeInfo?.bootID ?? "",
      leaseUID: lease.uid,
      leaseResourceVersion: lease.resourceVersion,
    };
  }

  /**
   * Stores the proof, or removes it. @returns false if the target no longer needs the proof: a remediation owns the
   * host, or the target was edited or deleted.
   */
  async #store(proof: EarlyOffProof | undefined, signal: AbortSignal): Promise<boolean> {
    const { runtime } = this.#deps;
    const { metadata, kind } = this.#subject.target;
    const { namespace = "", name, uid, generation } = metadata;
    let isFree = true;
    try {
      await updateTargetStatus(
        runtime,
        { kind, namespace, name, uid },
        (current) => {
          isFree = current.status?.owner === undefined && current.metadata.generation === generation;
          if (proof === undefined)
            return current.status?.earlyOffProof === undefined ? undefined : { earlyOffProof: null };
          return isFree ? { earlyOffProof: proof } : undefined;
        },
        signal,
      );
    } catch (error) {
      if (!isKubeError(error, "NotFound")) throw error;
      return false;
    }
    return isFree;
  }
}

/**
 * Whether the BMC that shows Off may have just restarted: its device failed before, or another device failed that may
 * belong to the same BMC (Redfish and IPMI). The second case does not count if the reading shows how long the BMC has
 * been up.
 */
function mayHaveRestarted({ state, failed, bmcUpMs }: PowerReading): boolean {
  return state === "Off" && (failed === "Same" || (failed === "Other" && bmcUpMs === undefined));
}

/** Why a reading proves nothing early; undefined if it counts as Off. */
function whyNotOff({ state, raw, bySupply, bmcUpMs = Infinity }: PowerReading): string | undefined {
  if (state !== "Off") return `its BMC reports ${raw}`;
  // Without an order, the plugs of the host may have been moved before the outlets were switched off.
  if (bySupply === true) return `only outlets are off (${raw}), and no BMC answers`;
  return bmcUpMs >= EARLY_BMC_UP_MIN_MS ? undefined : `its BMC started ${Math.round(bmcUpMs / 1_000)} s ago`;
}

function isDeviceFailure(error: unknown): error is Error {
  return error instanceof DeadlineError || (error instanceof BmcError && error.code !== "Aborted");
}
