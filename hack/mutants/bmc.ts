import { BMC_LEASE, TARGETS } from "./killers.ts";
import { mutantsOf } from "./mutant.ts";
import type { Mutant } from "./mutant.ts";

const mutant = mutantsOf("src/bmc");

export const BMC_MUTANTS: readonly Mutant[] = [
  // The lease.
  mutant(
    "suspended-leader-orders",
    "open-device",
    "no device is ordered without the lease, whatever its protocol",
    "open(config, { ...deps, mayOrder });",
    "open(config, { ...deps, mayOrder: () => mayOrder() || true });",
    "test/sim/stopped-leader.test.ts",
  ),
  mutant(
    "suspended-leader-orders-redfish",
    "redfish/service",
    "no order goes to a BMC without the lease (Redfish)",
    "if (!isRead && !this.#mayOrder()) throw",
    "if (isRead && !this.#mayOrder()) throw",
    BMC_LEASE,
  ),
  mutant(
    "suspended-leader-orders-ipmi",
    "ipmi/channel",
    "no order is sent again to a BMC without the lease (IPMI)",
    "if (exchange.mayTransmit?.() === false) {",
    "if (transmissions === 0 && exchange.mayTransmit?.() === false) {",
    BMC_LEASE,
  ),

  // What BMCs say.
  mutant(
    "relogin-unidentified",
    "ipmi/ipmi-driver",
    "no order goes to, and no Off is believed of, a host that a new log-in may have led to (IPMI)",
    "if (this.#known === undefined || this.#known.session === session) return session;",
    "if (this.#known !== undefined || session.silentMs >= 0) return session;",
    "test/integration/ipmi-session.test.ts",
  ),
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
    "powering-off-is-off",
    "redfish/system",
    "a host that is powering off may still write",
    '["PoweringOff", "Changing"],',
    '["PoweringOff", "Off"],',
    "test/unit/bmc/redfish-parsers.test.ts",
  ),
];
