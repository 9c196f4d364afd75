import { NOW, ordered, READ_OFF, READ_ON } from "../snapshots.ts";
import { CAME_BACK, cameBack, CUT_OFF, CUT_OFF_BY_GATEWAY, UNKNOWN } from "./fixtures.ts";
import type { Step } from "./situations.ts";
import { poweringOff } from "./situations.ts";

/** What a remediation in PoweringOff does about a node that came back by itself. */
export const POWERING_OFF_RETURNED_STEPS: readonly Step[] = [
  {
    name: "a node that comes back while the BMC refuses the order is left alone",
    given: cameBack({}),
    expected: "→ Restoring (Recovered)",
  },
  {
    name: "the power is read before a node that came back is left alone, if the connection broke during the order",
    given: cameBack({ order: CUT_OFF }),
    expected: "readPower",
  },
  {
    name: "the power is read before a node that came back is left alone, if the order was answered with 503",
    given: cameBack({ order: CUT_OFF_BY_GATEWAY }),
    expected: "readPower",
  },
  {
    name: "the power is read before a node that came back is left alone, if the connection broke during an earlier order",
    given: cameBack({ order: { ...ordered("Rejected", 3_000), earlierEffectAtMs: CUT_OFF.atMs } }),
    expected: "readPower",
  },
  {
    name: "a node that came back is not left alone while an order whose connection broke can still take effect",
    given: cameBack({ order: CUT_OFF, power: READ_ON }),
    expected: "wait",
  },
  {
    name: "a node that came back is left alone once an order whose connection broke cannot take effect any more",
    given: cameBack({ order: { ...CUT_OFF, atMs: NOW.monotonicMs - 126_000 }, power: READ_ON }),
    expected: "→ Restoring (Recovered)",
  },
  {
    name: "the time in which an order can take effect counts from the one that may have been received, not from a refused one after it",
    given: cameBack({
      order: { ...ordered("Rejected", 3_000), earlierEffectAtMs: NOW.monotonicMs - 126_000 },
      power: READ_ON,
    }),
    expected: "→ Restoring (Recovered)",
  },
  {
    name: "a node that came back is not left alone while the power state of its host is unknown",
    given: cameBack({ order: CUT_OFF, power: UNKNOWN }),
    expected: "wait",
  },
  {
    name: "a node that came back is still powered off while its host reads Off",
    given: cameBack({ order: CUT_OFF, power: READ_OFF }),
    expected: "stay (PoweringOffAgain), forceOff",
  },
  {
    name: "a node that came back is still powered off if an earlier order may have taken effect",
    given: { ...cameBack({}), attempt: { sent: false, orders: 2 } },
    expected: "stay (PoweringOffAgain), forceOff",
  },
  {
    name: "a node that is Ready again is powered off if an earlier power cycle may have taken effect",
    given: poweringOff({
      attempt: { sent: false },
      taint: "cleared",
      examined: "NotReady",
      identity: "verified",
      observations: { marksCleared: true, order: ordered("Rejected", 3_000) },
      nodeNow: "Ready",
      status: { ...CAME_BACK, retryCount: 1 },
    }),
    expected: "stay (PoweringOffAgain), forceOff",
  },
  {
    name: "a node that is Ready after an accepted order is powered off again",
    given: poweringOff({
      taint: "cleared",
      read: "On",
      identity: "verified",
      examined: "Ready",
      observations: { order: ordered("Acknowledged", 25_000) },
      status: CAME_BACK,
      nodeNow: "Ready",
    }),
    expected: "stay (PoweringOffAgain), forceOff",
  },
];
