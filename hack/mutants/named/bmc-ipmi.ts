import { BMC_LEASE, IPMI_CODEC, IPMI_HOST, IPMI_SESSION } from "./killers.ts";
import { mutantsOf } from "./mutant.ts";
import type { Mutant } from "./mutant.ts";

const mutant = mutantsOf("src/bmc/ipmi");

export const BMC_IPMI_MUTANTS: readonly Mutant[] = [
  // No refusal that anybody could have sent weakens what protects the session.
  mutant(
    "talked-down-suite",
    "proven-suites",
    "no weaker cipher suite is tried than has worked with this BMC (IPMI)",
    "return index === -1 ? suites : suites.slice(0, index + 1);",
    "return index === -1 ? suites : suites.slice(0);",
    "test/integration/ipmi-power.test.ts",
  ),
  // No order but by right, to the right host, once.
  mutant(
    "suspended-leader-orders-ipmi",
    "channel",
    "no order is sent again to a BMC without the lease (IPMI)",
    "if (exchange.mayTransmit?.() === false) {",
    "if (transmissions === 0 && exchange.mayTransmit?.() === false) {",
    BMC_LEASE,
  ),
  mutant(
    "relogin-unidentified",
    "ipmi-driver",
    "no order goes to, and no Off is believed of, a host that a new log-in may have led to (IPMI)",
    "if (this.#known === undefined || this.#known.session === session) return session;",
    "if (this.#known !== undefined || session.silentMs >= 0) return session;",
    IPMI_SESSION,
  ),
  mutant(
    "order-copies-outlive-it",
    "client",
    "an order that was sent more than once ends its session: no copy of it comes late",
    "if (transmissions > 1) await this.#end(session);",
    "",
    "test/integration/ipmi-wire.test.ts",
  ),
  mutant(
    "lost-order-keeps-session",
    "client",
    "an order whose answer never came ends its session: no copy of it comes late",
    '      this.#giveUp(session, error);\n      if (!(error instanceof BmcError) || error.code === "Aborted") throw error;',
    '      if (!(error instanceof BmcError) || error.code === "Aborted") throw error;',
    "test/integration/ipmi-wire.test.ts",
  ),
  mutant(
    "lost-order-was-not-sent",
    "client",
    "an order whose answer is lost may have been carried out, whatever it failed with",
    'if (!(error instanceof BmcError) || error.code === "Aborted") throw error;',
    'if (!(error instanceof BmcError) || error.code !== "Timeout") throw error;',
    IPMI_SESSION,
  ),
  mutant(
    "refused-order-is-success-ipmi",
    "ipmi-driver",
    "an order that is refused is none, unless the host is there already (IPMI)",
    "if (heard && (await this.#readPower(what, signal)).state === wanted) return;",
    "if (heard) return;",
    "test/integration/ipmi-power.test.ts",
  ),
  mutant(
    "network-boot-for-ever-ipmi",
    "chassis",
    "a host is told to boot from the network once: at every boot it would be installed anew (IPMI)",
    'const flags = override === "None" ? [0, 0] : [VALID |',
    'const flags = override === "None" ? [0, 0] : [VALID | 0x40 |',
    IPMI_HOST,
  ),

  // Off is off only when it is proven, by the BMC itself.
  mutant(
    "short-status-read",
    "chassis",
    "a status that is cut short is no reading",
    "if (power === undefined || data.length < 3) return undefined;",
    "if (power === undefined) return undefined;",
    IPMI_HOST,
  ),
  mutant(
    "restarted-bmc-believed-ipmi",
    "ipmi-driver",
    "an Off of a BMC that may just have restarted is none (IPMI)",
    "else if (this.#client.mayHaveRestarted) {",
    'else if (this.#client.mayHaveRestarted && reading.raw === "") {',
    IPMI_SESSION,
  ),
  mutant(
    "unheard-login-forgotten-ipmi",
    "client",
    "a BMC that did not hear a log-in may have restarted, whoever tells it (IPMI)",
    "      this.#noteSilence(error);\n      if (this.#session === session)",
    "      if (this.#session === session)",
    IPMI_SESSION,
  ),
  mutant(
    "replayed-answer",
    "sequence-window",
    "a message counts once: an old Off is not heard again",
    "    if ((this.#received & bit) !== 0) return false;\n",
    "",
    IPMI_CODEC,
  ),
  mutant(
    "old-answer",
    "sequence-window",
    "a message from far behind the newest is an old one",
    "    if (-ahead >= WINDOW) return false;\n",
    "",
    IPMI_CODEC,
  ),
  mutant(
    "unsigned-answer",
    "sealed",
    "a message counts only by its authentication code",
    "if (!timingSafeEqual(datagram.subarray(coveredEnd), integrityCode(keys, covered))) {",
    "if (integrityCode(keys, covered).length === 0) {",
    IPMI_CODEC,
  ),
  mutant(
    "unproven-bmc",
    "login",
    "a BMC that does not know the password is not told our proof of it",
    "if (!rakp.provesPassword(console, answer, answer.code)) {",
    "if (answer.code.length === 0) {",
    IPMI_SESSION,
  ),
  mutant(
    "unproven-key",
    "login",
    "a session is open only once the BMC has proven its key",
    "if (rakp.provesSessionKey(console, bmc, key, answer.code)) return;",
    "if (answer.code.length > 0) return;",
    "test/integration/ipmi-wire.test.ts",
  ),
];
