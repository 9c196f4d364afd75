import { allowsOn } from "../../../../bmc/identity/identity-check.ts";
import type { Hold } from "../../model/facts/hold.ts";
import type { Observations, PowerOrder } from "../../model/facts/observations.ts";
import { IDENTITY_AGE_MAX_MS } from "../../model/decision/timings.ts";
import { holdsOrder } from "../waits/holds.ts";

/** What a power order depends on in addition to the identity of its host, read immediately before the order is sent. */
export interface OrderFacts {
  /** Whether the host and its configuration are still those of the decision, and the host was not taken back. */
  isSameHost: boolean;
  /** The hold that the watches show. */
  watchedHold: Hold | undefined;
  /** The hold that was read live together with the identity, so it is fresh enough; undefined if none was read. */
  readHold: Observations["hold"];
}

/**
 * IdentityTooOld: the process was suspended, or API calls took too long. IdentityRefused: another host may answer.
 * HostChanged: the target was edited, or the host was taken back. Held: pause or maintenance holds the order, or the
 * holds were not read.
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
  // For a power-off, `ensureIdentity` has already refused an identity that is not verified.
  if (action === "On" && !allowsOn(identity.check)) return "IdentityRefused";
  return obstacleBesidesIdentity(action, facts);
}

/** Like `orderObstacle`, after a call to the API server, for an order whose identity was already checked. Pure. */
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
