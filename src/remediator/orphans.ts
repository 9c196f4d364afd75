import type { BareMetalRemediation } from "../api/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../api/bare-metal-remediation.ts";
import { FENCED_BY, QUARANTINED_BY } from "../api/annotations.ts";
import type { Node } from "../api/core.ts";
import type { FencingTarget } from "../api/fencing-target.ts";
import { FENCING_TARGETS } from "../api/fencing-target.ts";
import { OUT_OF_SERVICE, QUARANTINE, sameTaint } from "../api/taints.ts";
import { Controller } from "../kube/controller.ts";
import { isKubeError } from "../kube/errors.ts";
import type { KubeObject } from "../kube/resource.ts";
import type { KubeRuntime } from "../kube/runtime.ts";
import type { Watched } from "../kube/watched.ts";
import { keyOf } from "../kube/watched.ts";
import { isReady, markPatch } from "./marks.ts";
import type { RemediatorMetrics } from "./metrics.ts";
import { getNode, patchNode } from "./node-writes.ts";
import { nodeNameOf } from "./session.ts";
import type { HostOwner } from "./targets/host.ts";
import { releaseTarget } from "./targets/target-store.ts";

// A remediation whose finalizer was removed by force, or that was restored without, leaves in the middle of its work: nobody
// takes its marks off, and its host may be off. This finds what such remediations left.

export interface OrphanDeps {
  runtime: KubeRuntime;
  nodes: Watched<Node>;
  targets: Watched<FencingTarget>;
  remediations: Watched<BareMetalRemediation>;
  /** Whether a remediation is at work on that node, or one that has gone is still being let go. */
  isServed(nodeName: string): boolean;
  /** Calls `listener` when a remediation of that node has been let go; the watch may have told of its end before. */
  onLetGo(listener: (nodeName: string) => void): () => void;
  metrics: RemediatorMetrics;
}

/** Before a node that is still served is looked at again, beside the changes that usually tell. */
const SERVED_RECHECK_MS = 5_000;

/**
 * Looks after nodes that a remediation has left in mid-way, until `signal` aborts; all views must be synced. Such a node is
 * told of once, loudly. Its out-of-service taint comes off at once, since nobody proves any more that the host is off. The
 * quarantine and the ownership of the host stay until the node is Ready, so that neither is forgotten by a restart. No power
 * order is sent: the strategy, the stop switch and the intent of the one who is gone are not known.
 */
export async function tendOrphans(deps: OrphanDeps, signal: AbortSignal): Promise<void> {
  const { nodes, targets, remediations } = deps;
  /** Nodes that were told of and are not Ready yet. */
  const left = new Set<string>();
  const controller: Controller = new Controller(deps.runtime, {
    name: "orphans",
    concurrency: 1,
    reconcile: (nodeName, running) => tend(deps, left, nodeName, running),
  });
  const unsubscribe = [
    nodes.subscribe(({ object }) => {
      if (isMarked(object) || left.has(object.metadata.name)) controller.enqueue(object.metadata.name);
    }),
    targets.subscribe(({ object }) => {
      if (object.status?.owner !== undefined) controller.enqueue(object.spec.nodeName);
    }),
    remediations.subscribe(({ type, object }) => {
      if (type === "deleted" || left.has(nodeNameOf(object))) controller.enqueue(nodeNameOf(object));
    }),
    deps.onLetGo((nodeName) => controller.enqueue(nodeName)),
  ];
  try {
    await controller.run(signal);
  } finally {
    for (const stop of unsubscribe) stop();
  }
}

