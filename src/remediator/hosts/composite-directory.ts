import type { FencingTarget } from "../../api/fencing-target.ts";
import type { BareMetalHost } from "../../api/metal3.ts";
import { BmcError } from "../../bmc/errors.ts";
import { isKubeError } from "../../kube/errors.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import { abortReason } from "../../runtime/clock.ts";
import { DeadlineError, withDeadline } from "../../runtime/deadline.ts";
import type { Subject } from "../../nodes/subject.ts";
import { ON_LOOK_MAX_MS } from "../machine/model/timings.ts";
import type { BareMetalHostDirectory } from "./bare-metal-host/directory.ts";
import type { Unreadable } from "./bare-metal-host/watch-hosts.ts";
import { claimsOf } from "./bare-metal-host/host-index.ts";
import { readHost } from "./bare-metal-host/host-store.ts";
import { hostText, powerPathOf } from "./bare-metal-host/power-path.ts";
import type { FencingTargetDirectory } from "./fencing-target.ts";
import type { FencedHost, HostDirectory } from "./host.ts";
import { HostRefusal } from "./host.ts";
import { systemClaims, uuidClaim } from "./target-index.ts";
import type { LookupFailure } from "../machine/model/host-facts.ts";
import { readyOf } from "./target-store.ts";

/** Whether somebody else powers the host: yes and how; or that it cannot be found out, for now or since `why` stands in the way. */
export type Managed = { state: "managed"; why: string } | { state: "unread"; why: string | undefined };

type Found = { found: true; host: FencedHost } | LookupFailure;

/**
 * The hosts of FencingTargets and of BareMetalHosts. A host has one owner of its power: where a FencingTarget stands beside a
 * BareMetalHost whose operator powers the same host, neither is used, since what the one does the other takes back. A host that
 * its operator has let go of is the FencingTarget's where there is one.
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

/** The host of a target that may be described by BareMetalHosts as well, whose operator has let go of it, and may take it back. */
function shared(
  runtime: KubeRuntime,
  hosts: BareMetalHostDirectory,
  target: FencingTarget,
  host: FencedHost,
): FencedHost {
  const describe = (twin: BareMetalHost): string =>
    `the operator of ${hostText(twin)} powers the host of ${targetText(target)} as well now, so no more power orders are sent: detach the BareMetalHost (annotation baremetalhost.metal3.io/detached), or delete the FencingTarget`;
  return {
    ...host,
    takenBack: (subject) => {
      const manager = twinsOf(hosts, target, host, subject).find((twin) => powerPathOf(twin) !== "Direct");
      return manager === undefined ? undefined : describe(manager);
    },
    ensureOurs: async (subject, action, signal) => {
      const isOff = action === "ForceOff";
      if (isOff && hosts.unread !== undefined) throw new BmcError("Busy", whyUnknown(target, hosts.unread));
      const twins = twinsOf(hosts, target, host, subject);
      const look = (twin: BareMetalHost): Promise<BareMetalHost | undefined> =>
        isOff ? liveTwin(runtime, twin, signal) : twinForOn(runtime, twin, signal);
      for (const live of await Promise.all(twins.map(look))) {
        if (live !== undefined && powerPathOf(live) !== "Direct") throw new HostRefusal("HostAttached", describe(live));
      }
    },
  };
}

