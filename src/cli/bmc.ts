import { buildCommand, buildRouteMap } from "@stricli/core";
import type { PowerDriver } from "../bmc/driver.ts";
import type { BmcErrorCode } from "../bmc/errors.ts";
import { BmcError } from "../bmc/errors.ts";
import { openDevice } from "../bmc/open-device.ts";
import type { KubeRuntime } from "../kube/runtime.ts";
import { openDevices } from "../remediator/hosts/devices.ts";
import { identityJudge } from "../remediator/hosts/identity.ts";
import { createLogger } from "../telemetry/logger.ts";
import { readDeviceConfig } from "./bmc-login.ts";
import { withRuntime } from "./cluster.ts";
import { confirm } from "./confirm.ts";
import type { CliContext } from "./context.ts";
import { printLine } from "./context.ts";
import { Refusal } from "./failures.ts";
import type { SubjectFlags } from "./subject.ts";
import { readSubject, SUBJECT_FLAGS, SUBJECT_POSITIONAL } from "./subject.ts";
import { readTarget } from "./targets.ts";

type ResetFlags = SubjectFlags & Readonly<{ yes: boolean }>;

const CONCERN = "the BMC is away for minutes: its host keeps its power, and cannot be fenced in that time";
/** A BMC that restarts at once takes its answer with it. */
const UNCERTAIN: ReadonlySet<BmcErrorCode> = new Set(["Timeout", "Unreachable"]);

const resetCommand = buildCommand<ResetFlags, [address?: string], CliContext>({
  func: async function bmcReset(this: CliContext, { yes: agreed, ...flags }, address) {
    const subject = readSubject(this, address, flags);
    if ("address" in subject) {
      const config = await readDeviceConfig(this, subject.address, flags);
      await confirm(this, `restart the BMC at ${subject.address}`, [CONCERN], agreed);
      await reset(this, openDevice(config, { clock: this.clock, logger: createLogger("warn") }), () => undefined);
      return;
    }
    const { target, cluster } = subject;
    await withRuntime(this, cluster, (runtime) => resetTarget(this, runtime, cluster.namespace, target, agreed));
  },
  parameters: {
    positional: SUBJECT_POSITIONAL,
    flags: {
      ...SUBJECT_FLAGS,
      yes: { kind: "boolean", default: false, withNegated: false, brief: "Agree beforehand to what would be asked" },
    },
    aliases: { n: "namespace", o: "output", y: "yes" },
  },
  docs: {
    brief: "Restart a BMC that hangs; its host goes on",
    fullDescription: [
      "Sends Manager.Reset over Redfish, or a cold reset over IPMI, to each device of the host. The power of the host is not",
      "touched. The agent never does this by itself: a BMC may have more than one host, and is away for minutes. A BMC that does",
      "not answer over Redfish may still answer over IPMI: give its IPMI address.",
      "",
      "With --target the host's identity is verified first, and the command is refused while ironfence is paused, while a",
      "remediation owns the host, while it is in maintenance, or where its target is ambiguous. Exit codes: 0 sent, 1 failed, 2 wrong command line, 3 refused",
      "(nothing was sent).",
    ].join("\n"),
    customUsage: [
      { input: "ipmi://10.0.0.3", brief: "asks for user and password" },
      { input: "--target worker-3 --yes", brief: "by its FencingTarget and that one's Secret" },
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
  const { signal } = context;
  const name = `FencingTarget ${namespace}/${targetName}`;
  const read = async (): ReturnType<typeof readTarget> => {
    const facts = await readTarget(runtime, namespace, { targetName }, signal);
    // A host that is being fenced may depend on the BMC; a paused agent leaves BMCs alone.
    const paused = facts.paused === undefined ? [] : [`${facts.paused}: ironfence resume`];
    const obstacles = [...facts.obstacles, ...paused];
    if (obstacles.length === 0) return facts;
    throw new Refusal(`${name}: nothing is sent, since ${obstacles.join("; and ")}`);
  };
  await read();
  await confirm(context, `restart the BMC of ${name}`, [CONCERN], agreed);
  // The answer may have taken its time.
  const { target, node } = await read();
  const judge = identityJudge(target, node?.status.nodeInfo?.systemUUID);
  for (const { driver, failure } of await openDevices({ runtime, openDevice }, target, signal)) {
    if (failure !== undefined) throw failure;
    await reset(context, driver, (identity) => {
      const verdict = judge([identity]);
      return verdict.verified ? undefined : verdict.message;
    });
  }
}

/** @param objection why nothing may be sent to the host that answers; undefined where it may. */
async function reset(
  context: CliContext,
  driver: PowerDriver,
  objection: (identity: Awaited<ReturnType<PowerDriver["identify"]>>) => string | undefined,
): Promise<void> {
  const { signal } = context;
  try {
    const why = objection(await driver.identify(signal));
    if (why !== undefined) throw new Refusal(`${driver.address}: nothing is sent: ${why}`);
    await driver.resetBmc?.(signal).catch((error: unknown) => {
      if (!(error instanceof BmcError) || !UNCERTAIN.has(error.code)) throw error;
      printLine(
        context,
        `${driver.address}: the answer was lost, as where the BMC restarts at once (${error.message})`,
      );
    });
    printLine(context, `${driver.address}: the restart was ordered; ironfence probe shows when the BMC is back`);
  } finally {
    await driver.close();
  }
}

/** `ironfence bmc`: what a person does to a BMC itself. */
export const bmcCommands = buildRouteMap({
  routes: { reset: resetCommand },
  docs: { brief: "Restart a BMC by hand" },
});
