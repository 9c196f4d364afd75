import type { Node } from "../../../api/kubernetes/core.ts";
import type { FencingTarget } from "../../../api/ironfence/fencing-target.ts";
import type { OpenDevice } from "../../../bmc/interface/device-config.ts";
import type { IdentityJudge, IdentityCheck } from "../../../bmc/identity/identity-check.ts";
import { Topology } from "../../../bmc/topology/topology.ts";
import type { ClusterRef } from "../../../clusters/workload-clusters.ts";
import type { KubeRuntime } from "../../../kube/runtime.ts";
import type { Watched } from "../../../kube/watched.ts";
import type { NodeClusters } from "../../clusters/node-clusters.ts";
import type { KnownCluster } from "../../../nodes/subject.ts";
import { clusterKey, nodeKey } from "../../../nodes/subject.ts";
import type { OpenDevicesDeps } from "./devices.ts";
import { openDevices } from "./devices.ts";
import type { FencedHost, HostDirectory, HostPower } from "../model/host.ts";
import { judgeOutlets } from "../model/enrolment.ts";
import { identityJudge } from "../model/identity.ts";
import { NodeUuids } from "./node-uuids.ts";
import type { OpenedHost } from "./prepared-hosts.ts";
import { openingBasis, PreparedHosts } from "./prepared-hosts.ts";
import type { Conflict } from "./target-index.ts";
import { conflictText, sharedUuidText, TargetIndex } from "./target-index.ts";
import { claimTarget, readLiveTarget, recordReboot, releaseTarget } from "./target-store.ts";

export interface FencingTargetDirectoryDeps {
  runtime: KubeRuntime;
  targets: Watched<FencingTarget>;
  /** The agent's own namespace. FencingTargets and Secrets in other namespaces are ignored. */
  namespace: string;
  openDevice: OpenDevice;
  /**
   * The clusters whose nodes are compared with those of targets. Without it, targets are compared only with each other.
   */
  clusters?: NodeClusters;
}

/** The hosts that FencingTargets describe, with the methods that only the target controller uses. */
export interface FencingTargetDirectory extends HostDirectory {
  /** Targets by their claims. Read it only. */
  readonly index: TargetIndex;
  /** Why a target cannot be trusted although it is well-formed; undefined if nothing contradicts it. */
  conflictOf(uid: string): Conflict | undefined;
  /** Records which system UUIDs the devices of a target have reported, and notifies the listeners. */
  report(target: FencingTarget, uuids: readonly string[]): void;
  /**
   * Calls `listener` with the targets that a change may affect: the one that changed, and its competitors before and
   * after.
   */
  subscribe(listener: (concerned: readonly FencingTarget[]) => void): () => void;
  /**
   * Opens the devices of a target, verifies the identity of the host once, and keeps the devices open for the
   * remediation that opens the host next. Settles when they are no longer kept: a remediation has taken them, `signal`
   * has aborted, or the host was not verified. Sends no order.
   *
   * @param options.onReady is called as soon as the host is verified. @throws BmcError, TargetError or KubeError if the
   * host cannot be verified; the reason of `signal` on abort.
   */
  prepare(target: FencingTarget, options: { node: Node; onReady: () => void }, signal: AbortSignal): Promise<void>;
}

