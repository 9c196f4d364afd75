import { ProvenSuites } from "./ipmi/proven-suites.ts";
import { LoginBreaker } from "./login-breaker.ts";
import { Pace } from "./pace.ts";
import { Recent } from "./recent.ts";
import { ResetMemory } from "./redfish/reset-memory.ts";
import { Silences } from "./silences.ts";
import { Turn } from "./turn.ts";
import type { Clock } from "../runtime/clock.ts";

/** A host may still show Off for so long after it was ordered on: a push of its power button would turn it off again. */
const ON_SETTLE_MS = 60_000;

/** A plain HTTP address is looked at so often for a redirect, at a log-in. */
const PLAIN_MS = 3_600_000;

/** The service root says for so long where log-ins go. */
const ELSEWHERE_MS = 24 * 3_600_000;
/** Basic authentication that was refused is not tried again for so long, each time that no session is free. */
const NO_BASIC_MS = 600_000;

/** The permissions of an account are read this often: it can take a request for each account that the BMC has. */
const RIGHTS_MS = 3_600_000;

/** A BMC that starts may not know its System for a while, nor serve Redfish at all, though it has before. */
const SYSTEM_SEEN_MS = 24 * 3_600_000;

/** What all drivers of one process share, since a BMC does not care which of them speaks to it. */
export interface Shared {
  breaker: LoginBreaker;
  /** With which cipher suites BMCs have spoken IPMI. */
  provenSuites: ProvenSuites;
  /** At which logins begin, whatever BMC they are at. */
  pace: Pace;
  silences: Silences;
  /** Origins that answer by plain HTTP themselves, and send nobody elsewhere. */
  plain: Recent;
  /** Origins whose sessions are not at the usual place. */
  elsewhere: Recent;
  /** Accounts that were refused basic authentication, which was tried since no session was free. */
  noBasic: Recent;
  /** Accounts that nothing was found to keep from powering a host. */
  rights: Recent;
  /** Origins that have served a resource of Redfish. */
  served: Recent;
  /** Hosts whose System was read. */
  systems: Recent;
  /** How Systems are reset that may not show it while their host is off. */
  resets: ResetMemory;
  /** Hosts that were ordered on, by whatever type of reset. */
  ordersOn: Recent;
  /** The turns of one BMC: it gets one IPMI command, or one Redfish login, at a time. Held until `release`. */
  turnOf(bmc: string): { turn: Turn; release: () => void };
}

/** One for each clock: a process has one, and each simulation its own. */
const SHARED = new WeakMap<Clock, Shared>();

export function sharedOn(clock: Clock): Shared {
  const known = SHARED.get(clock);
  if (known !== undefined) return known;
  const turns = new Map<string, { turn: Turn; users: number }>();
  const shared: Shared = {
    breaker: new LoginBreaker(clock),
    provenSuites: new ProvenSuites(),
    pace: new Pace(clock),
    silences: new Silences(clock),
    plain: new Recent(clock, PLAIN_MS),
    elsewhere: new Recent(clock, ELSEWHERE_MS),
    noBasic: new Recent(clock, NO_BASIC_MS),
    rights: new Recent(clock, RIGHTS_MS),
    served: new Recent(clock, SYSTEM_SEEN_MS),
    systems: new Recent(clock, SYSTEM_SEEN_MS),
    resets: new ResetMemory(),
    ordersOn: new Recent(clock, ON_SETTLE_MS),
    turnOf: (bmc) => {
      const entry = turns.get(bmc) ?? { turn: new Turn(), users: 0 };
      turns.set(bmc, entry);
      entry.users += 1;
      const release = (): void => {
        entry.users -= 1;
        if (entry.users === 0) turns.delete(bmc);
      };
      return { turn: entry.turn, release };
    },
  };
  SHARED.set(clock, shared);
  return shared;
}
