import { BMC_STRAY_401, IPMI_SESSION, LOGIN_BREAKER, REDFISH_SESSION, TARGETS, WAIT_FOR_POWER } from "./killers.ts";
import { mutantsOf } from "./mutant.ts";
import type { Mutant } from "./mutant.ts";

const mutant = mutantsOf("src/bmc");

export const BMC_MUTANTS: readonly Mutant[] = [
  mutant(
    "suspended-leader-orders",
    "open-device",
    "no device is ordered without the lease, whatever its protocol",
    "open(config, { ...deps, mayOrder });",
    "open(config, { ...deps, mayOrder: () => mayOrder() || true });",
    "test/sim/stopped-leader.test.ts",
  ),
  mutant(
    "any-host-is-the-same",
    "driver",
    "who does not say what it said before may be another host",
    'if (verdicts.includes("Other") || (verdicts.includes("Unknown") && !isOff)) return "Other";',
    'if (verdicts.includes("Other")) return "Other";',
    REDFISH_SESSION,
  ),

  // A host of several devices.
  mutant(
    "half-off",
    "topology",
    "a host with several devices is off only where each says so",
    "if (off[0] !== undefined && off.length === devices) return off[0];",
    "if (off[0] !== undefined) return off[0];",
    TARGETS,
  ),
  mutant(
    "half-on",
    "topology",
    "a host with several devices is on again only where each says so",
    'values.length === level.length && values.every(({ state }) => state === "On")',
    'values.some(({ state }) => state === "On")',
    TARGETS,
  ),
  mutant(
    "twin-off-unseen",
    "topology",
    "an Off of any device of a host that is to be on counts, whatever the others say",
    'readings.find(({ state }) => state === "Off") ?? readings.find(',
    "readings.find(",
    TARGETS,
  ),
  mutant(
    "heard-beside-refusal",
    "topology",
    "an order that one device may have heard is not refused because another device says so",
    '[["Timeout", "BadResponse"], ["Unreachable"], ["Busy"]]',
    '[["Timeout", "BadResponse"], ["Unreachable"]]',
    "test/unit/bmc/topology.test.ts",
  ),
  mutant(
    "other-host-passed-over",
    "topology",
    "another host on one level is not made up for by the next level",
    'if (verdict.verified || verdict.reason === "Mismatch") return verdict;',
    "if (verdict.verified) return verdict;",
    TARGETS,
  ),
  mutant(
    "unverified-level-read",
    "topology",
    "no Off counts of a level that nobody can tell whose it is",
    "        if (!verdict.verified) {\n          unknown ??=",
    '        if (!verdict.verified && verdict.reason === "Mismatch") {\n          unknown ??=',
    TARGETS,
  ),
  mutant(
    "unverified-host-network-booted",
    "topology",
    "no host is told to boot from the network that was not verified",
    "else await this.#requireVerified(level, signal);",
    "else await this.#refuseWrongHost(level, signal);",
    TARGETS,
  ),
  mutant(
    "first-judge-for-ever",
    "topology",
    "a host is judged by what its node says now",
    "    this.#judge = judge;\n    this.#verdicts.clear();",
    "    this.#verdicts.clear();",
    TARGETS,
  ),
  mutant(
    "silent-twin-verified",
    "topology",
    "a level is verified only once each of its devices has told who it is",
    "if (failure !== undefined && !mismatch) throw failure;",
    "if (failure !== undefined && values.length === 0) throw failure;",
    TARGETS,
  ),

  // Off is off only when it is proven.
  mutant(
    "one-read-proves",
    "wait-for-power",
    "one reading proves nothing",
    "if (last.state === want && count >= freshReads)",
    "if (last.state === want && count >= freshReads - 1)",
    WAIT_FOR_POWER,
  ),
  mutant(
    "failed-read-keeps-count",
    "wait-for-power",
    "a failed reading starts the count anew",
    "      count = 0;\n      error = asBmcError",
    "      error = asBmcError",
    WAIT_FOR_POWER,
  ),
  mutant(
    "silence-forgotten",
    "recent",
    "a BMC that was silent may have restarted: its Off is not believed for a while",
    "return atMs !== undefined && this.#clock.monotonicMs() - atMs < this.#forMs;",
    "return atMs !== undefined && this.#clock.monotonicMs() - atMs < 0;",
    IPMI_SESSION,
  ),

  // Accounts, which BMCs lock, and passwords.
  mutant(
    "strays-without-end",
    "login-breaker",
    "a login that has worked is tried three times at most once it is refused",
    "isRecent && isSame(success, login) && success.strays < STRAYS_MAX",
    "isRecent && isSame(success, login) && success.strays >= 0",
    BMC_STRAY_401,
  ),
  mutant(
    "stray-of-another-login",
    "login-breaker",
    "a login that has not worked is tried once, whatever other one has",
    "if (isRecent && isSame(success, login) &&",
    "if (isRecent &&",
    BMC_STRAY_401,
  ),
  mutant(
    "refused-login-again",
    "login-breaker",
    "a log-in that was refused is not tried again for a while",
    "    if (same !== undefined) {",
    "    if (same === null) {",
    LOGIN_BREAKER,
  ),
  mutant(
    "many-refused-logins",
    "login-breaker",
    "after three different log-ins that were refused none is tried for a while",
    "if (paused.length >= REFUSED_LOGINS_MAX) {",
    "if (paused.length > REFUSED_LOGINS_MAX) {",
    LOGIN_BREAKER,
  ),
  mutant(
    "refusal-forgotten-by-acceptance",
    "login-breaker",
    "that one log-in is accepted says nothing of another that was refused",
    "const others = this.#of(bmc).filter((refusal) => !isSame(refusal, login));",
    "const others: readonly Refusal[] = [];",
    LOGIN_BREAKER,
  ),
  mutant(
    "password-in-address-told",
    "address",
    "an address that may hold a password is not repeated",
    'if (text.includes("@")) {',
    'if (text.includes("@@")) {',
    "test/unit/bmc/address.test.ts",
  ),
];