/** Serves the hosts of FencingTargets, kept up to date from the watched targets until `signal` aborts. */
export function createFencingTargetDirectory(
  deps: FencingTargetDirectoryDeps,
  signal: AbortSignal,
): FencingTargetDirectory {
  const index = new TargetIndex(deps.namespace);
  const nodes = deps.clusters && new NodeUuids(deps.clusters);
  nodes?.follow(signal);
  const conflictOf = (uid: string): Conflict | undefined => index.conflictOf(uid) ?? nodeConflict(index, nodes, uid);
  const listeners = new Set<(concerned: readonly FencingTarget[]) => void>();
  const notify = (concerned: readonly FencingTarget[]): void => {
    for (const listener of listeners) listener(concerned);
  };
  const prepared = new PreparedHosts();
  const host = (target: FencingTarget): FencedHost => hostOf({ ...deps, index, conflictOf, prepared }, target);
  const unsubscribe = deps.targets.subscribe((change) => notify(index.apply(change)));
  signal.addEventListener("abort", unsubscribe, { once: true });
  return {
    index,
    conflictOf,
    report: (target, uuids) => notify(index.report(target, uuids)),
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    find({ nodeName, cluster }) {
      if (nodeName === undefined) {
        return {
          found: false,
          reason: "NoTarget",
          message: "no FencingTarget can name a node that does not exist yet",
        };
      }
      const [target, second] = namesOf(cluster).flatMap((by) => index.byNode({ name: nodeName, cluster: by }));
      if (target === undefined) {
        const of = clusterKey(cluster) === "" ? "" : ` and spec.clusterRef ${clusterKey(cluster)}`;
        const message = `no FencingTarget in namespace ${deps.namespace} names node ${nodeName}${inCluster(cluster)}: create one with spec.nodeName ${nodeName}${of}`;
        return { found: false, reason: "NoTarget", message };
      }
      const conflict =
        conflictOf(target.metadata.uid)?.message ?? (second && conflictText(second, `names node ${nodeName} as well`));
      if (conflict === undefined) return { found: true, host: host(target) };
      const { namespace, name } = target.metadata;
      return { found: false, reason: "Ambiguous", message: `FencingTarget ${namespace}/${name}: ${conflict}` };
    },
    byUid(uid) {
      const target = index.byUid(uid);
      return target === undefined ? undefined : host(target);
    },
    prepare: (target, options, signal) =>
      prepared.keep(
        target.metadata.uid,
        (abandonLogin, signal) => openHost({ ...deps, index, abandonLogin }, conflictOf, target, signal),
        options,
        signal,
      ),
  };
}

/** Another node reports the UUID that was pinned from the node of this target. A UUID in a spec stays valid. */
function nodeConflict(index: TargetIndex, nodes: NodeUuids | undefined, uid: string): Conflict | undefined {
  const identity = index.identityOf(uid);
  const { nodeName = "", clusterRef } = index.byUid(uid)?.spec ?? {};
  if (identity?.source !== "pinned" || identity.systemUUID === undefined) return undefined;
  const other = nodes?.otherWith(identity.systemUUID, { name: nodeName, cluster: clusterRef });
  if (other === undefined) return undefined;
  const competitor = `node ${other.name}${inCluster(other.cluster)}`;
  return { message: sharedUuidText(competitor, identity.systemUUID, false), byReport: true, holdsOn: false };
}

/** The names by which targets may refer to a cluster: the agent's own by its Cluster, or not at all. */
function namesOf(cluster: KnownCluster | undefined): (ClusterRef | undefined)[] {
  if (cluster?.own !== true) return [cluster];
  const { namespace, name } = cluster;
  return [{ namespace, name }, undefined];
}

function inCluster(cluster: KnownCluster | undefined): string {
  return clusterKey(cluster) === "" ? "" : ` of cluster ${clusterKey(cluster)}`;
}

type ConflictOf = FencingTargetDirectory["conflictOf"];

interface HostDeps extends FencingTargetDirectoryDeps {
  index: TargetIndex;
  conflictOf: ConflictOf;
  prepared: PreparedHosts;
}

function hostOf(deps: HostDeps, target: FencingTarget): FencedHost {
  const { runtime, index, conflictOf, prepared } = deps;
  const { uid, name, generation } = target.metadata;
  const ref = { kind: target.kind, namespace: deps.namespace, name, uid };
  return {
    ref,
    version: `${uid}/${generation ?? ""}`,
    mismatchWith: ({ nodeName: name = "", cluster }) => {
      const { nodeName, clusterRef } = target.spec;
      const named = nodeKey({ name: nodeName, cluster: clusterRef });
      const isSame = namesOf(cluster).some((by) => nodeKey({ name, cluster: by }) === named);
      return isSame ? undefined : `names node ${nodeName}${inCluster(clusterRef)} now`;
    },
    takenBack: () => undefined,
    isInUse: true,
    ensureOurs: () => Promise.resolve(),
    isPoweredByMark: false,
    // Never in doubt: a user has configured which node runs on the host, and no report of the node is used.
    disputeOf: () => Promise.resolve(undefined),
    identity: identityOf(index, uid),
    maintenance: maintenanceOf(target),
    readMaintenance: async (signal) => maintenanceOf(await readLiveTarget(runtime, ref, signal)),
    owner: target.status?.owner,
    lastReboot: lastRebootOf(target),
    claim: (owner, signal) => claimTarget(runtime, ref, owner, signal, target),
    release: (owner, { outcome }, signal) => releaseTarget(runtime, ref, owner, outcome, signal),
    recordReboot: (reboot, signal) => recordReboot(runtime, ref, reboot, signal),
    open: async (owner, signal) => {
      const opened = await openHost(deps, conflictOf, target, signal);
      return owner === undefined ? opened.power : prepared.exchange(uid, opened);
    },
  };
}

