import { buildCommand } from "@stricli/core";
import type { ConfigMap } from "../../api/kubernetes/core.ts";
import { CONFIG_MAPS } from "../../api/kubernetes/core-types.ts";
import {
  STOP_SWITCH_BY,
  STOP_SWITCH_NAME,
  STOP_SWITCH_PAUSED,
  STOP_SWITCH_REASON,
  STOP_SWITCH_SINCE,
  STOP_SWITCH_UNTIL,
  stoppedBy,
} from "../../api/ironfence/stop-switch.ts";
import { PAUSE_FOR_OPTION } from "../../config/bmc-options.ts";
import { resolveOption } from "../../config/option.ts";
import { CLUSTER_OPTIONS, resolveClusterOptions } from "../../config/cluster-options.ts";
import type { KubeClient } from "../../kube/client.ts";
import { isKubeError } from "../../kube/errors.ts";
import { latestServerTimeMs } from "../../kube/server-time.ts";
import { readUserName } from "../cluster/user-name.ts";
import { toTime } from "../../runtime/time.ts";
import { withCluster, withRuntime } from "../cluster/connect.ts";
import type { CliContext } from "../terminal/context.ts";
import { printLine } from "../terminal/context.ts";
import { CommandFailure } from "../errors/failures.ts";
import type { FlagTexts } from "../../config/option.ts";
import { flagsOf } from "../flags/flags.ts";

/** `ironfence pause`: turns the stop switch on. */
export const pauseCommand = buildCommand<FlagTexts, [], CliContext>({
  func: async function pause(this: CliContext, flags) {
    const { env } = this.process;
    const options = resolveClusterOptions(flags, env);
    const forMs = resolveOption(PAUSE_FOR_OPTION, flags, env);
    const reason = flags["reason"] ?? "paused by hand";
    const why = await withRuntime(this, options, async (runtime) => {
      const { client } = runtime;
      // The clock of the API server decides when a pause ends; this call measures it.
      const by = await whoAmI(client, env["USER"] ?? env["USERNAME"], this.signal);
      // Times are stored in whole seconds, so round up.
      const nowMs = Math.ceil(latestServerTimeMs(runtime) / 1_000) * 1_000;
      const data = {
        [STOP_SWITCH_PAUSED]: "true",
        [STOP_SWITCH_REASON]: reason,
        [STOP_SWITCH_BY]: by,
        [STOP_SWITCH_SINCE]: toTime(nowMs),
        ...(forMs !== undefined && { [STOP_SWITCH_UNTIL]: toTime(nowMs + forMs) }),
      };
      const stored = await writeSwitch(client, options.namespace, data, this.signal);
      const pause = stoppedBy(stored, latestServerTimeMs(runtime));
      if (pause !== undefined) return pause.reason;
      throw new CommandFailure(
        "PauseExpired",
        "the pause has ended already, so power-offs are sent: choose a longer --for",
      );
    });
    printLine(this, `no new power-off is sent: ${why}`);
    printLine(this, "a host that is off already is still powered on");
    printLine(this, `${forMs === undefined ? "end the pause with" : "end it sooner with"}: ironfence resume`);
  },
  parameters: {
    flags: {
      ...flagsOf({ ...CLUSTER_OPTIONS, for: PAUSE_FOR_OPTION }),
      reason: {
        kind: "parsed",
        parse: String,
        optional: true,
        placeholder: "text",
        brief: "Why you pause; ironfence status shows it",
      },
    },
    aliases: { n: "namespace" },
  },
  docs: {
    brief: "Stop switch: no new power-off is sent until `ironfence resume`",
    fullDescription: [
      "Remediations that would power a host off wait, and report that. A host that is off already is still powered on;",
      "spec.maintenance of its FencingTarget holds that, too. `ironfence status` shows who paused, since when and why. With",
      "`--for` the pause ends by itself, by the clock of the API server. Pausing again replaces reason and end.",
    ].join("\n"),
    customUsage: [
      { input: '--reason "rack 4 is being rewired"', brief: "with a reason that ironfence status shows" },
      { input: '--for 2h --reason "switch upgrade"', brief: "ends by itself" },
    ],
  },
});

/** `ironfence resume`: turns the stop switch off. */
export const resumeCommand = buildCommand<FlagTexts, [], CliContext>({
  func: async function resume(this: CliContext, flags) {
    const options = resolveClusterOptions(flags, this.process.env);
    await withCluster(this, options, (client) =>
      writeSwitch(client, options.namespace, { [STOP_SWITCH_PAUSED]: "false" }, this.signal),
    );
    printLine(this, "resumed: power-offs are sent again");
  },
  parameters: { flags: flagsOf(CLUSTER_OPTIONS), aliases: { n: "namespace" } },
  docs: { brief: "End the pause: power-offs are sent again" },
});

/** The name of the user in the API server and on this machine, because several users may share one kubeconfig. */
async function whoAmI(client: KubeClient, localUser: string | undefined, signal: AbortSignal): Promise<string> {
  const name = await readUserName(client, signal);
  if (name === undefined) return localUser ?? "an unknown user";
  return localUser === undefined ? name : `${name} (${localUser})`;
}

/**
 * Replaces the data of the ConfigMap, or creates the ConfigMap. Tries again after a concurrent write by another user.
 */
async function writeSwitch(
  client: KubeClient,
  namespace: string,
  data: Record<string, string>,
  signal: AbortSignal,
): Promise<ConfigMap> {
  const key = { namespace, name: STOP_SWITCH_NAME };
  for (let tries = 2; ; tries--) {
    try {
      const present = await client.get<ConfigMap>(CONFIG_MAPS, key, signal).catch((error: unknown) => {
        if (isKubeError(error, "NotFound")) return undefined;
        throw error;
      });
      if (present === undefined) {
        const object = { apiVersion: "v1", kind: "ConfigMap", metadata: key, data };
        return await client.create<ConfigMap>(CONFIG_MAPS, object, {}, signal);
      }
      const { uid, resourceVersion } = present.metadata;
      const operation = { op: "add", path: "/data", value: data } as const;
      return await client.patch<ConfigMap>(CONFIG_MAPS, key, { uid, resourceVersion }, [operation], {}, signal);
    } catch (error) {
      if (tries > 1 && isKubeError(error, "Conflict", "AlreadyExists", "NotFound")) continue;
      throw error;
    }
  }
}
