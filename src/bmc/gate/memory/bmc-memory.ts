import { ExpiringSet } from "./expiring-set.ts";
import { ProvenSuites } from "./proven-suites.ts";
import { PossibleRestarts } from "./possible-restarts.ts";
import { ResetActions } from "./reset-actions.ts";
import type { Clock } from "../../../runtime/clock.ts";

/** After an order to power on, a host may show Off for this long. Pushing its power button would turn it off again. */
const ON_SETTLE_MS = 60_000;

/** A login at a plain HTTP address checks for a redirect if the last check was longer ago than this. */
const PLAIN_HTTP_MS = 3_600_000;

/** How long a login uses the session path that the root of the service names, instead of the usual path. */
const SESSIONS_PATH_MS = 24 * 3_600_000;

/** After basic authentication was refused, it is not tried again for this long if no session is free. */
const BASIC_REFUSED_MS = 600_000;

/**
 * How long the privileges of an account are not read again: reading them can take a request for each account of the
 * BMC.
 */
const PRIVILEGES_MS = 3_600_000;

/**
 * For this long after a System or a Redfish service was read, its absence is taken for a BMC that is still starting.
 */
const SERVED_MS = 24 * 3_600_000;

/** For this long after the meter of an outlet was read, the outlet is known to have one. */
const METERED_MS = 7 * 24 * 3_600_000;

/** What earlier calls of this process have learned about BMCs. Everything in it is bounded by time or by number. */
export class BmcMemory {
  /** The cipher suites that have worked with each BMC over IPMI. */
  readonly provenSuites = new ProvenSuites();
  readonly possibleRestarts: PossibleRestarts;
  /** Origins that serve plain HTTP themselves and do not redirect elsewhere. */
  readonly plainHttpOrigins: ExpiringSet;
  /** Origins whose sessions are not at the usual path. */
  readonly unusualSessionPaths: ExpiringSet;
  /** Accounts whose basic authentication was refused after no session was free. */
  readonly basicRefused: ExpiringSet;
  /** Accounts for which no missing privilege was found. */
  readonly sufficientPrivileges: ExpiringSet;
  /** Origins that have served a Redfish resource. */
  readonly redfishOrigins: ExpiringSet;
  /** Hosts whose System was read. */
  readonly readSystems: ExpiringSet;
  /** The Reset action of Systems that may not show it while their host is off. */
  readonly resetActions = new ResetActions();
  /** Hosts that were ordered on, with any type of reset. */
  readonly orderedOn: ExpiringSet;

  /** Outlets of PDUs whose meter was read. */
  readonly meteredOutlets: ExpiringSet;

  constructor(clock: Clock) {
    this.possibleRestarts = new PossibleRestarts(clock);
    this.plainHttpOrigins = new ExpiringSet(clock, PLAIN_HTTP_MS);
    this.unusualSessionPaths = new ExpiringSet(clock, SESSIONS_PATH_MS);
    this.basicRefused = new ExpiringSet(clock, BASIC_REFUSED_MS);
    this.sufficientPrivileges = new ExpiringSet(clock, PRIVILEGES_MS);
    this.redfishOrigins = new ExpiringSet(clock, SERVED_MS);
    this.readSystems = new ExpiringSet(clock, SERVED_MS);
    this.meteredOutlets = new ExpiringSet(clock, METERED_MS);
    this.orderedOn = new ExpiringSet(clock, ON_SETTLE_MS);
  }
}
