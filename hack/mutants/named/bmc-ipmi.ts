import { IPMI_HOST, IPMI_SESSION } from "./killers.ts";
import { mutantsOf } from "./mutant.ts";
import type { Mutant } from "./mutant.ts";

const mutant = mutantsOf("src/bmc/ipmi");

export const BMC_IPMI_MUTANTS: readonly Mutant[] = [
  // No refusal that any machine could have sent weakens the protection of the session.
  mutant(
    "talked-down-suite",
    "../gate/memory/proven-suites",
    "no cipher suite is tried that is weaker than the one that has worked with this BMC (IPMI)",
    "return index === -1 ? suites : suites.slice(0, index + 1);",
    "return index === -1 ? suites : suites.slice(0);",
    "test/integration/ipmi-power.test.ts",
  ),
  // Orders are sent only with permission, to the right host, and once.
  mutant(
    "relogin-unidentified",
    "ipmi-driver",
    "after a new login, the identity is checked before an order is sent or an Off counts (IPMI)",
    "if (this.#known === undefined || this.#known.session === session) return session;",
    "if (this.#known !== undefined || session.silentMs >= 0) return session;",
    IPMI_SESSION,
  ),
  mutant(
    "network-boot-for-ever-ipmi",
    "commands/chassis",
    "a network boot is set for one boot: with a permanent one every boot would install the host again (IPMI)",
    'const flags = override === "None" ? [0, 0] : [VALID |',
    'const flags = override === "None" ? [0, 0] : [VALID | 0x40 |',
    IPMI_HOST,
  ),

  // Off is off only when it is proven, by the BMC itself.
  mutant(
    "restarted-bmc-believed-ipmi",
    "ipmi-driver",
    "an Off of a BMC that may just have restarted does not count (IPMI)",
    "else if (this.#client.mayHaveRestarted) {",
    'else if (this.#client.mayHaveRestarted && reading.raw === "") {',
    IPMI_SESSION,
  ),
  mutant(
    "unproven-bmc",
    "session/login",
    "a BMC that does not know the password does not get our proof of it",
    "if (!rakp.provesPassword(console, answer, answer.code)) {",
    "if (answer.code.length === 0) {",
    IPMI_SESSION,
  ),
  mutant(
    "unproven-key",
    "session/login",
    "a session is open only once the BMC has proven its key",
    "if (rakp.provesSessionKey(console, bmc, key, answer.code)) return;",
    "if (answer.code.length > 0) return;",
    "test/integration/ipmi-wire.test.ts",
  ),
];
