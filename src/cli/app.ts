import type { Application } from "@stricli/core";
import { buildApplication, buildRouteMap } from "@stricli/core";
import type { CliContext } from "./context.ts";
import { completionCommand } from "./completion.ts";
import { pauseCommand, resumeCommand } from "./pause.ts";
import { runCommand } from "./run.ts";
import { statusCommand } from "./status.ts";
import { VERSION } from "./version.ts";

/** The `ironfence` command line. */
export const app: Application<CliContext> = buildApplication(
  buildRouteMap({
    routes: {
      run: runCommand,
      status: statusCommand,
      pause: pauseCommand,
      resume: resumeCommand,
      completion: completionCommand,
    },
    docs: {
      brief: "Power fencing and node health remediation for bare-metal Kubernetes",
      fullDescription: [
        "ironfence finds nodes that are unhealthy, powers their hosts off through their BMCs, proves that they are off, frees",
        "their workloads, powers them on again and gives the nodes back their place; and escalates where that does not help.",
        "",
        "Start the agent with `ironfence run`; look at what it does with `ironfence status`; stop every new power order with",
        "`ironfence pause`. Each command has `--help` with examples.",
      ].join("\n"),
    },
  }),
  {
    name: "ironfence",
    versionInfo: { currentVersion: VERSION },
    scanner: { caseStyle: "allow-kebab-for-camel" },
    documentation: { caseStyle: "convert-camel-to-kebab", onlyRequiredInUsageLine: true },
    determineExitCode: () => 1,
  },
);
