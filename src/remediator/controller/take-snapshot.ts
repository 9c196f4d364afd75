import type { BareMetalRemediation } from "../../api/bare-metal-remediation.ts";
import { CONFIRM, NHC_TIMED_OUT, NODE_NAME } from "../../api/annotations.ts";
import { REQUEST, RESTORED_BY_VELERO } from "../../api/labels.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import { parseTimeMs } from "../../runtime/time.ts";
import { FINALIZER } from "../effects/run-effect.ts";
import type { NodeClusters } from "../clusters/node-clusters.ts";
import { isWaiting } from "../effects/claim-host.ts";
import type { Lookup } from "./find-host.ts";
import type { Session } from "./session.ts";
import type { Sibling, Snapshot } from "../machine/model/snapshot.ts";
import type { State } from "../machine/model/state.ts";
import type { StopSwitch } from "./stop-switch.ts";
import type { Subject } from "../../nodes/subject.ts";
import { isUnresolved } from "../../nodes/subject.ts";
import type { FencedHost } from "../hosts/host.ts";
import { zoneOf } from "../machine/rules/admission.ts";
import type { Admissions } from "./admissions.ts";
import type { Stop } from "../machine/model/hold.ts";
import { stopFor } from "../machine/model/hold.ts";
import type { HostFacts } from "../machine/model/host-facts.ts";

export interface SnapshotDeps {
  runtime: KubeRuntime;
  clusters: NodeClusters;
  stopSwitch: StopSwitch;
  turns: Admissions;
  zoneLabel: string;
  /** The node of its own cluster that this agent runs on; undefined where it is not told. */
  ownNode: string | undefined;
  /** What cannot be read that the remediation needs, in words; undefined where all is read. */
  unreadFor(session: Session): string | undefined;
  /** Other remediations of the same node or Machine. */
  siblingsOf(session: Session): readonly BareMetalRemediation[];
}

/** Gathers all that a decision may depend on, as this process knows it now. */
export function takeSnapshot(deps: SnapshotDeps, session: Session, state: State, lookup: Lookup): Snapshot {
  const { metadata } = session.remediation;
  const { plan } = session;
  const { subject, nodeName } = session;
  const { ref, nodes, away, uid: clusterUid } = session.cluster;
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
      // One whose time cannot be read is as old as can be.
      createdAtMs: parseTimeMs(metadata.creationTimestamp) ?? -Infinity,
      isRestored: metadata.labels?.[RESTORED_BY_VELERO] !== undefined,
      isConfirmed: metadata.annotations?.[CONFIRM] === metadata.uid,
    },
    plan,
    state,
    status: session.status,
    nodeName: nodeName ?? wordsFor(subject),
    subject,
    unresolved: isUnresolved(session.remediation),
    unread: session.waitsFor(deps.unreadFor(session)),
    away,
    clusterUid,
    isOwnCluster: ref !== undefined && deps.clusters.isOwn(ref),
    node,
    turn: deps.turns.of(session.uid),
    zone: zoneOf(node, deps.zoneLabel),
    runsHere: deps.clusters.isLocal(subject.cluster, nodeName, deps.ownNode),
    host: lookup.found ? { found: true, facts: factsOf(lookup.host, subject) } : lookup,
    stop: strictest(stopOf(deps.stopSwitch, lookup), session.seen.stop?.found),
    siblings: deps.siblingsOf(session).map(siblingOf),
    remainingMs: session.remainingMs(state, plan),
    freshId: deps.runtime.random.uuid(),
    seen: session.seen,
  };
}

function wordsFor({ machine }: Subject): string {
  return `of Machine ${machine?.namespace ?? ""}/${machine?.name ?? ""}`;
}

function factsOf(host: FencedHost, subject: Subject): HostFacts {
  const { ref, identity, owner, lastReboot, isPoweredByMark, isInUse } = host;
  return { ref, identity, owner, lastReboot, isPoweredByMark, takenBack: host.takenBack(subject), isInUse };
}

/** What holds orders to the host that was found, as it is watched; undefined where nothing does. */
export function stopOf(stopSwitch: StopSwitch, lookup: Lookup): Stop | undefined {
  return stopFor(stopSwitch.stopped, lookup.found ? lookup.host.maintenance : undefined);
}

/** Maintenance holds more than the stop switch does, and a pause that was read says more than a switch that cannot be. */
export function strictest(watched: Stop | undefined, live: Stop | undefined): Stop | undefined {
  if (live?.reason === "Maintenance") return live;
  const isReadLive = live !== undefined && live.isUnread !== true;
  return watched?.isUnread === true && isReadLive ? live : (watched ?? live);
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
