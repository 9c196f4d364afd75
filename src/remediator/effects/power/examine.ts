import { isReady } from "../../../nodes/ready.ts";
import { LEASES, NODE_LEASE_NAMESPACE } from "../../../api/kubernetes/core-types.ts";
import type { Lease, Node } from "../../../api/kubernetes/core.ts";
import { isKubeError } from "../../../kube/errors.ts";
import { DeadlineError, withDeadline } from "../../../runtime/deadline.ts";
import { verifyIdentity } from "./devices.ts";
import type { EffectContext } from "../context/effect-context.ts";
import { readHolds } from "./read-holds.ts";
import { isTaintOfFirstVersion, signedTaint } from "../../machine/node-patches/marks.ts";
import { getNode } from "../../clusters/node-writes.ts";
import { mayRunEtcd } from "../../machine/rules/admission/quorum.ts";
import { readLiveMachine } from "../../machine-objects/read-machine.ts";
import type { EtcdMember } from "../../machine/model/facts/observations.ts";
import { EXAMINED_AGE_MAX_MS } from "../../machine/model/decision/timings.ts";
import type { RemediationEvent } from "../../machine/model/facts/event.ts";
import type { HoldsRead } from "./read-holds.ts";

// Everything here is read right before a power order, so that no order relies on old data.

/** Reads the nodes that run etcd live, because the watch may be late. */
async function readMembers(context: EffectContext, signal: AbortSignal): Promise<EtcdMember[]> {
  const read = async ({ metadata: { name } }: Node): Promise<EtcdMember> => {
    const node = await getNode(context.nodeRuntime.client, name, signal);
    const up = node !== undefined && isReady(node);
    return { node: name, up, external: context.hasExternalEtcd, ...(node === undefined && { deleted: true }) };
  };
  return Promise.all(context.etcdNodes().map(read));
}

/**
 * Reads the node and the identity of its host at the same time. An order needs both, so the identity is discarded if
 * the node cannot be read.
 */
export async function examineWithIdentity(context: EffectContext, signal: AbortSignal): Promise<void> {
  const { session } = context;
  try {
    await readWithIdentity(context, examine, signal);
  } catch (error) {
    session.observe({ type: "IdentityDiscarded" });
    throw error;
  }
}

/** Reads what an order depends on that does not affect pods: the identity of the host, and the holds. */
export async function verifyWithHolds(context: EffectContext, signal: AbortSignal): Promise<void> {
  // A failed read is not repeated, however old it is. It holds power-offs anyway, and repeating it would delay an On
  // for as long as it fails.
  const read = async (): Promise<HoldsRead[]> => [await readHolds(context, signal)];
  await readWithIdentity(context, read, signal, ([read]) => read?.type === "HoldsRead" && read.failed);
}

/**
 * Runs `read` and verifies the identity of the host at the same time, because an order needs both. If that takes long,
 * the part that may be outdated is read again: during a slow BMC call the node may come back, and during a slow API
 * call the identity becomes too old for any order.
 *
 * @param isLasting whether the result of `read` stays usable, however old it becomes.
 */
async function readWithIdentity(
  context: EffectContext,
  read: (context: EffectContext, signal: AbortSignal) => Promise<readonly RemediationEvent[]>,
  signal: AbortSignal,
  isLasting: (found: readonly RemediationEvent[]) => boolean = () => false,
): Promise<void> {
  const { session } = context;
  const now = (): number => session.now().monotonicMs;
  const startedMs = now();
  let verifiedMs = startedMs;
  const verify = async (): Promise<void> => {
    await verifyIdentity(context, signal);
    verifiedMs = now();
  };
  const verifying = verify();
  // Awaited below, after the read. Without this handler, a rejection before that would end the process.
  verifying.catch(() => undefined);
  let found: readonly RemediationEvent[];
  let readMs: number;
  try {
    found = await read(context, signal);
    readMs = now();
  } finally {
    await verifying;
  }
  if (readMs - verifiedMs > EXAMINED_AGE_MAX_MS) await verify();
  // One of several answers may have come early and another late, so the age counts from the start.
  if (now() - startedMs > EXAMINED_AGE_MAX_MS && !isLasting(found)) found = await read(context, signal);
  // Reported only when everything has succeeded, because a partial result must not count.
  for (const event of found) session.observe(event);
}

/** Reads the live node and everything else that decides about its power-off. */
async function examine(context: EffectContext, signal: AbortSignal): Promise<readonly RemediationEvent[]> {
  const { session, nodeRuntime } = context;
  const [node, stops] = await Promise.all([
    getNode(nodeRuntime.client, session.nodeName, signal),
    readHolds(context, signal),
    readLease(context, signal),
    readMachine(context, signal),
  ]);
  const hasOurs = node !== undefined && (signedTaint(node) || isTaintOfFirstVersion(session.remediation, node));
  // A member of etcd may run on although its Node was deleted.
  const mayBeMember =
    node === undefined
      ? context.etcdNodes().some(({ metadata }) => metadata.name === session.nodeName)
      : mayRunEtcd(node);
  const members = mayBeMember ? await readMembers(context, signal) : [];
  const { subject, cluster } = session;
  const dispute = await context.host?.disputeOf(subject, node, cluster.nodes.values(), signal);
  return [stops, { type: "NodeExamined", node, dispute, members, hasOurs }];
}

/** Reads the recorded Machine live if it may contradict the request: it may have been deleted, or have a node now. */
async function readMachine({ runtime, session }: EffectContext, signal: AbortSignal): Promise<void> {
  const { machine, cluster, nodeName } = session.subject;
  if (machine === undefined || (cluster === undefined && nodeName !== undefined)) return;
  const read = await readLiveMachine(runtime, machine, signal);
  session.observe({ type: "MachineRead", machine: read, atMs: session.now().monotonicMs });
}

export async function readLease({ nodeRuntime, session }: EffectContext, signal: AbortSignal): Promise<void> {
  const { nodeName: name } = session;
  let lease: Lease | undefined;
  try {
    if (name !== undefined) {
      lease = await nodeRuntime.client.get<Lease>(LEASES, { namespace: NODE_LEASE_NAMESPACE, name }, signal);
    }
  } catch (error) {
    if (!isKubeError(error, "NotFound")) throw error;
  }
  const atMs = session.now().monotonicMs;
  const { cluster, provenLease: proven } = session;
  session.observe({ type: "LeaseRead", lease, readAtMs: atMs, contact: cluster.runtime.contact(), atMs, proven });
}

/** Reads the lease. If there is no answer in time, nothing is observed, so that the power can be read again first. */
export async function readLeaseWithin(context: EffectContext, withinMs: number, signal: AbortSignal): Promise<void> {
  const { runtime, session } = context;
  const what = `the read of the lease of ${session.nodeName ?? ""}`;
  try {
    await withDeadline(runtime.clock, what, withinMs, signal, (bounded) => readLease(context, bounded));
  } catch (error) {
    if (!(error instanceof DeadlineError)) throw error;
  }
}