/** The BareMetalHosts of a target's subject, System or UUID, whoever powers them. */
function twinsOf(
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

/** The live BareMetalHost; undefined where it is gone. @throws BmcError where nobody can tell, so that no order is sent. */
async function liveTwin(
  runtime: KubeRuntime,
  twin: BareMetalHost,
  signal: AbortSignal,
): Promise<BareMetalHost | undefined> {
  const { uid, namespace, name } = twin.metadata;
  try {
    return await readHost(runtime, { kind: twin.kind, uid, namespace, name }, signal);
  } catch (error) {
    if (isKubeError(error, "NotFound")) return undefined;
    if (!isKubeError(error) || error.code === "Aborted") throw error;
    throw new BmcError("Busy", `${hostText(twin)} cannot be looked at: ${error.message}`, { cause: error });
  }
}

/** The same for an On: where it cannot be read in time the one that is watched stands for it. A host must not stay off for that. */
async function twinForOn(
  runtime: KubeRuntime,
  twin: BareMetalHost,
  signal: AbortSignal,
): Promise<BareMetalHost | undefined> {
  try {
    return await withDeadline(runtime.clock, `reading ${hostText(twin)}`, ON_LOOK_MAX_MS, signal, (bounded) =>
      liveTwin(runtime, twin, bounded),
    );
  } catch (error) {
    if (signal.aborted) throw abortReason(signal);
    if (!(error instanceof DeadlineError || error instanceof BmcError)) throw error;
    runtime.logger.warn({ host: hostText(twin), err: error }, "BareMetalHost not read before a power-on");
    return twin;
  }
}

/**
 * Why a target is not used although nothing is wrong with itself: a BareMetalHost's operator powers its host as well, or it is not
 * known whether one does. In the words of a lookup. Before the BareMetalHosts have been read a conflict in the target's status stands.
 */
export function whyManaged(
  targets: FencingTargetDirectory,
  hosts: BareMetalHostDirectory,
  target: FencingTarget,
): Managed | undefined {
  // Where their kind is not served there are none.
  if (hosts.unread !== undefined || hosts.takersUnread !== undefined) {
    if (hosts.unreadable !== undefined) return { state: "unread", why: whyNotRead(hosts.unreadable) };
    const said = readyOf(target.status);
    if (said?.reason === "Ambiguous") return { state: "managed", why: said.message };
    return { state: "unread", why: undefined };
  }
  const { nodeName, clusterRef } = target.spec;
  const found = find(targets, hosts, { nodeName, cluster: clusterRef, machine: undefined });
  return !found.found && found.reason === "Ambiguous" ? { state: "managed", why: found.message } : undefined;
}

function whyNotRead({ what, problem, isForbidden }: Unreadable): string {
  const nextStep = isForbidden
    ? "apply deploy/families/bare-metal-host, or take bare-metal-host out of --families"
    : "it is tried again";
  return `the agent cannot read ${what}, so it cannot tell whether another operator powers this host, and a fence waits: ${problem}: ${nextStep}`;
}

function find(targets: FencingTargetDirectory, hosts: BareMetalHostDirectory, subject: Subject): Found {
  const byTarget = targets.find(subject);
  const located = hosts.locate(subject);
  const unread = hosts.unread ?? hosts.takersUnread;
  const target = byTarget.found ? targets.index.byUid(byTarget.host.ref.uid) : undefined;
  if (target !== undefined && unread !== undefined) {
    return { found: false, reason: "Ambiguous", message: whyUnknown(target, unread) };
  }
  if (!located.found) {
    if (byTarget.found) return rivalOf(targets, hosts, byTarget.host, subject) ?? byTarget;
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
  const [rival] =
    powerPathOf(located.host) === "Direct" ? [] : targets.index.claiming(claimsOf(located.host).exclusive);
  return rival === undefined ? hosts.find(subject) : ambiguous(targetText(rival), located.host);
}

/** A BareMetalHost for the System or the UUID of a target, although nothing ties it to the target's node. */
function rivalOf(
  targets: FencingTargetDirectory,
  hosts: BareMetalHostDirectory,
  host: FencedHost,
  subject: Subject,
): LookupFailure | undefined {
  const target = targets.index.byUid(host.ref.uid);
  if (target === undefined) return undefined;
  const rival = twinsOf(hosts, target, host, subject).find((other) => powerPathOf(other) !== "Direct");
  return rival === undefined ? undefined : ambiguous(targetText(target), rival);
}

function whyUnknown(target: FencingTarget, unread: string): string {
  return `nobody can tell whether a BareMetalHost's operator powers the host of ${targetText(target)}: ${unread}`;
}

function targetText({ metadata }: FencingTarget): string {
  return `FencingTarget ${metadata.namespace}/${metadata.name}`;
}

function ambiguous(target: string, host: BareMetalHost): LookupFailure {
  const message = `${target} and ${hostText(host)} describe the same host, and the operator of the latter powers it as well: delete the FencingTarget, or detach the BareMetalHost (annotation baremetalhost.metal3.io/detached)`;
  return { found: false, reason: "Ambiguous", message };
}
