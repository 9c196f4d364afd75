import type { SupportedOrders } from "../../interface/driver.ts";
import { lacksNetworkBoot } from "./boot.ts";
import type { JsonObject } from "../http/json.ts";

// Which power orders a service supports, by its lists of reset types (DSP0266, "Actions"). Pure.

/**
 * The reset types for each order, the preferred one first. Some services know only `ForceOn`. A power-off is always
 * `ForceOff`.
 */
export const RESET_TYPES = { Off: ["ForceOff"], On: ["On", "ForceOn"] } as const;

/** Toggles the power. It is not an order for a state, and is used for On only if the service allows nothing else. */
export const POWER_BUTTON = "PushPowerButton";

/** A diagnostic interrupt. It is sent only if the service lists it. */
export const NMI_RESET_TYPE = "Nmi";

/**
 * The type to send for an order; undefined if no allowed type does it.
 *
 * @param allowed What the service lists. A list is optional. Without one, the oldest type of the standard is tried.
 */
export function resetType(wanted: "Off" | "On", allowed: readonly string[] | undefined): string | undefined {
  const types = RESET_TYPES[wanted];
  return allowed === undefined ? types[0] : types.find((candidate) => allowed.includes(candidate));
}

/** @param boot the resource that holds the boot override, if there is one. */
export function supportedOrders(
  allowedTypes: readonly string[] | undefined,
  boot: JsonObject | undefined,
): SupportedOrders {
  return {
    allowedTypes,
    off: resetType("Off", allowedTypes),
    on: resetType("On", allowedTypes) ?? allowedTypes?.find((type) => type === POWER_BUTTON),
    networkBoot: boot !== undefined && !lacksNetworkBoot(boot),
  };
}
