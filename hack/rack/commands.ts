import { z } from "zod";
import { LOGGED_KINDS } from "./event-log.ts";
import { POWER_ORDERS } from "./events.ts";
import type { Rack } from "./rack.ts";

const powerSchema = z.enum(["On", "PoweringOff", "Off", "PoweringOn"]);

/** Commands for a host or its BMC, as plain JSON for control endpoints and scenario files. */
export const commandSchema = z.discriminatedUnion("do", [
  z.strictObject({ do: z.enum(["hang", "resume", "failDisk", "cutMains", "restoreMains"]) }),
  /** A power order by another client. */
  z.strictObject({ do: z.literal("order"), order: z.enum(POWER_ORDERS) }),
  z.strictObject({ do: z.literal("reachability"), reachability: z.enum(["up", "refused", "silent"]) }),
  z.strictObject({ do: z.literal("restartBmc"), downMs: z.number().min(0) }),
  /** Orders take effect after this delay. */
  z.strictObject({ do: z.literal("delayOrders"), delayMs: z.number().min(0) }),
  z.strictObject({ do: z.literal("pretendPower"), power: powerSchema, forMs: z.number().positive() }),
  z.strictObject({ do: z.literal("freezePower"), forMs: z.number().positive() }),
  /** Every other reading is Off. */
  z.strictObject({ do: z.literal("flapPower"), forMs: z.number().positive() }),
  /** Without an identity, the fault ends. */
  z.strictObject({
    do: z.literal("pretendIdentity"),
    identity: z.strictObject({ systemUUID: z.string().optional(), serialNumber: z.string().optional() }).optional(),
  }),
  /** The BMC logs an entry for something that happened `agoMs` ago. */
  z.strictObject({ do: z.literal("logEvent"), kind: z.enum(LOGGED_KINDS), agoMs: z.number().min(0).default(0) }),
  /** From now on, the BMC is connected to another host. */
  z.strictObject({ do: z.literal("rewire"), host: z.string() }),
]);
export type RackCommand = z.infer<typeof commandSchema>;

/** Executes a command on the host of this name or its BMC. @throws Error if there is no such host. */
export function runCommand(rack: Rack, hostName: string, command: RackCommand): void {
  const host = rack.host(hostName);
  const bmc = rack.bmc(hostName);
  switch (command.do) {
    case "hang":
    case "resume":
    case "failDisk":
    case "cutMains":
    case "restoreMains":
      host[command.do]();
      break;
    case "order":
      host.order(command.order);
      break;
    case "reachability":
      bmc.setReachability(command.reachability);
      break;
    case "restartBmc":
      bmc.restart(command.downMs);
      break;
    case "delayOrders":
      bmc.orderDelayMs = command.delayMs;
      break;
    case "pretendPower":
      bmc.pretendPower(command.power, command.forMs);
      break;
    case "freezePower":
      bmc.freezePower(command.forMs);
      break;
    case "flapPower":
      bmc.flapPower(command.forMs);
      break;
    case "pretendIdentity":
      bmc.pretendIdentity(command.identity);
      break;
    case "logEvent":
      bmc.logEvent(command.kind, command.agoMs);
      break;
    case "rewire":
      bmc.rewire(rack.host(command.host));
      break;
  }
}
