import { NODES } from "../../api/kubernetes/core-types.ts";
import { FENCING_TARGETS } from "../../api/ironfence/fencing-target.ts";
import { NODE_HEALTH_CHECKS } from "../../api/ironfence/node-health-check.ts";
import { resolveClusterOptions } from "../../config/cluster-options.ts";
import type { KubeObject, ResourceType } from "../../kube/resource.ts";
import { withDeadline } from "../../runtime/deadline.ts";
import { withCluster } from "../cluster/connect.ts";
import type { CliContext } from "../terminal/context.ts";

/** If completion took longer, the shell would seem to hang. */
const PROPOSAL_TIMEOUT_MS = 2_000;
const PROPOSALS_MAX = 200;

type Propose = (this: CliContext, partial: string) => Promise<readonly string[]>;

/** Names of nodes, for shells that complete a command line. */
export const proposeNodes: Propose = proposerOf(NODES);
/** Names of FencingTargets in the agent's namespace. */
export const proposeTargets: Propose = proposerOf(FENCING_TARGETS);
/** Names of NodeHealthChecks. */
export const proposeHealthChecks: Propose = proposerOf(NODE_HEALTH_CHECKS);

/** Asks the cluster that the environment names. If it does not answer in time, nothing is proposed. */
function proposerOf(type: ResourceType): Propose {
  return async function propose(this: CliContext, partial) {
    try {
      const options = resolveClusterOptions({}, this.process.env);
      return await withDeadline(this.clock, "a proposal", PROPOSAL_TIMEOUT_MS, this.signal, (signal) =>
        withCluster(this, options, async (client) => {
          const selection = type.namespaced ? { namespace: options.namespace } : {};
          const { items } = await client.list<KubeObject>(type, selection, signal);
          const names = items.map(({ metadata }) => metadata.name);
          return names.filter((name) => name.startsWith(partial)).slice(0, PROPOSALS_MAX);
        }),
      );
    } catch {
      return [];
    }
  };
}
