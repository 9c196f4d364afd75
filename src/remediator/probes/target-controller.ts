import { SECRETS } from "../../api/kubernetes/core-types.ts";
import type { Node } from "../../api/kubernetes/core.ts";
import type { FencingTarget } from "../../api/ironfence/fencing-target.ts";
import { isSameOutage, outageOf } from "../../api/kubernetes/outage.ts";
import { Controller } from "../../kube/reconcile/controller.ts";
import type { KubeObject } from "../../kube/resource.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import type { Change, Watched } from "../../kube/watched.ts";
import { keyOf, keyText } from "../../kube/watched.ts";
import { withDeadline } from "../../runtime/deadline.ts";
import { isReady } from "../../nodes/ready.ts";
import { meaningfulUuid } from "../hosts/model/identity.ts";
import { EarlyProver } from "../early/early-prover.ts";
import { Preparer } from "../early/preparer.ts";
import { watchProofsWanted } from "./proofs-wanted.ts";
import { uuidClaim } from "../hosts/model/hardware-claims.ts";
import type { TargetControllerDeps } from "./target-prober.ts";
import { TargetProber } from "./target-prober.ts";

/** How many targets are probed at the same time. */
const PROBES_AT_ONCE = 8;
/**
 * How long probing waits for the first list of Secrets. Without the permission to watch them, it continues and does not
 * notice a rotated password before the next probe.
 */
const SECRETS_WAIT_MS = 30_000;

/**
 * Probes every FencingTarget and writes the result to its status, so that an old password is found before a fence needs
 * it. A probe reads the identity and the power state of the host. It sends no orders, and skips a host that a
 * remediation owns. Resolves after `signal` aborts, when all its tasks have ended.
 */
export async function startTargetController(deps: TargetControllerDeps, signal: AbortSignal): Promise<void> {
  const { runtime, targets, clusters, directory, namespace } = deps;
  const secrets = runtime.watch({ type: SECRETS, namespace, trim: trimSecret }, signal);
  const proofs = watchProofsWanted(runtime, () => enqueue([...targets.values()]), signal);
  const prober = new TargetProber(deps, secrets, proofs);
  const controller = new Controller(runtime, {
    name: "fencing-targets",
    concurrency: PROBES_AT_ONCE,
    reconcile: (key, signal) => prober.reconcile(key, signal),
    minBackoffMs: 1_000,
    maxBackoffMs: 60_000,
  });
  const enqueue = (concerned: readonly FencingTarget[]): void => {
    for (const target of concerned) controller.enqueue(keyText(keyOf(target)));
  };
  const isManaged = (target: FencingTarget): boolean => deps.whyManaged?.(target)?.why !== undefined;
  const early = deps.early && new EarlyProver({ ...deps.early, runtime, targets, directory, proofs, isManaged });
  const preparer = deps.early && new Preparer({ ...deps.early, runtime, directory, announced: proofs, isManaged });
  const subscriptions: (() => void)[] = [];
  try {
    await targets.whenSynced(signal);
    await waitForSecrets(runtime, secrets, signal);
    subscriptions.push(
      directory.subscribe((concerned) => {
        prober.forget(concerned);
        enqueue(concerned);
      }),
      secrets.subscribe((change) => enqueue(directory.index.bySecret(change.object.metadata.name))),
      deps.subscribeManaged?.(() => enqueue([...targets.values()])) ?? (() => undefined),
      clusters.subscribe({
        onNode: (cluster, change) => {
          if (!mattersToTargets(change)) return;
          const { name } = change.object.metadata;
          enqueue(directory.index.byNode({ cluster, name }));
          enqueue(directory.index.claiming(uuidClaimsOf(change)));
        },
        onConnection: (cluster) => enqueue(directory.index.byCluster(cluster)),
      }),
    );
    enqueue([...targets.values()]);
    await Promise.all([controller.run(signal), early?.run(signal), preparer?.run(signal)]);
  } catch (error) {
    // The waits above throw on abort, which is the normal end.
    if (!signal.aborted) throw error;
  } finally {
    for (const unsubscribe of subscriptions) unsubscribe();
    prober.close();
    await proofs.settled();
  }
}

/** The claims for the UUIDs of a node before and after a change. */
function uuidClaimsOf(change: Change<Node>): string[] {
  const nodes = change.type === "updated" ? [change.object, change.previous] : [change.object];
  const uuids = nodes.flatMap((node) => meaningfulUuid(node.status.nodeInfo?.systemUUID) ?? []);
  return uuids.map(uuidClaim);
}

/** Whether a change of a node may affect its target: most changes are heartbeats. */
function mattersToTargets(change: Change<Node>): boolean {
  if (change.type !== "updated") return true;
  const { object, previous } = change;
  const [before, now] = [outageOf(previous), outageOf(object)];
  return (
    isReady(object) !== isReady(previous) ||
    (before !== now && !isSameOutage(before, now)) ||
    object.status.nodeInfo?.systemUUID !== previous.status.nodeInfo?.systemUUID ||
    object.status.nodeInfo?.bootID !== previous.status.nodeInfo?.bootID
  );
}

async function waitForSecrets(runtime: KubeRuntime, secrets: Watched<KubeObject>, signal: AbortSignal): Promise<void> {
  try {
    await withDeadline(runtime.clock, "first list of Secrets", SECRETS_WAIT_MS, signal, (signal) =>
      secrets.whenSynced(signal),
    );
  } catch (error) {
    if (signal.aborted) throw error;
    runtime.logger.warn(
      { problem: secrets.problem },
      "Secrets cannot be watched yet: a rotated password is found at the next probe",
    );
  }
}

/** Only the version of a Secret is kept in memory. */
function trimSecret({ apiVersion, kind, metadata }: KubeObject): KubeObject {
  const { namespace, name, uid, resourceVersion } = metadata;
  return { apiVersion, kind, metadata: { name, uid, resourceVersion, ...(namespace !== undefined && { namespace }) } };
}
