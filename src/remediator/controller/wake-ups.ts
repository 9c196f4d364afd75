import type { BareMetalRemediation } from "../../api/ironfence/bare-metal-remediation.ts";
import type { FencingTarget } from "../../api/ironfence/fencing-target.ts";
import type { Watched } from "../../kube/watched.ts";
import { keyOf, keyText } from "../../kube/watched.ts";
import { clusterKey } from "../../nodes/subject.ts";
import type { NodeClusters } from "../clusters/node-clusters.ts";
import type { BareMetalHostDirectory } from "../hosts/bare-metal-host/directory.ts";
import type { FencingTargetDirectory } from "../hosts/fencing-target/directory.ts";
import { isFinal } from "../machine/model/decision/state.ts";
import { mayRunEtcd } from "../machine/rules/admission/quorum.ts";
import type { Admissions } from "./admission/admissions.ts";
import type { AwaitedNodes } from "./awaited-nodes.ts";
import type { DeletedMembers } from "./admission/deleted-members.ts";
import type { RemediationIndex } from "./remediation-index.ts";
import type { Sessions } from "./session/sessions.ts";
import type { StopSwitch } from "./stop-switch.ts";

export interface WakeUpsDeps {
  targets: Watched<FencingTarget>;
  remediations: Watched<BareMetalRemediation>;
  clusters: NodeClusters;
  directory: FencingTargetDirectory;
  bareMetalHosts: BareMetalHostDirectory | undefined;
  stopSwitch: StopSwitch;
  index: RemediationIndex;
  sessions: Sessions;
  awaitedNodes: AwaitedNodes;
  deletedMembers: DeletedMembers;
  admissions: Admissions;
  /** Requests a reconcile of a remediation, by its key. */
  enqueue: (key: string) => void;
}

/**
 * Wakes the remediations that a change concerns: a change of the remediation itself, of its node, its host, the
 * connection to its cluster, or the stop switch.
 *
 * @returns a function that ends this.
 */
export function subscribeWakeUps(deps: WakeUpsDeps): () => void {
  const { remediations, index, sessions, deletedMembers, admissions, enqueue } = deps;
  const wake = (woken: Iterable<BareMetalRemediation>): void => {
    for (const remediation of woken) enqueue(keyText(keyOf(remediation)));
  };
  const unsubscribe = [
    deps.targets.subscribe((change) => {
      deletedMembers.observeTarget(change);
      admissions.reviewIfOld();
    }),
    remediations.subscribe((change) => {
      index.apply(change);
      wake([change.object]);
      // A remediation that waits for a host checks again when another remediation of the same node changes.
      wake(index.siblings(change.object));
    }),
    deps.clusters.subscribe({
      onNode: (cluster, change, isNews) => {
        const { object } = change;
        deletedMembers.observe(cluster, change);
        // When a session begins to hold a cluster, the cluster reports the nodes that it already has. They must not
        // wake remediations: one that has ended would begin a session, hold the cluster and be woken again without end.
        if (isNews) wake(index.ofNode(cluster, object.metadata.name));
        if (mayRunEtcd(object)) admissions.review();
      },
      onConnection: (cluster) => {
        for (const [key, session] of sessions.entries()) {
          if (clusterKey(session.cluster.ref) === clusterKey(cluster)) enqueue(key);
        }
        for (const key of deps.awaitedNodes.in(cluster)) enqueue(key);
        admissions.review();
      },
    }),
    deps.directory.subscribe((concerned) => {
      for (const target of concerned) wake(index.ofTarget(target));
    }),
    deps.bareMetalHosts?.subscribe((uid) => {
      // A remediation without a host may have one now.
      const isConcerned = ({ status }: BareMetalRemediation): boolean =>
        status?.target === undefined ? !isFinal(status?.phase) : uid === undefined || status.target.uid === uid;
      wake([...remediations.values()].filter(isConcerned));
    }),
    deps.stopSwitch.subscribe(() => wake(remediations.values())),
  ];
  return () => {
    for (const stop of unsubscribe) stop?.();
  };
}
