import { BMC_STRAY_401, IDENTITY, IPMI_SESSION, LOGIN_BREAKER, TARGETS, WAIT_FOR_POWER } from "./killers.ts";
import { mutantsOf } from "./mutant.ts";
import type { Mutant } from "./mutant.ts";

const mutant = mutantsOf("src/bmc");

export const BMC_MUTANTS: readonly Mutant[] = [
  mutant(
    "suspended-leader-orders",
    "devices/open-device",
    "no device is ordered without the lease, whatever its protocol",
    "open(config, { ...deps, isOrderAllowed });",
    "open(config, { ...deps, isOrderAllowed: () => isOrderAllowed() || true });",
    "test/sim/stopped-leader.test.ts",
  ),
  mutant(
    "bmc-writes-to-terminals",
    "interface/errors",
    "no control character of a BMC reaches a status, an Event or a terminal",
    "super(printable(message), options);",
    "super(message, options);",
    "test/unit/runtime/text/printable.test.ts",
  ),
  mutant(
    "placeholder-uuid-identifies",
    "identity/placeholders",
    "a UUID that boards share identifies none of them",
    "return isPlaceholderUuid(uuid) || isPlaceholderUuid(swapUuid(uuid)) ? undefined : uuid;",
    "return uuid;",
    IDENTITY,
  ),
  mutant(
    "placeholder-uuid-turned-identifies",
    "identity/placeholders",
    "a UUID that boards share also identifies none of them in the other byte order",
    "return isPlaceholderUuid(uuid) || isPlaceholderUuid(swapUuid(uuid)) ? undefined : uuid;",
    "return isPlaceholderUuid(uuid) ? undefined : uuid;",
    IDENTITY,
  ),
  mutant(
    "placeholder-serial-identifies",
    "identity/placeholders",
    "a serial number that firmware fills in identifies no host",
    "return serial === undefined || isPlaceholderSerial(serial) ? undefined : serial;",
    'return serial === undefined || isPlaceholderSerial("") ? undefined : serial;',
    IDENTITY,
  ),

  // A host of several devices.
  mutant(
    "half-off",
    "topology/level-readings",
    "a host with several devices is off only if each shows Off",
    "if (off[0] !== undefined && off.length === devices) {",
    "if (off[0] !== undefined) {",
    TARGETS,
  ),
  mutant(
    "twin-off-unseen",
    "topology/whole-power",
    "if a host should be on, an Off of any of its devices counts, whatever the others show",
    'readings.find(({ state }) => state === "Off") ?? readings.find(',
    "readings.find(",
    TARGETS,
  ),
  mutant(
    "heard-beside-refusal",
    "topology/level-calls",
    "an order that one device may have received is not reported as refused because another device refuses it",
    '[["Timeout", "BadResponse"], ["Unreachable"], ["Busy"]]',
    '[["Timeout", "BadResponse"], ["Unreachable"]]',
    "test/unit/bmc/topology/topology.test.ts",
  ),
  mutant(
    "unverified-host-network-booted",
    "topology/boot-override",
    "no network boot is set for a host that was not verified",
    "else await this.#identities.requireVerified(level, signal);",
    "else await this.#identities.refuseWrongHost(level, signal);",
    TARGETS,
  ),
  mutant(
    "first-judge-for-ever",
    "topology/level-identities",
    "an identity is judged by what the node reports now",
    "    this.#judge = judge;\n    this.#checks.clear();",
    "    this.#checks.clear();",
    TARGETS,
  ),

  // Off is off only when it is proven.
  mutant(
    "failed-read-keeps-count",
    "devices/wait-for-power",
    "a failed reading restarts the count of Off readings",
    "      count = 0;\n      error = asBmcError",
    "      error = asBmcError",
    WAIT_FOR_POWER,
  ),
  mutant(
    "silence-forgotten",
    "gate/memory/expiring-set",
    "an Off of a BMC that did not answer does not count for a while, because the BMC may have restarted",
    "return addedAtMs !== undefined && this.#clock.monotonicMs() - addedAtMs < this.#ttlMs;",
    "return addedAtMs !== undefined && this.#clock.monotonicMs() - addedAtMs < 0;",
    IPMI_SESSION,
  ),

  // Accounts, which BMCs lock, and passwords.
  mutant(
    "stray-of-another-login",
    "gate/limits/login-breaker",
    "a login that has never worked is tried only once, even if another login has worked",
    "if (isRecent && sameCredentials(success, login) &&",
    "if (isRecent &&",
    BMC_STRAY_401,
  ),
  mutant(
    "stray-of-one-of-two-users",
    "gate/limits/login-breaker",
    "a spurious 401 is tolerated for each user of a BMC that has worked",
    "  return `${bmc} ${username}`;",
    "  return `${bmc} ${typeof username}`;",
    BMC_STRAY_401,
  ),
  mutant(
    "refusal-forgotten-by-acceptance",
    "gate/limits/login-breaker",
    "an accepted login says nothing about another login that was refused",
    "const others = this.#of(bmc).filter((refusal) => !sameCredentials(refusal, login));",
    "const others: readonly Refusal[] = [];",
    LOGIN_BREAKER,
  ),
];
