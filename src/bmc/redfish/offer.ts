import type { OrderOffer } from "../driver.ts";
import { lacksNetworkBoot } from "./boot.ts";
import type { JsonObject } from "./json.ts";

// Which of our orders a service takes, by the lists that it gives (DSP0266, "Actions"). Pure.

/** `On` is the standard's name; some services know `ForceOn` only. Fencing uses only `ForceOff`. */
export const RESET_TYPES = { Off: ["ForceOff"], On: ["On", "ForceOn"] } as const;

/** Toggles: it is no order for a state, and does for `On` where nothing else is offered. */
export const POWER_BUTTON = "PushPowerButton";

/**
 * What to send for an order; undefined where nothing that is allowed will do.
 *
 * @param allowed what the service lists. No list is required of it: what the standard always had is then worth the try.
 */
export function resetType(wanted: "Off" | "On", allowed: readonly string[] | undefined): string | undefined {
  const types = RESET_TYPES[wanted];
  return allowed === undefined ? types[0] : types.find((candidate) => allowed.includes(candidate));
}

/** @param boot the resource that holds the boot override, where there is one. */
export function orderOffer(listed: readonly string[] | undefined, boot: JsonObject | undefined): OrderOffer {
  return {
    listed,
    off: resetType("Off", listed),
    on: resetType("On", listed) ?? listed?.find((type) => type === POWER_BUTTON),
    networkBoot: boot !== undefined && !lacksNetworkBoot(boot),
  };
}
