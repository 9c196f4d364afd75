import { buildCommand } from "@stricli/core";
import type { ConfigMap } from "../api/core.ts";
import { CONFIG_MAPS } from "../api/core-types.ts";
import { STOP_SWITCH_NAME, STOP_SWITCH_PAUSED, STOP_SWITCH_REASON } from "../api/stop-switch.ts";
import { CLUSTER_OPTIONS, resolveClusterOptions } from "../config/run-options.ts";
import type { KubeClient } from "../kube/client.ts";
import { isKubeError } from "../kube/errors.ts";
import { withCluster } from "./cluster.ts";
import type { CliContext } from "./context.ts";
import { printLine } from "./context.ts";
import type { FlagTexts } from "./flags.ts";
import { flagsOf } from "./flags.ts";

/** `ironfence pause`: throws the stop switch. */
export const pauseCommand = buildCommand<FlagTexts, [], CliContext>({
  func: async function pause(this: CliContext, flags) {
    const options = resolveClusterOptions(flags, this.process.env);
    const reason = flags["reason"] ?? "paused by hand";
    await withCluster(this, options, (client) =>
      writeSwitch(
        client,
        options.namespace,
        { [STOP_SWITCH_PAUSED]: "true", [STOP_SWITCH_REASON]: reason },
        this.signal,
      ),
    );
    printLine(this, `paused: no new power-off is sent (ConfigMap ${options.namespace}/${STOP_SWITCH_NAME}: ${reason})`);
    printLine(this, "go on with: ironfence resume");
  },
  parameters: {
    flags: {
      ...flagsOf(CLUSTER_OPTIONS),
      reason: {
        kind: "parsed",
        parse: String,
        optional: true,
        placeholder: "text",
        brief: "Why, for whoever looks next",
      },
    },
  },
  docs: {
    brief: "Stop switch: no new power-off is sent until `ironfence resume`",
    fullDescription:
      "Remediations that would power a host off wait and say so. A host that was powered off is still powered on; spec.maintenance of its FencingTarget holds that, too.",
    customUsage: [{ input: '--reason "rack 4 is being rewired"', brief: "with a reason that everybody sees" }],
  },
});

/** `ironfence resume`: releases the stop switch. */
export const resumeCommand = buildCommand<FlagTexts, [], CliContext>({
  func: async function resume(this: CliContext, flags) {
    const options = resolveClusterOptions(flags, this.process.env);
    await withCluster(this, options, (client) =>
      writeSwitch(client, options.namespace, { [STOP_SWITCH_PAUSED]: "false" }, this.signal),
    );
    printLine(this, "resumed: power-offs are sent again");
  },
  parameters: { flags: flagsOf(CLUSTER_OPTIONS) },
  docs: { brief: "Release the stop switch" },
});

/** Replaces the switch's data, or creates it. Somebody else's write in between makes it try once more. */
async function writeSwitch(
  client: KubeClient,
  namespace: string,
  data: Record<string, string>,
  signal: AbortSignal,
): Promise<void> {
  const key = { namespace, name: STOP_SWITCH_NAME };
  for (let tries = 2; ; tries--) {
    try {
      const present = await client.get<ConfigMap>(CONFIG_MAPS, key, signal).catch((error: unknown) => {
        if (isKubeError(error, "NotFound")) return undefined;
        throw error;
      });
      if (present === undefined) {
        const object = { apiVersion: "v1", kind: "ConfigMap", metadata: key, data };
        await client.create<ConfigMap>(CONFIG_MAPS, object, {}, signal);
      } else {
        const { uid, resourceVersion } = present.metadata;
        const operation = { op: "add", path: "/data", value: data } as const;
        await client.patch<ConfigMap>(CONFIG_MAPS, key, { uid, resourceVersion }, [operation], {}, signal);
      }
      return;
    } catch (error) {
      if (tries > 1 && isKubeError(error, "Conflict", "AlreadyExists", "NotFound")) continue;
      throw error;
    }
  }
}
