import type { BareMetalRemediation } from "../../../../src/api/ironfence/bare-metal-remediation.ts";
import type { Node } from "../../../../src/api/kubernetes/core.ts";
import { KubeError } from "../../../../src/kube/errors.ts";
import type { KubeRuntime } from "../../../../src/kube/runtime.ts";
import type { Watched } from "../../../../src/kube/watched.ts";
import { FINALIZER } from "../../../../src/remediator/effects/objects/finalizer.ts";
import { NodeClusters } from "../../../../src/remediator/clusters/node-clusters.ts";
import { RemediationSession } from "../../../../src/remediator/controller/session/session.ts";
import type { StateName } from "../../../../src/remediator/machine/model/decision/state.ts";
import type { ReconcileDeps } from "../../../../src/remediator/controller/reconcile.ts";
import { reconcile } from "../../../../src/remediator/controller/reconcile.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { seededRandom } from "../../../lib/seeded-random.ts";
import { NO_WORKLOAD_CLUSTERS } from "../../../lib/workload-clusters.ts";
import { VirtualClock } from "../../../lib/virtual-clock.ts";
import { snapshot } from "./snapshots.ts";
import { IN_CONTACT } from "../../../lib/contact.ts";

/**
 * Ends an agent's leadership during its first call in a state.
 *
 * @returns `stops` if that call was its last one; `rests` if it makes no call in this state; otherwise the later calls.
 */
export async function demote(state: StateName): Promise<string> {
  const demoted = new AbortController();
  const calls: string[] = [];
  const client = new Proxy({} as KubeRuntime["client"], {
    get: (_client, method) => () => {
      calls.push(String(method));
      demoted.abort(new Error("demoted"));
      return Promise.reject(new KubeError("Network", "cut off"));
    },
  });
  const runtime: KubeRuntime = {
    client,
    clock: new VirtualClock(),
    random: seededRandom(1),
    logger: createLogger("silent"),
    contact: () => IN_CONTACT,
    events: { record: () => calls.push("event") },
    watch: (() => ({ subscribe: () => () => undefined })) as unknown as KubeRuntime["watch"],
  };
  const { status } = snapshot({ state });
  const remediation = {
    apiVersion: "ironfence.io/v1alpha1",
    kind: "BareMetalRemediation",
    metadata: { name: "n1", namespace: "ns", uid: "uid", resourceVersion: "1", finalizers: [FINALIZER] },
    spec: {},
    status: { ...status, outcome: { verdict: "Failed", reason: "PowerOnTimeout", message: "it failed" } },
  };
  const nodes = {
    get: () => undefined,
    values: () => [],
    subscribe: () => () => undefined,
  } as unknown as Watched<Node>;
  const clusters = new NodeClusters({ runtime, nodes, clusters: NO_WORKLOAD_CLUSTERS });
  const session = new RemediationSession(
    { runtime, clusters },
    remediation as unknown as BareMetalRemediation,
    () => undefined,
  );
  const nothing = { found: false, reason: "NoTarget", message: "there is none" };
  const deps = {
    runtime,
    clusters,
    nodesOf: () => nodes,
    directory: { find: () => nothing, byUid: () => undefined },
    stopSwitch: { stopped: undefined, known: true, subscribe: () => () => undefined },
    admissions: { of: () => undefined },
    zoneLabel: "zone",
    hasExternalEtcd: () => false,
    ownNode: undefined,
    siblingsOf: () => [],
    unreadFor: () => undefined,
  } as unknown as ReconcileDeps;
  try {
    await reconcile(deps, session, demoted.signal);
  } catch (error) {
    if (error !== demoted.signal.reason) throw error;
    return calls.length === 1 ? "stops" : calls.join(", ");
  }
  return calls.length === 0 ? "rests" : calls.join(", ");
}
