import type { FencingTarget } from "../api/fencing-target.ts";
import { parseBmcAddress } from "../bmc/address.ts";
import type { HostIdentity, PowerReading } from "../bmc/driver.ts";
import { BmcError } from "../bmc/errors.ts";
import { openDevice } from "../bmc/open-device.ts";
import { OptionError } from "../config/option.ts";
import type { ClusterOptions } from "../config/run-options.ts";
import type { KubeRuntime } from "../kube/runtime.ts";
import { nodeKey } from "../nodes/subject.ts";
import { createLogger } from "../telemetry/logger.ts";
import { readDeviceConfig } from "./bmc-login.ts";
import { withRuntime } from "./cluster.ts";
import type { CliContext } from "./context.ts";
import { Refusal } from "./failures.ts";
import { clusterConcerns, nodeConcerns, nodeObstacles, readTarget } from "./targets.ts";

export type Order = "Off" | "On";

/** One host that a command powers: at the address of its BMC, or that of a FencingTarget. */
export interface Powered {
  /** For messages. */
  readonly name: string;
  /**
   * Reads everything again that an order depends on. Call it right before each order.
   *
   * @throws Refusal if the order must not be sent.
   */
  check(order: Order, signal: AbortSignal): Promise<{ identity: string; concerns: readonly string[] }>;
  readPower(signal: AbortSignal): Promise<PowerReading>;
  forceOff(signal: AbortSignal): Promise<void>;
  on(signal: AbortSignal): Promise<void>;
}

/** Opens the host that was asked for, does `work`, and ends every session again, whatever has happened. */
export async function withPowered<T>(
  context: CliContext,
  subject: { address: string } | { target: string; cluster: ClusterOptions },
  flags: Readonly<Record<string, string | undefined>>,
  work: (powered: Powered) => Promise<T>,
): Promise<T> {
  if ("address" in subject) return withAddress(context, subject.address, flags, work);
  const { target, cluster } = subject;
  return withRuntime(context, cluster, (runtime) => withTarget(runtime, cluster.namespace, target, context, work));
}

async function withAddress<T>(
  context: CliContext,
  address: string,
  flags: Readonly<Record<string, string | undefined>>,
  work: (powered: Powered) => Promise<T>,
): Promise<T> {
  requireAddress(address);
  const config = await readDeviceConfig(context, address, flags);
  const driver = openDevice(config, { clock: context.clock, logger: createLogger("warn") });
  try {
    return await work({
      name: address,
      check: async (order, signal) => ({
        identity: describe(await driver.identify(signal)),
        concerns: order === "On" ? [] : ["an address says nothing of what runs on its host (a --target does)"],
      }),
      readPower: (signal) => driver.readPower(signal),
      forceOff: (signal) => driver.forceOff(signal),
      on: (signal) => driver.on(signal),
    });
  } finally {
    await driver.close();
  }
}

/** Nobody is asked for the password of an address that cannot be read. */
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
  work: (powered: Powered) => Promise<T>,
): Promise<T> {
  const { target, directory } = await readTarget(runtime, namespace, { targetName }, context.signal);
  const name = `FencingTarget ${namespace}/${targetName} (node ${nodeText(target)})`;
  const host = directory.byUid(target.metadata.uid);
  if (host === undefined) throw new Refusal(`${name} is not to be used`);
  const power = await host.open(undefined, context.signal);
  try {
    return await work({
      name,
      async check(order, signal) {
        const live = await readTarget(runtime, namespace, { targetName }, signal);
        const { uid, generation } = live.target.metadata;
        // The open devices are those of the spec that was read at the start.
        if (uid !== target.metadata.uid || generation !== target.metadata.generation) {
          throw new Refusal(`${name} was changed meanwhile: run the command again`);
        }
        const obstacles = [...live.obstacles, ...nodeObstacles(live.node, order)];
        if (obstacles.length > 0) throw new Refusal(`${name}: no order is sent, since ${obstacles.join("; and ")}`);
        const verdict = await power.verifyIdentity(live.node, signal);
        if (!verdict.verified) throw new Refusal(`${name}: no order is sent: ${verdict.message}`);
        // The stop switch holds power-offs alone.
        const paused = live.paused === undefined || order === "On" ? [] : [live.paused];
        const concerns = [...nodeConcerns(live.node, order), ...clusterConcerns(live.target), ...paused];
        return { identity: verdict.message, concerns };
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
  return `${device} is ${parts.length === 0 ? "a host that does not say who it is" : parts.join(", ")}`;
}
