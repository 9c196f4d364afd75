import { allowsOn } from "../../../../bmc/identity/identity-check.ts";
import type { Hold } from "../../model/facts/hold.ts";
import type { Observations, PowerOrder } from "../../model/facts/observations.ts";
import { IDENTITY_AGE_MAX_MS } from "../../model/decision/timings.ts";
import { holdsOrder } from "../waits/holds.ts";

/** What a power order depends on besides the identity of its host, read at the moment of the call. */
export interface OrderFacts {
  /** Whether the host is still the one that was decided on, configured as it was, and was not taken back. */
  isSameHost: boolean;
  /** The hold by the watches. */
  watchedHold: Hold | undefined;
  /** What was read live together with the identity, so it is as old as an order allows; undefined if nothing was. */
  readHold: Observations["hold"];
}

/**
 * IdentityTooOld: the process stood still, or API calls took too long. IdentityRefused: another host may answer.
 * HostChanged: its target was edited, or it was taken back. Held: by pause or maintenance, or the holds were not read.
 */
export type OrderObstacle = "IdentityTooOld" | "IdentityRefused" | "HostChanged" | "Held";

/** Why a power order that was decided on must not be sent now; undefined if it may be sent. Pure. */
export function orderObstacle(
  action: PowerOrder,
  identity: Observations["identity"],
  facts: OrderFacts,
  nowMs: number,
): OrderObstacle | undefined {
  if (identity === undefined || identityLeftMs(identity, nowMs) < 0) return "IdentityTooOld";
  // A power-off was refused by `ensureIdentity` already, whose check is the one that is still fresh here.
  if (action === "On" && !allowsOn(identity.check)) return "IdentityRefused";
  return obstacleBesidesIdentity(action, facts);
}

/** The same for an order whose identity was checked a moment ago, after a call to the API server. Pure. */
export function obstacleBesidesIdentity(
  action: PowerOrder,
  { isSameHost, watchedHold, readHold }: OrderFacts,
): OrderObstacle | undefined {
  if (!isSameHost) return "HostChanged";
  if (readHold === undefined) return "Held";
  return holdsOrder(watchedHold, action) || holdsOrder(readHold.found, action) ? "Held" : undefined;
}

/** The time for which an identity check is still fresh enough for an order, in milliseconds; negative if it is not. */
export function identityLeftMs(identity: Observations["identity"], nowMs: number): number {
  return identity === undefined ? -Infinity : identity.atMs + IDENTITY_AGE_MAX_MS - nowMs;
}
