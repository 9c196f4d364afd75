import { BmcMemory } from "./memory/bmc-memory.ts";
import { CallLimits } from "./limits/call-limits.ts";
import { LoginBreaker } from "./limits/login-breaker.ts";
import { LoginThrottle } from "./limits/login-throttle.ts";
import { KeyedMutexes } from "./limits/mutex.ts";
import { Precedence } from "./limits/precedence.ts";
import { SecureContexts } from "./secure-contexts.ts";
import type { Clock } from "../../runtime/clock.ts";

/**
 * What every driver of a process goes through before it talks to a BMC. A BMC does not distinguish between drivers, so
 * all drivers share one BMC gate. The entry point creates it, and each driver gets it when it is opened.
 */
export class BmcGate {
  /** Bounds the concurrent calls to one host and to one BMC. */
  readonly callLimits = new CallLimits();
  /** Stops logins that a BMC refused a short time ago. */
  readonly loginBreaker: LoginBreaker;
  /** Spreads the starts of logins, whatever BMC they go to. */
  readonly loginThrottle: LoginThrottle;
  /** One mutex for each BMC, so that the BMC gets one IPMI command or one Redfish login at a time. */
  readonly mutexes = new KeyedMutexes();
  readonly secureContexts = new SecureContexts();
  readonly memory: BmcMemory;
  /** Lets the calls to each BMC take precedence over the reading of evidence. */
  readonly precedence: Precedence;

  constructor(clock: Clock) {
    this.precedence = new Precedence(clock);
    this.loginBreaker = new LoginBreaker(clock);
    this.loginThrottle = new LoginThrottle(clock);
    this.memory = new BmcMemory(clock);
  }
}
