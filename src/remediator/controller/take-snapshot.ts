import type { BareMetalRemediation } from "../../api/ironfence/bare-metal-remediation.ts";
import { CONFIRM, NHC_TIMED_OUT, NODE_NAME, NODE_READY_IN_BOOT } from "../../api/names/annotations.ts";
import { REQUEST, RESTORED_BY_VELERO } from "../../api/names/labels.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import { latestStampMs } from "../../kube/server-time.ts";
import type { KubeletLeases } from "../../nodes/leases/kubelet-leases.ts";
import { parseTimeMs } from "../../runtime/time.ts";
import { FINALIZER } from "../effects/objects/finalizer.ts";
import type { NodeClusters } from "../clusters/node-clusters.ts";
import { isWaiting } from "../effects/power/claim-host.ts";
import type { Lookup } from "./find-host.ts";
import type { RemediationSession } from "./session/session.ts";
import type { Sibling, Snapshot } from "../machine/model/facts/snapshot.ts";
import type { State } from "../machine/model/decision/state.ts";
import type { StopSwitch } from "./stop-switch.ts";
import type { Subject } from "../../nodes/subject.ts";
import { isUnresolved } from "../../nodes/subject.ts";
import type { FencedHost } from "../hosts/model/host.ts";
import { readCreationRecord, zoneOf } from "../../nodes/creation-record.ts";
import type { Admissions } from "./admission/admissions.ts";
import type { Hold } from "../machine/model/facts/hold.ts";
import { holdOf } from "../machine/model/facts/hold.ts";
import type { HostFacts } from "../machine/model/facts/host-facts.ts";

export interface SnapshotDeps {
  runtime: KubeRuntime;
  clusters: NodeClusters;
  stopSwitch: StopSwitch;
  admissions: Admissions;
  zoneLabel: string;
  /** The node of its own cluster that this agent runs on; undefined if it is not configured. */
  ownNode: string | undefined;
  /** The node leases of the agent's own cluster; undefined if they are not watched. */
  leases?: Pick<KubeletLeases, "of"> | undefined;
  /** What the remediation needs and the agent cannot read, as a text; undefined if everything is read. */
  unreadFor(session: RemediationSession): string | undefined;
  /** Other remediations of the same node or Machine. */
  siblingsOf(session: RemediationSession): readonly BareMetalRemediation[];
}

/** Gathers everything that a decision may depend on, as this process knows it now. */
export function takeSnapshot(deps: SnapshotDeps, session: RemediationSession, state: State, lookup: Lookup): Snapshot {
  const { metadata } = session.remediation;
  const { strategy } = session;
  const { subject, nodeName } = session;
  const { ref, nodes, problem, uid: clusterUid } = session.cluster;
  const node = nodeName === undefined ? undefined : nodes.get({ name: nodeName });
  return {
    remediation: {
      uid: session.uid,
      generation: metadata.generation,
      deleting: metadata.deletionTimestamp !== undefined,
      timedOut: metadata.annotations?.[NHC_TIMED_OUT] !== undefined,
      hasFinalizer: metadata.finalizers?.includes(FINALIZER) ?? false,
      named: metadata.annotations?.[NODE_NAME],
      isRequested: metadata.labels?.[REQUEST] !== undefined,
      namespace: metadata.namespace ?? "",
      name: metadata.name,
      ageMs: latestStampMs(deps.runtime) - (parseTimeMs(metadata.creationTimestamp) ?? -Infinity),
      isRestored: metadata.labels?.[RESTORED_BY_VELERO] !== undefined,
      isConfirmed: metadata.annotations?.[CONFIRM] === metadata.uid,
      readyInBoot: metadata.annotations?.[NODE_READY_IN_BOOT],
      nodeAtCreation: readCreationRecord(metadata.annotations),
    },
    strategy,
    state,
    status: session.statusWithPostponed,
    nodeName: nodeName ?? wordsFor(subject),
    subject,
    unresolved: isUnresolved(session.remediation),
    unread: session.waitsFor(deps.unreadFor(session)),
    clusterProblem: problem,
    clusterUid,
    isOwnCluster: ref !== undefined && deps.clusters.isOwn(ref),
    node,
    admission: deps.admissions.of(session.uid),
    zone: zoneOf(node, deps.zoneLabel),
    runsHere: deps.clusters.isLocal(subject.cluster, nodeName, deps.ownNode),
    host: lookup.found ? { found: true, facts: factsOf(lookup.host, subject) } : lookup,
    hold: strictestHold(watchedHold(deps.stopSwitch, lookup), session.observations.hold?.found),
    siblings: deps.siblingsOf(session).map(siblingOf),
    earlyForMs: session.earlyForMs,
    leaseUnchanged:
      strategy.powerOnNotBeforeMs === undefined || nodeName === undefined || subject.cluster !== undefined
        ? undefined
        : deps.leases?.of(nodeName),
    remainingMs: session.remainingMs(state, strategy),
    ...session.intentTimes(state),
    cycleSeenAtMs: session.cycleSeenAtMs,
    freshId: deps.runtime.random.uuid(),
    observations: session.observations,
  };
}

function wordsFor({ machine }: Subject): string {
  return `of Machine ${machine?.namespace ?? ""}/${machine?.name ?? ""}`;
}

function factsOf(host: FencedHost, subject: Subject): HostFacts {
  const { ref, identity, owner, lastReboot, isPoweredByMark, isInUse } = host;
  return { ref, identity, owner, lastReboot, isPoweredByMark, takenBack: host.takenBack(subject), isInUse };
}

/** The hold on orders to this host according to watched objects; undefined if there is none. */
export function watchedHold(stopSwitch: StopSwitch, lookup: Lookup): Hold | undefined {
  return holdOf(stopSwitch.stopped, lookup.found ? lookup.host.maintenance : undefined);
}

/**
 * Chooses the hold that counts. Maintenance holds more orders than a pause, and a pause that was read live says more
 * than a stop switch that is not read yet.
 */
export function strictestHold(watched: Hold | undefined, read: Hold | undefined): Hold | undefined {
  if (read?.reason === "Maintenance") return read;
  const isRead = read !== undefined && read.reason !== "PauseUnknown";
  return watched?.reason === "PauseUnknown" && isRead ? read : (watched ?? read);
}

function siblingOf(sibling: BareMetalRemediation): Sibling {
  const { uid, name, namespace = "" } = sibling.metadata;
  const { status = {} } = sibling;
  return {
    uid,
    namespace,
    name,
    waiting: isWaiting(sibling),
    succeeded: status.phase === "Succeeded",
    offConfirmedAt: status.attempt?.offConfirmedAt,
  };
}
