import type { FencingTarget } from "../../api/ironfence/fencing-target.ts";
import type { BareMetalHost } from "../../api/metal3/metal3.ts";
import { BmcError } from "../../bmc/interface/errors.ts";
import { isKubeError } from "../../kube/errors.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import { abortReason } from "../../runtime/clock.ts";
import { DeadlineError, withDeadline } from "../../runtime/deadline.ts";
import type { Subject } from "../../nodes/subject.ts";
import { ON_CHECK_MAX_MS } from "../machine/model/decision/timings.ts";
import type { BareMetalHostDirectory } from "./bare-metal-host/directory.ts";
import type { Unreadable } from "./bare-metal-host/store/watch-hosts.ts";
import { hostClaimsOf } from "./bare-metal-host/lookup/host-index.ts";
import { readHost } from "./bare-metal-host/store/host-store.ts";
import { hostText, powerPathOf } from "./bare-metal-host/store/power-path.ts";
import type { FencingTargetDirectory } from "./fencing-target/directory.ts";
import type { FencedHost, HostDirectory } from "./model/host.ts";
import { HostRefusal } from "./model/host.ts";
import { systemClaims, uuidClaim } from "./model/hardware-claims.ts";
import type { LookupFailure } from "../machine/model/facts/host-facts.ts";
import { readyOf } from "./fencing-target/target-store.ts";

/**
 * `managed`: another operator powers the host as well. `unread`: the agent does not know this, and `why` names a
 * lasting cause.
 */
export type Managed = { state: "managed"; why: string } | { state: "unread"; why: string | undefined };

type Found = { found: true; host: FencedHost } | LookupFailure;

/**
 * The hosts of FencingTargets and of BareMetalHosts. The power of a host has one owner. If the operator of a
 * BareMetalHost powers the host of a FencingTarget, neither is used, because each would undo what the other does. A
 * host that its operator has detached belongs to the FencingTarget if there is one.
 */
export function createCompositeDirectory(
  runtime: KubeRuntime,
  targets: FencingTargetDirectory,
  hosts: BareMetalHostDirectory,
): HostDirectory {
  return {
    find: (subject) => find(targets, hosts, subject),
    byUid: (uid) => {
      const host = targets.byUid(uid);
      const target = targets.index.byUid(uid);
      return host === undefined || target === undefined ? hosts.byUid(uid) : shared(runtime, hosts, target, host);
    },
  };
}

/**
 * The host of a target that BareMetalHosts may describe as well. Their operator has detached it, and may take it back.
 */
function shared(
  runtime: KubeRuntime,
  hosts: BareMetalHostDirectory,
  target: FencingTarget,
  host: FencedHost,
): FencedHost {
  const describe = (counterpart: BareMetalHost): string =>
    `the operator of ${hostText(counterpart)} now powers the host of ${targetText(target)} as well, so no more power orders are sent: detach the BareMetalHost (annotation baremetalhost.metal3.io/detached), or delete the FencingTarget`;
  return {
    ...host,
    takenBack: (subject) => {
      const manager = counterpartsOf(hosts, target, host, subject).find(
        (counterpart) => powerPathOf(counterpart) !== "Direct",
      );
      return manager === undefined ? undefined : describe(manager);
    },
    ensureOurs: async (subject, action, signal) => {
      const isOff = action === "ForceOff";
      if (isOff && hosts.unread !== undefined) throw new BmcError("Busy", whyUnknown(target, hosts.unread));
      const counterparts = counterpartsOf(hosts, target, host, subject);
      const readLive = (counterpart: BareMetalHost): Promise<BareMetalHost | undefined> =>
        isOff ? readCounterpart(runtime, counterpart, signal) : readCounterpartInTime(runtime, counterpart, signal);
      for (const current of await Promise.all(counterparts.map(readLive))) {
        if (current !== undefined && powerPathOf(current) !== "Direct")
          throw new HostRefusal("HostAttached", describe(current));
      }
    },
  };
}

/** The BareMetalHosts for the subject, the Systems or the UUID of a target, in any state. */
function counterpartsOf(
  hosts: BareMetalHostDirectory,
  { spec }: FencingTarget,
  host: FencedHost,
  subject: Subject,
): BareMetalHost[] {
  const uuid = host.identity?.systemUUID;
  const claims = spec.devices.flatMap(({ address }) => systemClaims(address).exclusive);
  const claiming = hosts.index.claiming([...claims, ...(uuid === undefined ? [] : [uuidClaim(uuid)])]);
  const located = hosts.locate(subject);
  const named = located.found ? located.host : located.notAllowed;
  return named === undefined ? claiming : [named, ...claiming];
}

/** The live BareMetalHost; undefined if it is gone. @throws BmcError if that is not known, so that no order is sent. */
async function readCounterpart(
  runtime: KubeRuntime,
  counterpart: BareMetalHost,
  signal: AbortSignal,
): Promise<BareMetalHost | undefined> {
  const { uid, namespace, name } = counterpart.metadata;
  try {
    return await readHost(runtime, { kind: counterpart.kind, uid, namespace, name }, signal);
  } catch (error) {
    if (isKubeError(error, "NotFound")) return undefined;
    if (!isKubeError(error) || error.code === "Aborted") throw error;
    throw new BmcError("Busy", `${hostText(counterpart)} cannot be read: ${error.message}`, { cause: error });
  }
}

