import type { FencingTarget } from "../../api/ironfence/fencing-target.ts";
import { parseBmcAddress } from "../../bmc/interface/address.ts";
import type { HostIdentity } from "../../bmc/identity/host-identity.ts";
import type { PowerReading } from "../../bmc/interface/driver.ts";
import { BmcError } from "../../bmc/interface/errors.ts";
import { OptionError } from "../../config/option.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import { nodeKey } from "../../nodes/subject.ts";
import { createLogger } from "../../telemetry/logger.ts";
import { readDeviceConfig } from "./bmc-login.ts";
import { withRuntime } from "../cluster/connect.ts";
import type { CliContext } from "../terminal/context.ts";
import { CommandRefusal } from "../errors/failures.ts";
import type { HostSelection } from "./host-selection.ts";
import { clusterConcerns, nodeConcerns, nodeObstacles, readTarget } from "./targets.ts";
import type { FlagTexts } from "../../config/option.ts";

export type Order = "Off" | "On";

/** One host that a command powers on or off, by the address of its BMC or by its FencingTarget. */
export interface SelectedHost {
  /** Names the host in messages. */
  readonly name: string;
  /**
   * Reads everything again that an order depends on. Call it right before each order.
   *
   * @throws CommandRefusal if the order must not be sent.
   */
  check(order: Order, signal: AbortSignal): Promise<{ identity: string; concerns: readonly string[] }>;
  readPower(signal: AbortSignal): Promise<PowerReading>;
  forceOff(signal: AbortSignal): Promise<void>;
  on(signal: AbortSignal): Promise<void>;
}

/** Opens the selected host, does `work`, and ends every session, even after an error. */
export async function withSelectedHost<T>(
  context: CliContext,
  selection: HostSelection,
  flags: FlagTexts,
  work: (host: SelectedHost) => Promise<T>,
): Promise<T> {
  if ("address" in selection) return withAddress(context, selection.address, flags, work);
  const { target, cluster } = selection;
  return withRuntime(context, cluster, (runtime) => withTarget(runtime, cluster.namespace, target, context, work));
}

async function withAddress<T>(
  context: CliContext,
  address: string,
  flags: FlagTexts,
  work: (host: SelectedHost) => Promise<T>,
): Promise<T> {
  requireAddress(address);
  const config = await readDeviceConfig(context, address, flags);
  const driver = context.openDevice(config, { clock: context.clock, logger: createLogger("warn") });
  try {
    return await work({
      name: address,
      check: async (order, signal) => ({
        identity: describe(await driver.identify(signal)),
        concerns:
          order === "On" ? [] : ["with an address, ironfence cannot see which node runs on the host: use --target"],
      }),
      readPower: (signal) => driver.readPower(signal),
      forceOff: (signal) => driver.forceOff(signal),
      on: (signal) => driver.on(signal),
    });
  } finally {
    await driver.close();
  }
}

/** Checks the address first, so that the user is not asked for a password needlessly. */
function requireAddress(address: string): void {
  try {
    parseBmcAddress(address);
  } catch (error) {
    throw error instanceof BmcError ? new OptionError(error.message, { cause: error }) : error;
  }
}

async function withTarget<T>(
  runtime: KubeRuntime,
  namespace: string,
  targetName: string,
  context: CliContext,
  work: (host: SelectedHost) => Promise<T>,
): Promise<T> {
  const { openDevice } = context;
  const { target, directory } = await readTarget({ runtime, openDevice }, namespace, { targetName }, context.signal);
  const name = `FencingTarget ${namespace}/${targetName} (node ${nodeText(target)})`;
  const host = directory.byUid(target.metadata.uid);
  if (host === undefined) throw new CommandRefusal("Refused", `${name} cannot be used: its condition Ready shows why`);
  const power = await host.open(undefined, context.signal);
  try {
    return await work({
      name,
      async check(order, signal) {
        const live = await readTarget({ runtime, openDevice }, namespace, { targetName }, signal);
        const { uid, generation } = live.target.metadata;
        // The devices were opened from the spec that was read at the start.
        if (uid !== target.metadata.uid || generation !== target.metadata.generation) {
          throw new CommandRefusal("Refused", `${name} has changed since it was read: run the command again`);
        }
        const obstacles = [...live.obstacles, ...nodeObstacles(live.node, order)];
        if (obstacles.length > 0) {
          throw new CommandRefusal("Refused", `${name}: no order is sent, since ${obstacles.join("; and ")}`);
        }
        const check = await power.verifyIdentity(live.node, signal);
        if (!check.verified) throw new CommandRefusal("Refused", `${name}: no order is sent: ${check.message}`);
        // The stop switch holds power-offs only.
        const paused = live.paused === undefined || order === "On" ? [] : [live.paused];
        const concerns = [...nodeConcerns(live.node, order), ...clusterConcerns(live.target), ...paused];
        return { identity: check.message, concerns };
      },
      readPower: (signal) => power.readPower(signal),
      forceOff: (signal) => power.forceOff(signal),
      on: (signal) => power.on(signal),
    });
  } finally {
    await power.close();
  }
}

function nodeText({ spec: { nodeName: name, clusterRef: cluster } }: FencingTarget): string {
  return nodeKey({ cluster, name });
}

function describe({ device, systemUUID, serialNumber, manufacturer, model }: HostIdentity): string {
  const parts = [
    systemUUID === undefined ? undefined : `system UUID ${systemUUID}`,
    serialNumber === undefined ? undefined : `serial number ${serialNumber}`,
    manufacturer,
    model,
  ].filter((part) => part !== undefined);
  return `${device} is ${parts.length === 0 ? "a host that reports no identity" : parts.join(", ")}`;
}