async function tend(
  deps: OrphanDeps,
  left: Set<string>,
  nodeName: string,
  signal: AbortSignal,
): Promise<{ requeueAfterMs: number } | undefined> {
  const { runtime, metrics } = deps;
  const settle = (isLeft: boolean): void => {
    if (isLeft) left.add(nodeName);
    else left.delete(nodeName);
    metrics.orphaned(left.size);
  };
  if (deps.isServed(nodeName)) {
    settle(false);
    return isMarked(deps.nodes.get({ name: nodeName })) ? { requeueAfterMs: SERVED_RECHECK_MS } : undefined;
  }
  // Watches lag behind each other, so all of this is asked live.
  const node = await getNode(runtime.client, nodeName, signal);
  const owned = await ownedTargets(deps, nodeName, signal);
  const gone = await withoutRemediation(runtime, [...signers(node), ...owned.map(({ owner }) => owner.uid)], signal);
  if (gone.size === 0) {
    settle(false);
    return undefined;
  }
  const ready = node !== undefined && isReady(node);
  for (const uid of gone) await takeMarksOff(runtime, nodeName, uid, signal);
  if (ready) {
    for (const { target, owner } of owned) {
      if (gone.has(owner.uid)) await releaseTarget(runtime, refOf(target), owner, signal);
    }
  }
  if (!left.has(nodeName)) tell(runtime, nodeName, node ?? owned[0]?.target, ready, [...gone]);
  settle(!ready);
  return undefined;
}

function isMarked(node: Node | undefined): boolean {
  if (node?.metadata.annotations?.[FENCED_BY] !== undefined) return true;
  return (node?.spec.taints ?? []).some((taint) => sameTaint(taint, QUARANTINE));
}

/** UIDs of the remediations that have signed marks on a live node. */
function signers(node: Node | undefined): string[] {
  const { annotations = {} } = node?.metadata ?? {};
  return [annotations[FENCED_BY], annotations[QUARANTINED_BY]].flatMap((signature) => signature?.split("/")[0] ?? []);
}

/** The live targets of a node that a remediation owns. */
async function ownedTargets(
  { runtime, targets }: OrphanDeps,
  nodeName: string,
  signal: AbortSignal,
): Promise<{ target: FencingTarget; owner: HostOwner }[]> {
  const owned: { target: FencingTarget; owner: HostOwner }[] = [];
  for (const watched of targets.values()) {
    if (watched.spec.nodeName !== nodeName || watched.status?.owner === undefined) continue;
    try {
      const target = await runtime.client.get<FencingTarget>(FENCING_TARGETS, keyOf(watched), signal);
      const owner = target.status?.owner;
      if (owner?.kind === BARE_METAL_REMEDIATIONS.kind) owned.push({ target, owner });
    } catch (error) {
      if (!isKubeError(error, "NotFound")) throw error;
    }
  }
  return owned;
}

/** Those of `uids` of which storage holds no remediation, in whatever state. */
async function withoutRemediation(
  { client }: KubeRuntime,
  uids: readonly string[],
  signal: AbortSignal,
): Promise<Set<string>> {
  const gone = new Set(uids);
  if (gone.size === 0) return gone;
  const { items } = await client.list<KubeObject>(BARE_METAL_REMEDIATIONS, {}, signal);
  for (const { metadata } of items) gone.delete(metadata.uid);
  return gone;
}

/** Takes off what bears that remediation's signature: the taint at once, the quarantine where the live node is Ready. */
async function takeMarksOff(runtime: KubeRuntime, nodeName: string, uid: string, signal: AbortSignal): Promise<void> {
  const patchFor: Parameters<typeof patchNode>[2] = (node) =>
    markPatch(node, { outOfService: "off", ...(isReady(node) && { quarantine: "off" }) }, "", uid);
  await patchNode(runtime.client, nodeName, patchFor, signal);
}

function refOf({ kind, metadata }: FencingTarget): { kind: string; namespace: string; name: string; uid: string } {
  const { namespace = "", name, uid } = metadata;
  return { kind, namespace, name, uid };
}

function tell(
  runtime: KubeRuntime,
  nodeName: string,
  regarding: KubeObject | undefined,
  ready: boolean,
  uids: readonly string[],
): void {
  const what = `BareMetalRemediation ${uids.join(", ")} of node ${nodeName} is gone and has not taken back what it did`;
  const next = ready
    ? "the node is Ready: its marks and its host are given free"
    : `the host may be OFF, and its next boot may be from the network: look at both (ironfence power status), then power it on or remediate the node anew; the ${OUT_OF_SERVICE.key} taint of that remediation is taken off, ${QUARANTINE.key} stays until the node is Ready`;
  runtime.logger.error({ node: nodeName, uids, ready, next }, "a remediation is gone in mid-way");
  if (regarding === undefined) return;
  const note = `${what}; ${next}`;
  runtime.events.record({ regarding, type: "Warning", reason: "RemediationLost", action: "Tend", note });
}
