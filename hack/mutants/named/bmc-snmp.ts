import { mutantsOf } from "./mutant.ts";
import type { Mutant } from "./mutant.ts";

const mutant = mutantsOf("src/bmc/snmp");
const target = mutantsOf("src/remediator/hosts/fencing-target");
const POWER = "test/integration/snmp-power.test.ts";
const STATUS = "test/unit/bmc/snmp/outlet-status.test.ts";
const TARGETS = "test/unit/remediator/hosts/fencing-target/fencing-target.test.ts";

export const BMC_SNMP_MUTANTS: readonly Mutant[] = [
  mutant(
    "snmp-unauthenticated-believed",
    "session/guarded-socket",
    "an answer of a PDU that is not authenticated proves nothing",
    'if (isEncrypted || report === undefined) return "not authenticated";',
    "if (isEncrypted || report === undefined) return undefined;",
    POWER,
  ),
  mutant(
    "snmp-other-engine-believed",
    "session/guarded-socket",
    "a signed answer counts only with the engine ID for which its key was made",
    'if (engineId !== this.#engineId) return "of another SNMP engine";',
    "if (engineId === undefined) return undefined;",
    "test/unit/bmc/snmp/guarded-socket.test.ts",
  ),
  mutant(
    "snmp-order-repeated",
    "session/guarded-socket",
    "an order to an outlet leaves the process once, whatever the PDU asks for",
    "order.isSent = true;",
    "order.isSent = false;",
    "test/unit/bmc/snmp/guarded-socket.test.ts",
  ),
  mutant(
    "snmp-order-without-lease",
    "session/guarded-socket",
    "no order to an outlet is sent by a process that has lost its lease",
    "if (!order.mayTransmit()) return orderNotAllowed(order.what);",
    "",
    POWER,
  ),
  mutant(
    "snmp-load-is-off",
    "outlet-status",
    "an outlet whose meter shows power is not off",
    'if (meter.kind === "value" && meter.value !== 0) {',
    'if (meter.kind === "value" && meter.value === -1) {',
    POWER,
  ),
  mutant(
    "snmp-lost-meter-is-off",
    "outlet-status",
    "an outlet whose meter was read once is not off without it",
    'if (meter.kind === "none" && wasMetered) {',
    'if (meter.kind === "none" && meter !== undefined && !wasMetered) {',
    POWER,
    STATUS,
  ),
  mutant(
    "snmp-unreadable-meter-is-off",
    "outlet-status",
    "an outlet whose meter cannot be read is not off",
    'if (meter.kind === "unreadable") return { state: "Unknown"',
    'if (meter.kind === "unreadable") return { state: "Off"',
    STATUS,
  ),
  mutant(
    "snmp-pending-is-off",
    "outlet-status",
    "an outlet with a pending command is not off",
    'const changing = conditions.find((condition) => condition.means === "Changing");',
    'const changing = conditions.find((condition) => condition.text === "");',
    POWER,
    STATUS,
  ),
  mutant(
    "snmp-doubtful-is-off",
    "outlet-status",
    "an outlet whose PDU doubts the state itself is not off",
    'const doubtful = conditions.find((condition) => condition.means === "Doubtful");',
    'const doubtful = conditions.find((condition) => condition.text === "");',
    STATUS,
  ),
  mutant(
    "snmp-young-pdu-believed",
    "outlet-status",
    "an Off of a PDU that has just started does not count",
    "if (upMs < PDU_SETTLE_MS) {",
    "if (upMs < 0) {",
    POWER,
  ),
  mutant(
    "snmp-other-pdu-believed",
    "snmp-driver",
    "an Off of another PDU than the one that was identified does not count",
    "return status.pdu === (this.#pdu ?? status.pdu) ? status.reading",
    "return status.pdu !== undefined ? status.reading",
    POWER,
  ),
  mutant(
    "snmp-other-pdu-switched",
    "snmp-driver",
    "no order goes to another PDU than the one that was identified",
    "if (status.pdu !== (this.#pdu ?? status.pdu)) throw",
    'if (status.pdu === "") throw',
    POWER,
  ),
  mutant(
    "snmp-answers-swapped",
    "session/decode",
    "values of a PDU count only for the objects that were asked for",
    "varbinds.every(({ oid }, at) => oid === oids[at])",
    "varbinds.every(({ oid }) => oid !== undefined)",
    STATUS,
  ),
  target(
    "snmp-plain-text-unasked",
    "devices",
    "an outlet is spoken to in plain text only if its device says so",
    "if (!isV2c(device) || device.snmp?.allowPlainText === true) return;",
    "if (!isV2c(device) || device.allowPlainHTTP !== null) return;",
    TARGETS,
  ),
];
