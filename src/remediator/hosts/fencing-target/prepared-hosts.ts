import type { Node } from "../../../api/kubernetes/core.ts";
import type { FencingTarget } from "../../../api/ironfence/fencing-target.ts";
import { abortReason } from "../../../runtime/clock.ts";
import type { OpenedDevice } from "./devices.ts";
import type { HostPower } from "../model/host.ts";
import { expectedIdentity } from "../model/identity.ts";

/** The open devices of a host. */
export interface OpenedHost {
  power: HostPower;
  /** The configuration with which they were opened, as a text (`openingBasis`). */
  basis: string;
  /** Makes the next call read the identities again. */
  forgetIdentities(): void;
}

/**
 * A text that is equal for two openings of devices with the same configuration: the same spec of the same target, the
 * same expected identity, and the same versions of all Secrets.
 */
export function openingBasis(target: FencingTarget, devices: readonly Pick<OpenedDevice, "secrets">[]): string {
  const { uid, generation } = target.metadata;
  return JSON.stringify([uid, generation, expectedIdentity(target), devices.map(({ secrets }) => secrets)]);
}

interface Preparation {
  /** Ends the preparation. */
  readonly ended: AbortController;
  /** Set as soon as the host is verified. */
  opened: OpenedHost | undefined;
  /** Whether a remediation has taken the devices. It then closes them. */
  isTaken: boolean;
}

/**
 * Devices that were opened before a remediation needs them: connected, logged in, and verified to be the host's. They
 * permit nothing: a remediation that takes them verifies the identity again before it sends an order.
 */
export class PreparedHosts {
  readonly #byTarget = new Map<string, Preparation>();

  /** See `FencingTargetDirectory.prepare`. */
  async keep(
    targetUid: string,
    open: (abandonLogin: AbortSignal, signal: AbortSignal) => Promise<OpenedHost>,
    { node, onReady }: { node: Node; onReady: () => void },
    signal: AbortSignal,
  ): Promise<void> {
    if (this.#byTarget.has(targetUid)) return;
    const ended = new AbortController();
    const preparation: Preparation = { ended, opened: undefined, isTaken: false };
    this.#byTarget.set(targetUid, preparation);
    const running = AbortSignal.any([signal, ended.signal]);
    const abandon = new AbortController();
    let opened: OpenedHost | undefined;
    try {
      opened = await open(abandon.signal, running);
      const check = await opened.power.verifyIdentity(node, running);
      if (!check.verified || running.aborted) return;
      preparation.opened = opened;
      onReady();
      await new Promise<void>((resolve) => running.addEventListener("abort", () => resolve(), { once: true }));
    } finally {
      if (this.#byTarget.get(targetUid) === preparation) this.#byTarget.delete(targetUid);
      if (!preparation.isTaken) {
        // Abandons a login that hangs, because it would delay the login of the remediation.
        abandon.abort(new Error("the preparation has ended"));
        await opened?.power.close();
      }
    }
    if (signal.aborted) throw abortReason(signal);
  }

  /**
   * The devices to use in place of those that were opened just now: the prepared ones if they are ready and have the
   * same configuration. A preparation that is not ready ends, so that nothing waits for it.
   */
  async exchange(targetUid: string, fresh: OpenedHost): Promise<HostPower> {
    const preparation = this.#byTarget.get(targetUid);
    if (preparation === undefined) return fresh.power;
    this.#byTarget.delete(targetUid);
    const { opened, ended } = preparation;
    preparation.isTaken = opened?.basis === fresh.basis;
    ended.abort(new Error("the remediation of the host has begun"));
    if (opened === undefined || !preparation.isTaken) return fresh.power;
    // Another host may answer now.
    opened.forgetIdentities();
    await fresh.power.close();
    return opened.power;
  }
}
