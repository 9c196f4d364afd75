import type { FencingTarget } from "../../../api/ironfence/fencing-target.ts";
import { clusterKey } from "../../../nodes/subject.ts";
import { didYouMean } from "../../../runtime/text/did-you-mean.ts";
import type { NodeClusters } from "../../clusters/node-clusters.ts";
import type { FencingTargetDirectory } from "../../hosts/fencing-target/directory.ts";

interface WhyNodeMissingDeps {
  clusters: Pick<NodeClusters, "of">;
  directory: Pick<FencingTargetDirectory, "index">;
}

/**
 * Says that the node of a target does not exist, and which one may be meant. Undefined if the node exists, or if its
 * cluster cannot be read.
 */
export function whyNodeMissing({ clusters, directory }: WhyNodeMissingDeps, target: FencingTarget): string | undefined {
  const { nodeName, clusterRef } = target.spec;
  const { nodes, problem } = clusters.of(clusterRef);
  if (problem !== undefined || nodes.get({ name: nodeName }) !== undefined) return undefined;
  // A node that another target names is not the one that was meant.
  const free = [...nodes.values()].flatMap(({ metadata: { name } }) =>
    directory.index.byNode({ cluster: clusterRef, name }).length === 0 ? [name] : [],
  );
  const meant = didYouMean(nodeName, free);
  const cluster = clusterRef === undefined ? "the cluster" : `cluster ${clusterKey(clusterRef)}`;
  const next =
    meant === undefined
      ? "correct spec.nodeName, or wait until the node joins"
      : `did you mean ${meant}? Correct spec.nodeName`;
  return `${cluster} has no node ${nodeName}: ${next}`;
}
