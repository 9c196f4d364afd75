import type { Node } from "../../../../api/kubernetes/core.ts";
import { parseTimeMs } from "../../../../runtime/time.ts";
import type { Sibling } from "../../model/facts/snapshot.ts";
import type { LastReboot } from "../../model/facts/host-facts.ts";

/** How long after a reboot the Ready condition may still change because of it, for example from Unknown to False. */
const BOOT_MAX_MS = 30 * 60_000;

/**
 * Whether the last proven reboot of a host belongs to the present outage of its node. That is so if the node is not
 * Ready, and
 * - its Ready condition has not changed since the host was proven off, and the node is not in another boot. Another
 *   boot shows the end of an outage even if the clocks that wrote the two times differ. Or
 * - its Ready condition changed soon after (a kubelet that starts reports False instead of Unknown), and the
 *   remediation that rebooted the host still exists and has not succeeded: health checks delete it when the outage
 *   ends.
 */
export function rebootOfThisOutage(
  lastReboot: LastReboot | undefined,
  node: Node | undefined,
  siblings: readonly Sibling[],
): boolean {
  const offMs = parseTimeMs(lastReboot?.offConfirmedAt);
  const ready = node?.status.conditions?.find((condition) => condition.type === "Ready");
  const sinceMs = parseTimeMs(ready?.lastTransitionTime);
  if (offMs === undefined || sinceMs === undefined || ready?.status === "True") return false;
  const bootID = node?.status.nodeInfo?.bootID;
  const cameUp = bootID !== undefined && lastReboot?.bootID !== undefined && bootID !== lastReboot.bootID;
  if (sinceMs <= offMs && !cameUp) return true;
  const unfinished = siblings.some(
    (sibling) => !sibling.succeeded && sameSecond(parseTimeMs(sibling.offConfirmedAt), offMs),
  );
  return unfinished && sinceMs - offMs <= BOOT_MAX_MS;
}

/** Whether two times are equal in whole seconds: those of a target have no fractions, those of a remediation have. */
function sameSecond(aMs: number | undefined, bMs: number): boolean {
  return aMs !== undefined && Math.floor(aMs / 1_000) === Math.floor(bMs / 1_000);
}
