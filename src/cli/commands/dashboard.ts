import { buildCommand } from "@stricli/core";
import { DASHBOARD_PORT_OPTION } from "../../config/dashboard-options.ts";
import { requireOption } from "../../config/option.ts";
import { RUN_OPTIONS } from "../../config/run-options.ts";
import { CLUSTER_OPTIONS, resolveClusterOptions } from "../../config/cluster-options.ts";
import { withRuntime } from "../cluster/connect.ts";
import type { CliContext } from "../terminal/context.ts";
import { printLine } from "../terminal/context.ts";
import { CommandFailure } from "../errors/failures.ts";
import type { FlagTexts } from "../../config/option.ts";
import { flagsOf } from "../flags/flags.ts";
import { sourceOf } from "../dashboard/serve/cluster-source.ts";
import { messageOf } from "../dashboard/serve/live-pages.ts";
import { LocalGuard } from "../dashboard/serve/local-guard.ts";
import { serveDashboard } from "../dashboard/serve/server.ts";

/** `ironfence dashboard`: serves the page to the user who starts it, with the permissions of that user. */
export const dashboardCommand = buildCommand<FlagTexts, [], CliContext>({
  func: async function dashboard(this: CliContext, flags) {
    const { env } = this.process;
    const options = {
      ...resolveClusterOptions(flags, env),
      leaseName: requireOption(RUN_OPTIONS.leaseName, flags, env),
      leaseNamespace: requireOption(RUN_OPTIONS.nodeLeaseNamespace, flags, env),
    };
    const port = requireOption(DASHBOARD_PORT_OPTION, flags, env);
    const { clock, random, signal } = this;
    await withRuntime(this, options, async (runtime, cluster) => {
      const source = sourceOf(runtime, options, cluster);
      // If the cluster cannot be read at all, the command fails instead of serving a page that says so.
      await source.readOverview(signal);
      const local = new LocalGuard(random);
      const deps = { clock, source, guard: local.guard, certificate: undefined };
      const server = await serveDashboard({ host: "127.0.0.1", port }, deps).catch((cause: unknown) => {
        throw new CommandFailure("ListenFailed", `${messageOf(cause)}: choose another --port`, { cause });
      });
      try {
        local.port = server.port;
        printLine(this, `dashboard of ${cluster.server} (${cluster.source}); open this address, and stop with Ctrl-C:`);
        printLine(this, local.url);
        await aborted(signal);
      } finally {
        await server.close();
      }
    });
  },
  parameters: {
    flags: flagsOf({
      ...CLUSTER_OPTIONS,
      leaseName: RUN_OPTIONS.leaseName,
      nodeLeaseNamespace: RUN_OPTIONS.nodeLeaseNamespace,
      port: DASHBOARD_PORT_OPTION,
    }),
    aliases: { n: "namespace" },
  },
  docs: {
    brief: "Serve a page that shows what ironfence could fence, does and has done",
    fullDescription: [
      "The page is served on 127.0.0.1 and reads the cluster with your kubeconfig, so it shows what you may read. It changes",
      "nothing. The printed address contains a secret that lets your browser in; do not share it. The page updates itself,",
      "and reports when it cannot.",
      "Exit codes: 0 stopped with Ctrl-C, 1 the cluster cannot be read or the port is in use, 2 wrong command line.",
    ].join("\n"),
    customUsage: [
      { input: "", brief: "the cluster of the current context, on a free port" },
      { input: "--context prod --port 8090", brief: "another cluster, on a port that you can forward" },
    ],
  },
});

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