/**
 * The same for an On: if it cannot be read in time, the watched one is used, so that the host does not stay off because
 * of that.
 */
async function readCounterpartInTime(
  runtime: KubeRuntime,
  counterpart: BareMetalHost,
  signal: AbortSignal,
): Promise<BareMetalHost | undefined> {
  try {
    return await withDeadline(runtime.clock, `reading ${hostText(counterpart)}`, ON_CHECK_MAX_MS, signal, (bounded) =>
      readCounterpart(runtime, counterpart, bounded),
    );
  } catch (error) {
    if (signal.aborted) throw abortReason(signal);
    if (!(error instanceof DeadlineError || error instanceof BmcError)) throw error;
    runtime.logger.warn({ host: hostText(counterpart), err: error }, "BareMetalHost not read before a power-on");
    return counterpart;
  }
}

/**
 * Why a target is not used although the target itself is correct: the operator of a BareMetalHost powers its host as
 * well, or it is not known whether one does. The text is that of a lookup. Until the BareMetalHosts have been read, a
 * conflict in the status of the target remains.
 */
export function whyManaged(
  targets: FencingTargetDirectory,
  hosts: BareMetalHostDirectory,
  target: FencingTarget,
): Managed | undefined {
  // Both are undefined if the kind is not served, because there are then no BareMetalHosts.
  if (hosts.unread !== undefined || hosts.consumersUnread !== undefined) {
    if (hosts.unreadable !== undefined) return { state: "unread", why: whyNotRead(hosts.unreadable) };
    const ready = readyOf(target.status);
    if (ready?.reason === "Ambiguous") return { state: "managed", why: ready.message };
    return { state: "unread", why: undefined };
  }
  const { nodeName, clusterRef } = target.spec;
  const found = find(targets, hosts, { nodeName, cluster: clusterRef, machine: undefined });
  return !found.found && found.reason === "Ambiguous" ? { state: "managed", why: found.message } : undefined;
}

function whyNotRead({ what, problem, isForbidden }: Unreadable): string {
  const nextStep = isForbidden
    ? "apply deploy/families/bare-metal-host, or remove bare-metal-host from --families"
    : "the agent tries again";
  return `the agent cannot read ${what}, so it does not know whether another operator powers this host, and a fence waits: ${problem}: ${nextStep}`;
}

function find(targets: FencingTargetDirectory, hosts: BareMetalHostDirectory, subject: Subject): Found {
  const byTarget = targets.find(subject);
  const located = hosts.locate(subject);
  const unread = hosts.unread ?? hosts.consumersUnread;
  const target = byTarget.found ? targets.index.byUid(byTarget.host.ref.uid) : undefined;
  if (target !== undefined && unread !== undefined) {
    return { found: false, reason: "Ambiguous", message: whyUnknown(target, unread) };
  }
  if (!located.found) {
    if (byTarget.found) return competitorOf(targets, hosts, byTarget.host, subject) ?? byTarget;
    if (byTarget.reason !== "NoTarget" || located.reason === "Ambiguous")
      return byTarget.reason === "NoTarget" ? located : byTarget;
    return { ...byTarget, message: `${byTarget.message}; ${located.message}` };
  }
  const isTargeted = byTarget.found || byTarget.reason !== "NoTarget";
  if (isTargeted && powerPathOf(located.host) === "Direct") return byTarget;
  if (isTargeted) {
    const what = byTarget.found
      ? `FencingTarget ${byTarget.host.ref.namespace}/${byTarget.host.ref.name}`
      : "a FencingTarget";
    return ambiguous(what, located.host);
  }
  const [competitor] =
    powerPathOf(located.host) === "Direct" ? [] : targets.index.claiming(hostClaimsOf(located.host).exclusive);
  return competitor === undefined ? hosts.find(subject) : ambiguous(targetText(competitor), located.host);
}

/**
 * The failure of a lookup because a BareMetalHost has the System or the UUID of a target, although nothing else
 * connects it with the target's node.
 */
function competitorOf(
  targets: FencingTargetDirectory,
  hosts: BareMetalHostDirectory,
  host: FencedHost,
  subject: Subject,
): LookupFailure | undefined {
  const target = targets.index.byUid(host.ref.uid);
  if (target === undefined) return undefined;
  const competitor = counterpartsOf(hosts, target, host, subject).find((other) => powerPathOf(other) !== "Direct");
  return competitor === undefined ? undefined : ambiguous(targetText(target), competitor);
}

function whyUnknown(target: FencingTarget, unread: string): string {
  return `cannot determine whether the operator of a BareMetalHost powers the host of ${targetText(target)}: ${unread}`;
}

function targetText({ metadata }: FencingTarget): string {
  return `FencingTarget ${metadata.namespace}/${metadata.name}`;
}

function ambiguous(target: string, host: BareMetalHost): LookupFailure {
  const message = `${target} and ${hostText(host)} describe the same host, and the operator of the BareMetalHost powers it as well: delete the FencingTarget, or detach the BareMetalHost (annotation baremetalhost.metal3.io/detached)`;
  return { found: false, reason: "Ambiguous", message };
}
