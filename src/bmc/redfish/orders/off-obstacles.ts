import { chooseResetType, readAllowedTypes, resetTarget } from "./allowed-types.ts";
import type { Service } from "../session/service.ts";
import type { System } from "../system/system.ts";
import type { OffObstacle } from "../../interface/driver.ts";

/** A power state of the standard that is neither on nor off. */
const HALTED = "Paused";

/** What would prevent a power-off of this System: a power state that cannot prove it, or a missing order. */
export async function findOrderObstacle(
  service: Service,
  address: string,
  { reset, power }: System,
  signal: AbortSignal,
): Promise<OffObstacle | undefined> {
  if (power.state === "Unknown" && power.raw !== HALTED) {
    const what = `the System shows no known power state (${power.raw}), so nothing would prove an Off`;
    const advice = "update the firmware, or use IPMI or another device";
    return { reason: "PowerUnreadable", message: `${address}: ${what}: ${advice}` };
  }
  const notOffered = (what: string): OffObstacle => ({ reason: "OffNotOffered", message: `${address}: ${what}` });
  // Some BMCs show the action only while the host is on.
  if (reset === undefined && power.state === "Off") return undefined;
  if (reset === undefined) return notOffered("the System has no Reset action: use IPMI, or another device");
  // Throws if the target is not usable.
  resetTarget(service.origin, reset);
  // Some BMCs list only what they allow in the present state: for a host that is off, a missing ForceOff means nothing.
  if (power.state !== "On" || (await chooseResetType(service, "Off", reset, signal)) !== undefined) return undefined;
  const offered = ((await readAllowedTypes(service, reset, signal)) ?? []).join(", ").slice(0, 200);
  return notOffered(
    `the BMC does not offer ForceOff to a host that is on, only: ${offered}; use IPMI, or another device`,
  );
}
