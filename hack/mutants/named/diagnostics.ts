import { mutantsOf } from "./mutant.ts";
import type { Mutant } from "./mutant.ts";

const SIM = "test/sim/crash-dump.test.ts";
const DRIVERS = "test/integration/bmc-nmi.test.ts";
const EFFECTS = "test/unit/remediator/effects/power/device-effects.test.ts";
const remediator = mutantsOf("src/remediator");
const bmc = mutantsOf("src/bmc");

export const DIAGNOSTICS_MUTANTS: readonly Mutant[] = [
  remediator(
    "dump-ordered-again",
    "machine/rules/diagnosis/diagnostics",
    "a remediation orders one NMI at most, also if another agent stored the order",
    "if (status.diagnostics !== undefined) return undefined;",
    'if (status.diagnostics?.result === "Sent") return undefined;',
    SIM,
  ),
  remediator(
    "dump-after-power-off",
    "machine/rules/diagnosis/diagnostics",
    "no NMI after the first power-off",
    'if (attempt.action !== "None" || isEarly(snapshot)) return undefined;',
    "if (isEarly(snapshot)) return undefined;",
    SIM,
  ),
  remediator(
    "dump-without-bound",
    "machine/rules/diagnosis/diagnostics",
    "the power-off waits no longer for a crash dump than the strategy says",
    "return Math.min(remainingMs - (attempt.deadlineMs - endsAtMs), strategy.diagnosticsTimeoutMs);",
    "return Math.max(remainingMs - (attempt.deadlineMs - endsAtMs), strategy.diagnosticsTimeoutMs);",
    SIM,
  ),
  remediator(
    "dump-by-leader-clock",
    "controller/session/session",
    "a leader whose clock is behind waits no longer for a crash dump",
    "const mostMs = isDumping ? dumpMs : longestMs + DEVICE_FINAL_RETRY_MS;",
    "const mostMs = longestMs + DEVICE_FINAL_RETRY_MS;",
    SIM,
  ),
  remediator(
    "dump-awaited-unsent",
    "machine/rules/diagnosis/diagnostics",
    "the power-off waits for no crash dump if no NMI was sent",
    "const at = isSent ? endsAtMs : now.epochMs;",
    "const at = endsAtMs;",
    SIM,
  ),
  remediator(
    "dump-outlasts-return",
    "machine/rules/diagnosis/diagnostics",
    "a node that is Ready in a new boot after its crash dump ends the wait and the remediation",
    "if (isReady(node)) return ensureDeviceUsable(snapshot, now) ?? endIfReturned(snapshot, now);",
    "if (isReady(node)) return wait(snapshot, leftMs);",
    SIM,
  ),
  remediator(
    "nmi-unstored",
    "effects/power/send-once",
    "no NMI is sent that the API server has not stored",
    "if (!order.isStored) return notSent(",
    "if (host === undefined) return notSent(",
    EFFECTS,
  ),
  remediator(
    "nmi-while-held",
    "effects/power/send-once",
    "what holds the power-off holds the NMI",
    "if (found !== undefined) return notSent(",
    'if (found === "HostChanged") return notSent(',
    EFFECTS,
  ),
  bmc(
    "nmi-to-off-host",
    "devices/send-once",
    "only a host that reads On gets an NMI",
    "if (state !== needs) return",
    'if (state !== needs && needs === "Off") return',
    DRIVERS,
  ),
  bmc(
    "nmi-to-other-host",
    "devices/send-once",
    "a device of which no identity is accepted sends no NMI",
    "await requireVerified(signal);",
    "",
    DRIVERS,
  ),
  bmc(
    "order-by-old-identity",
    "devices/topology",
    "who the host is, is read again between the reading of its power and an order that is sent once",
    "this.#identities.forget(level);\n    await this.#identities.requireVerified(level, signal);",
    "await this.#identities.requireVerified(level, signal);",
    DRIVERS,
  ),
  bmc(
    "nmi-by-two-devices",
    "devices/send-once",
    "no second device sends an NMI after one that may have sent it",
    "if (isHandedOver && !NOT_TAKEN.has(failure.code)) return",
    'if (isHandedOver && failure.code === "Timeout") return',
    DRIVERS,
  ),
  bmc(
    "nmi-unlisted",
    "redfish/orders/power-orders",
    "no reset type Nmi is sent that the service does not list",
    "allowed?.includes(NMI_RESET_TYPE) !== true",
    "allowed?.includes(NMI_RESET_TYPE) === false",
    DRIVERS,
  ),
  bmc(
    "nmi-retransmitted",
    "ipmi/session/client",
    "an NMI over IPMI is transmitted once",
    "isSentOnce ? [this.#answerTimeoutMs] : orderWaits(this.#answerTimeoutMs)",
    "orderWaits(this.#answerTimeoutMs)",
    DRIVERS,
  ),
];
