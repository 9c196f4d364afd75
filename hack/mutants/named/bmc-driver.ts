import { mutantsOf } from "./mutant.ts";
import type { Mutant } from "./mutant.ts";

const mutant = mutantsOf("src/bmc/http-driver");
const devices = mutantsOf("src/bmc/devices");
const command = mutantsOf("src/cli/commands");
const CERTIFICATE = "test/integration/driver-certificate.test.ts";
const POWER = "test/integration/driver-power.test.ts";

export const BMC_DRIVER_MUTANTS: readonly Mutant[] = [
  mutant(
    "driver-replayed-off",
    "signature",
    "an answer of a driver server to an earlier request proves nothing",
    'return timingSafeEqual(Buffer.from(signature, "hex"), Buffer.from(expected, "hex"));',
    "return expected.length === signature.length;",
    POWER,
  ),
  mutant(
    "driver-unsigned-believed",
    "answers",
    "an answer that is not proven to be for its request does not count as a reading (driver server)",
    "if (isProven) {",
    "if (isProven || status === 200) {",
    POWER,
  ),
  mutant(
    "driver-earlier-answer-by-certificate",
    "signed-client",
    "an answer to an earlier request proves nothing if a client certificate replaces signatures",
    "? answer.header(HEADERS.nonce) === nonce",
    '? (answer.header(HEADERS.nonce) ?? "").length === nonce.length',
    CERTIFICATE,
  ),
  mutant(
    "driver-certificate-unverified-server",
    "login",
    "an answer counts only if the driver server signs it or its certificate is verified",
    "if (tls.insecureSkipVerify && tls.sha256Fingerprint === undefined) {",
    'if (tls.insecureSkipVerify && tls.sha256Fingerprint === "") {',
    CERTIFICATE,
  ),
  mutant(
    "driver-certificate-over-http",
    "login",
    "nothing is trusted over plain HTTP for a client certificate (driver server)",
    'if (!origin.startsWith("https:")) {',
    'if (!origin.startsWith("http")) {',
    CERTIFICATE,
  ),
  mutant(
    "driver-key-dropped",
    "login",
    "a key still signs if there is a client certificate as well (driver server)",
    'if (certificate !== undefined && password.reveal() === "") {',
    "if (certificate !== undefined) {",
    CERTIFICATE,
  ),
  devices(
    "override-left-on-bmc",
    "topology",
    "a boot override of a BMC is cleared even if another device of the host has none",
    "every((driver) => driver.hasNoBootOverride === true)",
    "some((driver) => driver.hasNoBootOverride === true)",
    "test/unit/bmc/devices/topology.test.ts",
  ),
  devices(
    "off-for-no-override",
    "topology",
    "a host does not stay off because none of its devices supports a boot override",
    'if (override === "None" && this.#hasNoBootOverride) return;',
    'if (override === "NetworkOnce" && this.#hasNoBootOverride) return;',
    "test/unit/bmc/devices/topology.test.ts",
  ),
  mutant(
    "driver-state-in-any-case",
    "answers",
    "only the states of the contract count (driver server)",
    'state: state === "Off" ||',
    'state: state.startsWith("Off") ? "Off" : state.toLowerCase() === "off" ? "Off" :',
    POWER,
  ),
  mutant(
    "driver-off-of-another-host",
    "http-driver",
    "an Off counts only if it is of the identified host (driver server)",
    'if (!this.#isKnown(identity, reading.state === "Off")) return {',
    'if (reading.state !== "Off" && !this.#isKnown(identity, false)) return {',
    POWER,
  ),
  mutant(
    "driver-order-to-another-host",
    "http-driver",
    "an order goes only to the identified host (driver server)",
    'if (!this.#isKnown(identity, reading.state === "Off")) {',
    'if (reading.state === "Unknown") {',
    POWER,
  ),
  mutant(
    "driver-order-without-identity",
    "http-driver",
    "an order names its host (driver server)",
    "const body = JSON.stringify({ systemUUID, serialNumber });",
    'const body = systemUUID === serialNumber ? "" : "{}";',
    POWER,
  ),
  mutant(
    "driver-restart-believed",
    "http-driver",
    "an Off of a driver server that may just have restarted does not count",
    'else if (reading.state === "Off" && possibleRestarts.has(this.#address.key)) {',
    'else if (reading.state === "Changing" && possibleRestarts.has(this.#address.key)) {',
    POWER,
  ),
  mutant(
    "driver-order-after-lease",
    "http-driver",
    "a process without its lease sends no order to a driver server",
    "if (this.#deps.isOrderAllowed?.() === false) throw orderNotAllowed(what);",
    "if (this.#deps.isOrderAllowed?.() === undefined) what.trim();",
    POWER,
  ),
  command(
    "driver-check-unasked",
    "driver",
    "a check of a driver server powers no host before the user has agreed",
    "await confirm(this, `check the driver server at ${address.text}`, [concern], agreed);",
    "await confirm(this, `check the driver server at ${address.text}`, [], agreed || concern.length > 0);",
    "test/integration/cli-driver.test.ts",
  ),
];
