import { buildCommand, buildRouteMap } from "@stricli/core";
import type { PowerDriver } from "../../bmc/interface/driver.ts";
import type { BmcErrorCode } from "../../bmc/interface/errors.ts";
import { BmcError } from "../../bmc/interface/errors.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import { openDevices } from "../../remediator/hosts/fencing-target/devices.ts";
import { identityJudge } from "../../remediator/hosts/model/identity.ts";
import { createLogger } from "../../telemetry/logger.ts";
import { readDeviceConfig } from "../hosts/bmc-login.ts";
import { withRuntime } from "../cluster/connect.ts";
import { confirm } from "../terminal/confirm.ts";
import type { CliContext } from "../terminal/context.ts";
import { printLine } from "../terminal/context.ts";
import { CommandRefusal } from "../errors/failures.ts";
import type { SelectionFlags } from "../hosts/host-selection.ts";
import { selectHost, SELECTION_FLAGS, SELECTION_POSITIONAL } from "../hosts/host-selection.ts";
import { readTarget } from "../hosts/targets.ts";
import { YES_FLAG } from "../flags/flags.ts";

type ResetFlags = SelectionFlags & Readonly<{ yes: boolean }>;

const CONCERN = "the BMC does not answer for some minutes: its host stays on, and cannot be fenced in that time";
/** If a BMC restarts at once, its answer is lost. */
const UNCERTAIN: ReadonlySet<BmcErrorCode> = new Set(["Timeout", "Unreachable"]);

const resetCommand = buildCommand<ResetFlags, [address?: string], CliContext>({
  func: async function bmcReset(this: CliContext, { yes: agreed, ...flags }, address) {
    const selection = selectHost(this, address, flags);
    if ("address" in selection) {
      const config = await readDeviceConfig(this, selection.address, flags);
      await confirm(this, `restart the BMC at ${selection.address}`, [CONCERN], agreed);
      await reset(this, this.openDevice(config, { clock: this.clock, logger: createLogger("warn") }), () => undefined);
      return;
    }
    const { target, cluster } = selection;
    await withRuntime(this, cluster, (runtime) => resetTarget(this, runtime, cluster.namespace, target, agreed));
  },
  parameters: {
    positional: SELECTION_POSITIONAL,
    flags: {
      ...SELECTION_FLAGS,
      yes: YES_FLAG,
    },
    aliases: { n: "namespace", o: "output", y: "yes" },
  },
  docs: {
    brief: "Restart a BMC that hangs; its host keeps running",
    fullDescription: [
      "Sends Manager.Reset over Redfish, or a cold reset over IPMI, to each device of the host. The power of the host is not",
      "changed. The agent never does this by itself: a BMC may have several hosts, and does not answer for minutes. A BMC that does",
      "not answer over Redfish may still answer over IPMI: give its IPMI address.",
      "",
      "With --target, the command first verifies the identity of the host. It is refused while ironfence is paused, while a",
      "remediation owns the host, while the host is in maintenance, or if another target claims it. Exit codes: 0 sent, 1 failed,",
      "2 wrong command line, 3 refused (nothing was sent).",
    ].join("\n"),
    customUsage: [
      { input: "ipmi://10.0.0.3", brief: "asks for user and password" },
      { input: "--target worker-3 --yes", brief: "by its FencingTarget, with the credentials in its Secret" },
    ],
  },
});

async function resetTarget(
  context: CliContext,
  runtime: KubeRuntime,
  namespace: string,
  targetName: string,
  agreed: boolean,
): Promise<void> {
  const { signal, openDevice } = context;
  const name = `FencingTarget ${namespace}/${targetName}`;
  const read = async (): ReturnType<typeof readTarget> => {
    const facts = await readTarget({ runtime, openDevice }, namespace, { targetName }, signal);
    // A fence in progress may need the BMC. While ironfence is paused, BMCs are left alone.
    const paused = facts.paused === undefined ? [] : [`${facts.paused}: end the pause with ironfence resume`];
    const obstacles = [...facts.obstacles, ...paused];
    if (obstacles.length === 0) return facts;
    throw new CommandRefusal("Refused", `${name}: nothing is sent, since ${obstacles.join("; and ")}`);
  };
  await read();
  await confirm(context, `restart the BMC of ${name}`, [CONCERN], agreed);
  // The cluster may have changed while the user was asked.
  const { target, node } = await read();
  const judge = identityJudge(target, node?.status.nodeInfo?.systemUUID);
  for (const { driver, failure } of await openDevices({ runtime, openDevice }, target, signal)) {
    if (failure !== undefined) throw failure;
    await reset(context, driver, (identity) => {
      const check = judge([identity]);
      return check.verified ? undefined : check.message;
    });
  }
}

/** @param objection returns why nothing may be sent to a BMC with this identity; undefined if the reset may be sent. */
async function reset(
  context: CliContext,
  driver: PowerDriver,
  objection: (identity: Awaited<ReturnType<PowerDriver["identify"]>>) => string | undefined,
): Promise<void> {
  const { signal } = context;
  try {
    const why = objection(await driver.identify(signal));
    if (why !== undefined) throw new CommandRefusal("Refused", `${driver.address}: nothing is sent: ${why}`);
    await driver.resetBmc?.(signal).catch((error: unknown) => {
      if (!(error instanceof BmcError) || !UNCERTAIN.has(error.code)) throw error;
      printLine(
        context,
        `${driver.address}: the answer was lost, which is normal if the BMC restarts at once (${error.message})`,
      );
    });
    printLine(context, `${driver.address}: the restart was ordered; ironfence probe shows when the BMC is back`);
  } finally {
    await driver.close();
  }
}

/** `ironfence bmc`: operations on a BMC itself. */
export const bmcCommands = buildRouteMap({
  routes: { reset: resetCommand },
  docs: { brief: "Restart a BMC by hand" },
});
