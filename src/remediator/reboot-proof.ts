import type { Node } from "../api/core.ts";
import { parseTimeMs } from "../runtime/time.ts";
import type { Sibling } from "./snapshot.ts";
import type { FencedHost } from "./targets/host.ts";

/**
 * Whether the last proven reboot of a host belongs to the outage that its node is in now. It does if
 * - the node was not Ready before the host was proven off, and its Ready condition has not moved since; or
 * - the remediation that made it still exists and has not succeeded: health checks delete remediations with the outage, and
 *   a node that came up after the reboot, not healthy, has a newer Ready condition.
 */
export function rebootOfThisOutage(
  lastReboot: FencedHost["lastReboot"],
  node: Node | undefined,
  siblings: readonly Sibling[],
): boolean {
  const offMs = parseTimeMs(lastReboot?.offConfirmedAt);
  if (offMs === undefined) return false;
  if (siblings.some((sibling) => !sibling.succeeded && sameSecond(parseTimeMs(sibling.offConfirmedAt), offMs)))
    return true;
  const ready = node?.status.conditions?.find((condition) => condition.type === "Ready");
  const sinceMs = parseTimeMs(ready?.lastTransitionTime);
  return ready !== undefined && ready.status !== "True" && sinceMs !== undefined && sinceMs <= offMs;
}

/** A target's times have whole seconds, a remediation's have more. */
function sameSecond(aMs: number | undefined, bMs: number): boolean {
  return aMs !== undefined && Math.floor(aMs / 1_000) === Math.floor(bMs / 1_000);
}
