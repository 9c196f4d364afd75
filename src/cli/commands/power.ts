import { buildCommand, buildRouteMap } from "@stricli/core";
import { POWER_TIMEOUT_OPTION } from "../../config/bmc-options.ts";
import { requireOption } from "../../config/option.ts";
import { OUTPUT_OPTION } from "../../config/cluster-options.ts";
import type { CliContext } from "../terminal/context.ts";
import { printLine, printNote } from "../terminal/context.ts";
import { CommandFailure, CommandRefusal } from "../errors/failures.ts";
import { flagsOf, YES_FLAG } from "../flags/flags.ts";
import type { OrderResult } from "../hosts/power-order.ts";
import { orderPowerByHand, describeResult } from "../hosts/power-order.ts";
import { withSelectedHost } from "../hosts/selected-host.ts";
import type { Order, SelectedHost } from "../hosts/selected-host.ts";
import type { SelectionFlags } from "../hosts/host-selection.ts";
import { selectHost, SELECTION_FLAGS, SELECTION_POSITIONAL } from "../hosts/host-selection.ts";
import { renderTable } from "../terminal/table.ts";

type OrderFlags = SelectionFlags & Readonly<{ timeout?: string; yes: boolean }>;

const statusCommand = buildCommand<SelectionFlags, [address?: string], CliContext>({
  func: async function powerStatus(this: CliContext, flags, address) {
    const selection = selectHost(this, address, flags);
    const output = requireOption(OUTPUT_OPTION, flags, this.process.env);
    await withSelectedHost(this, selection, flags, async (host) => {
      const { state, raw } = await host.readPower(this.signal);
      if (output === "json") printLine(this, JSON.stringify({ host: host.name, state, raw }));
      else
        for (const line of renderTable(["HOST", "POWER", "BMC REPORTS"], [[host.name, state, raw]]))
          printLine(this, line);
    });
  },
  parameters: { positional: SELECTION_POSITIONAL, flags: SELECTION_FLAGS, aliases: { n: "namespace", o: "output" } },
  docs: {
    brief: "Read whether a host is on",
    customUsage: [
      { input: "redfish://bmc-3.example", brief: "asks for user and password" },
      { input: "ipmi://10.0.0.3 --username fencing --password-file pw -o json", brief: "for scripts" },
      { input: "--target worker-3", brief: "by its FencingTarget, with the credentials in its Secret" },
    ],
  },
});

/** Builds `power off`, `on` and `cycle`: a list of orders, each proven before the next. */
function orderCommand(name: "off" | "on" | "cycle", orders: readonly Order[], docs: { brief: string; more: string }) {
  return buildCommand<OrderFlags, [address?: string], CliContext>({
    func: async function power(this: CliContext, { yes: agreed, ...flags }, address) {
      const selection = selectHost(this, address, flags);
      const output = requireOption(OUTPUT_OPTION, flags, this.process.env);
      const timeoutMs = requireOption(POWER_TIMEOUT_OPTION, flags, this.process.env);
      await withSelectedHost(this, selection, flags, async (host) => {
        const results: OrderResult[] = [];
        try {
          await runOrders(this, host, orders, { timeoutMs, agreed }, results);
        } finally {
          const proven = results.length === orders.length && results.every((result) => result.proven);
          const report = { host: host.name, command: `power ${name}`, proven, orders: results };
          if (output === "json") printLine(this, JSON.stringify(report));
        }
        if (output === "table")
          for (const result of results) printLine(this, `${host.name}: ${describeResult(result)}`);
      });
    },
    parameters: {
      positional: SELECTION_POSITIONAL,
      flags: {
        ...SELECTION_FLAGS,
        ...flagsOf({ timeout: POWER_TIMEOUT_OPTION }),
        yes: YES_FLAG,
      },
      aliases: { n: "namespace", o: "output", y: "yes" },
    },
    docs: {
      brief: docs.brief,
      fullDescription: [
        docs.more,
        "",
        "With --target, the command first verifies the identity of the host. It refuses the order while a remediation owns the",
        "host, while the host is in maintenance, or if another target claims it. Exit codes: 0 proven, 1 failed or not proven in",
        "time, 2 wrong command line, 3 refused (the order was not sent).",
      ].join("\n"),
      customUsage: [
        { input: "redfish://bmc-3.example", brief: "asks for user and password" },
        { input: "--target worker-3", brief: "by its FencingTarget, with the credentials in its Secret" },
        { input: "--target worker-3 --yes --timeout 60s -o json", brief: "for scripts" },
      ],
    },
  });
}

async function runOrders(
  context: CliContext,
  host: SelectedHost,
  orders: readonly Order[],
  options: { timeoutMs: number; agreed: boolean },
  results: OrderResult[],
): Promise<void> {
  for (const order of orders) {
    const isFirst = results.length === 0;
    try {
      // A user who has agreed to the first order of a cycle has agreed to all of it.
      const result = await orderPowerByHand(context, host, order, {
        ...options,
        agreed: options.agreed || !isFirst,
      });
      results.push(result);
      if (!result.proven) throw new CommandFailure("PowerNotProven", `${host.name}: ${describeResult(result)}`);
    } catch (error) {
      if (isFirst) throw error;
      printNote(context, `${host.name} was powered off and is not proven on: power it on with ironfence power on`);
      throw error instanceof CommandRefusal ? new CommandFailure(error.code, error.message, { cause: error }) : error;
    }
  }
}

/** `ironfence power`: one host's power, by hand. */
export const powerCommands = buildRouteMap({
  routes: {
    status: statusCommand,
    off: orderCommand("off", ["Off"], {
      brief: "Power a host off at once, and prove it",
      more: "Sends ForceOff, even if the host reads Off, then reads the power until it is Off twice in a row. One reading proves\nnothing, and neither does the answer of the BMC.",
    }),
    on: orderCommand("on", ["On"], {
      brief: "Power a host on, and read it back",
      more: "With --target, the order is refused while the node has the out-of-service taint: its volumes may be in use elsewhere.",
    }),
    cycle: orderCommand("cycle", ["Off", "On"], {
      brief: "Power a host off, prove it, and power it on again",
      more: "Sends On only after two Off readings in a row, so that the host has really been off.",
    }),
  },
  docs: {
    brief: "Read or change the power of one host, by address or FencingTarget",
    fullDescription:
      "With an address it needs no cluster. Passwords come from $IRONFENCE_BMC_PASSWORD, --password-file or the prompt,\nnever from the command line.",
  },
});
