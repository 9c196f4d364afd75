import type { Node } from "../../../api/kubernetes/core.ts";
import type { FencingTarget } from "../../../api/ironfence/fencing-target.ts";
import type { OpenDevice } from "../../../bmc/interface/device-config.ts";
import type { KubeRuntime } from "../../../kube/runtime.ts";
import { createFencingTargetDirectory } from "../../../remediator/hosts/fencing-target/directory.ts";
import type { FencingTargetDirectory } from "../../../remediator/hosts/fencing-target/directory.ts";
import { probeTarget } from "../../../remediator/probes/reading/probe.ts";
import { statusChange } from "../../../remediator/probes/report/target-status.ts";
import { withDeadline } from "../../../runtime/deadline.ts";
import { inParallel } from "../../../runtime/in-parallel.ts";
import { toTime } from "../../../runtime/time.ts";
import { staticView } from "../../cluster/static-view.ts";
import { itemsOf } from "../../status/objects/object-problems.ts";
import type { ProbeTargets } from "./read-facts.ts";
import { readyOf } from "../../../remediator/hosts/fencing-target/target-store.ts";
import type { RefusedLogin } from "../../../remediator/probes/schedule/probe-result.ts";

/** How many targets are probed at the same time. Each call to a device has a deadline of its own. */
const TARGETS_AT_ONCE_MAX = 32;
/** Problems that only the agent can find: the operator of a BareMetalHost powers the same host. */
const NOT_SEEN_FROM_HERE: ReadonlySet<string> = new Set(["Ambiguous", "BareMetalHostsUnreadable"]);

/**
 * Probes every target with the code of the agent, and logs in once to each device. A target that is in maintenance or
 * that a remediation owns keeps its status. A login that was refused is not tried again by the same command, so that
 * waiting (`--wait`) locks no account.
 *
 * @param options.timeoutMs for all targets together.
 */
export function createTargetProbes(
  { runtime, openDevice }: { runtime: KubeRuntime; openDevice: OpenDevice },
  { namespace, timeoutMs }: { namespace: string; timeoutMs: number },
): ProbeTargets {
  const { clock } = runtime;
  const refused: RefusedLogin[] = [];
  return async (overview, signal) => {
    const targets = itemsOf(overview.targets);
    const nodes = new Map(itemsOf(overview.nodes).map((node) => [node.metadata.name, node]));
    const living = new Set(itemsOf(overview.remediations).map(({ metadata }) => metadata.uid));
    const directory = createFencingTargetDirectory(
      { runtime, targets: staticView(targets), namespace, openDevice },
      signal,
    );
    const endMs = clock.monotonicMs() + timeoutMs;
    const unprobed = new Set<string>();
    const probed = await inParallel(targets, TARGETS_AT_ONCE_MAX, async (target) => {
      const owner = target.status?.owner;
      if (target.spec.maintenance || (owner !== undefined && living.has(owner.uid))) return target;
      const node = target.spec.clusterRef === undefined ? nodes.get(target.spec.nodeName) : undefined;
      const isKnown = Array.isArray(overview.nodes);
      const deps = { runtime, openDevice, directory, refused, isKnown };
      const leftMs = Math.ceil(endMs - clock.monotonicMs());
      try {
        if (leftMs > 0) {
          return await withDeadline(clock, "the probe", leftMs, signal, (within) =>
            probeOne(deps, target, node, within),
          );
        }
      } catch (error) {
        signal.throwIfAborted();
        if (clock.monotonicMs() < endMs) throw error;
      }
      unprobed.add(target.metadata.uid);
      return target;
    });
    return { targets: probed, unprobed };
  };
}

interface ProbeDeps {
  runtime: KubeRuntime;
  openDevice: OpenDevice;
  directory: FencingTargetDirectory;
  refused: RefusedLogin[];
  /** Whether the nodes of the cluster were listed. */
  isKnown: boolean;
}

/** Returns the target with the conditions that the agent would write after this probe. */
async function probeOne(
  { runtime, openDevice, directory, refused, isKnown }: ProbeDeps,
  target: FencingTarget,
  node: Node | undefined,
  signal: AbortSignal,
): Promise<FencingTarget> {
  if (NOT_SEEN_FROM_HERE.has(readyOf(target.status)?.reason ?? "")) return target;
  const deps = { runtime, openDevice };
  const result = await probeTarget(deps, target, node, { nodeRuntime: runtime, refused, toProve: false }, signal);
  refused.push(...result.refused);
  const { nodeName, clusterRef } = target.spec;
  const isMissing = isKnown && clusterRef === undefined && node === undefined;
  const change = statusChange(
    {
      target,
      conflict: directory.conflictOf(target.metadata.uid),
      nodeMissing: isMissing
        ? `the cluster has no node ${nodeName}: correct spec.nodeName, or wait until the node joins`
        : undefined,
      nodeSystemUUID: node?.status.nodeInfo?.systemUUID,
      probe: { result, atMs: runtime.clock.nowMs() },
      outage: undefined,
    },
    "asBefore",
    runtime.clock.nowMs(),
  );
  const conditions = change?.conditions ?? target.status?.conditions ?? [];
  const { certificateNotAfter, ...status } = target.status ?? {};
  const notAfter = change?.certificateNotAfter === undefined ? certificateNotAfter : change.certificateNotAfter;
  const found = { conditions, lastProbeTime: toTime(runtime.clock.nowMs()) };
  return {
    ...target,
    status: { ...status, ...found, ...(typeof notAfter === "string" && { certificateNotAfter: notAfter }) },
  };
}