function maintenanceOf({ kind, metadata, spec }: FencingTarget): string | undefined {
  return spec.maintenance ? `${kind} ${metadata.namespace}/${metadata.name} has spec.maintenance` : undefined;
}

function identityOf(index: TargetIndex, uid: string): FencedHost["identity"] {
  const expected = index.identityOf(uid);
  if (expected === undefined) return undefined;
  const { source: _source, ...identity } = expected;
  return identity;
}

function lastRebootOf(target: FencingTarget): FencedHost["lastReboot"] {
  const reboot = target.status?.lastReboot;
  if (reboot === undefined) return undefined;
  const { time, offConfirmedAt, nodeUID, bootID } = reboot;
  return { time, offConfirmedAt, ...(nodeUID !== undefined && { nodeUID }), ...(bootID !== undefined && { bootID }) };
}

async function openHost(
  deps: OpenDevicesDeps & { index: TargetIndex },
  conflictOf: ConflictOf,
  target: FencingTarget,
  signal: AbortSignal,
): Promise<OpenedHost> {
  const devices = await openDevices(deps, target, signal);
  const broken = devices.filter((device) => device.failure !== undefined);
  const brokenLevels = new Set(broken.map((device) => device.level));
  const failure = broken[0]?.failure;
  if (failure !== undefined && devices.every((device) => brokenLevels.has(device.level))) {
    await Promise.all(devices.map((device) => device.driver.close()));
    throw failure;
  }
  for (const { address, failure } of broken) {
    deps.runtime.logger.warn(
      { target: target.metadata.name, address, detail: failure?.message },
      "device cannot be used; the host has another level",
    );
  }
  // A snapshot may be older than a competitor, so the index decides at the time of the call.
  const unlessAmbiguous = (check: IdentityCheck): IdentityCheck => {
    const conflict = conflictOf(target.metadata.uid);
    if (conflict === undefined || (!check.verified && check.reason === "Mismatch")) return check;
    const message = `the target is ambiguous: ${conflict.message}`;
    // What other hosts report must not leave a host off that was verified before its power-off.
    const enoughForOn = check.verified && !conflict.holdsOn;
    return { verified: false, reason: "Unknown", message, ...(enoughForOn && { enoughForOn }) };
  };
  const judge = (node: Node | undefined): IdentityJudge => {
    const byIdentity = identityJudge(target, node?.status.nodeInfo?.systemUUID);
    return (answers): IdentityCheck => unlessAmbiguous(byIdentity(answers));
  };
  let nodeSystemUUID: string | undefined;
  const topology = new Topology(devices, judge(undefined), {
    clock: deps.runtime.clock,
    // An enrolment may have ended since the devices were opened.
    judge: (answers) => {
      const present = deps.index.byUid(target.metadata.uid) ?? target;
      return unlessAmbiguous(judgeOutlets(present, nodeSystemUUID, answers));
    },
  });
  const power: HostPower = {
    verifyIdentity: (node, signal) => {
      nodeSystemUUID = node?.status.nodeInfo?.systemUUID;
      return topology.verify(judge(node), signal);
    },
    readPower: (signal) => topology.readPower(signal),
    readWhole: (signal) => topology.readWhole(signal),
    forceOff: (signal, check) => topology.forceOff(signal, check?.obstacle),
    on: (signal, options) => topology.on(signal, options),
    setBootOverride: (override, signal) => topology.setBootOverride(override, signal),
    readBootOverride: (signal) => topology.readBootOverride(signal),
    readEvidence: (signal) => topology.readEvidence(signal),
    sendNmi: (signal, obstacle) => topology.sendNmi(signal, obstacle),
    acCycle: (signal, obstacle) => topology.acCycle(signal, obstacle),
    close: () => topology.close(),
  };
  return { power, basis: openingBasis(target, devices), forgetIdentities: () => topology.forgetIdentities() };
}
