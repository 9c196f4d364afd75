import { buildCommand, buildRouteMap } from "@stricli/core";
import { POWER_TIMEOUT_OPTION } from "../config/bmc-options.ts";
import { requireOption } from "../config/option.ts";
import { OUTPUT_OPTION } from "../config/run-options.ts";
import type { CliContext } from "./context.ts";
import { printLine, printNote } from "./context.ts";
import { CommandFailure, Refusal } from "./failures.ts";
import { flagsOf } from "./flags.ts";
import type { OrderResult } from "./power-order.ts";
import { orderPower, tellResult } from "./power-order.ts";
import { withPowered } from "./powered.ts";
import type { Order, Powered } from "./powered.ts";
import type { SubjectFlags } from "./subject.ts";
import { readSubject, SUBJECT_FLAGS, SUBJECT_POSITIONAL } from "./subject.ts";
import { renderTable } from "./table.ts";

type OrderFlags = SubjectFlags & Readonly<{ timeout?: string; yes: boolean }>;

const statusCommand = buildCommand<SubjectFlags, [address?: string], CliContext>({
  func: async function powerStatus(this: CliContext, flags, address) {
    const subject = readSubject(this, address, flags);
    const output = requireOption(OUTPUT_OPTION, flags, this.process.env);
    await withPowered(this, subject, flags, async (powered) => {
      const { state, raw } = await powered.readPower(this.signal);
      if (output === "json") printLine(this, JSON.stringify({ host: powered.name, state, raw }));
      else
        for (const line of renderTable(["HOST", "POWER", "BMC SAYS"], [[powered.name, state, raw]]))
          printLine(this, line);
    });
  },
  parameters: { positional: SUBJECT_POSITIONAL, flags: SUBJECT_FLAGS, aliases: { n: "namespace", o: "output" } },
  docs: {
    brief: "Read whether a host is on",
    customUsage: [
      { input: "redfish://bmc-3.example", brief: "asks for user and password" },
      { input: "ipmi://10.0.0.3 --username fencing --password-file pw -o json", brief: "for scripts" },
      { input: "--target worker-3", brief: "by its FencingTarget and that one's Secret" },
    ],
  },
});

/** Builds `power off`, `on` and `cycle`: a list of orders, each proven before the next. */
function orderCommand(name: "off" | "on" | "cycle", orders: readonly Order[], docs: { brief: string; more: string }) {
  return buildCommand<OrderFlags, [address?: string], CliContext>({
    func: async function power(this: CliContext, { yes: agreed, ...flags }, address) {
      const subject = readSubject(this, address, flags);
      const output = requireOption(OUTPUT_OPTION, flags, this.process.env);
      const timeoutMs = requireOption(POWER_TIMEOUT_OPTION, flags, this.process.env);
      await withPowered(this, subject, flags, async (powered) => {
        const results: OrderResult[] = [];
        try {
          await runOrders(this, powered, orders, { timeoutMs, agreed }, results);
        } finally {
          const proven = results.length === orders.length && results.every((result) => result.proven);
          const report = { host: powered.name, command: `power ${name}`, proven, orders: results };
          if (output === "json") printLine(this, JSON.stringify(report));
        }
        if (output === "table") for (const result of results) printLine(this, `${powered.name}: ${tellResult(result)}`);
      });
    },
    parameters: {
      positional: SUBJECT_POSITIONAL,
      flags: {
        ...SUBJECT_FLAGS,
        ...flagsOf({ timeout: POWER_TIMEOUT_OPTION }),
        yes: { kind: "boolean", default: false, withNegated: false, brief: "Agree beforehand to what would be asked" },
      },
      aliases: { n: "namespace", o: "output", y: "yes" },
    },
    docs: {
      brief: docs.brief,
      fullDescription: [
        docs.more,
        "",
        "With --target the host's identity is verified first, and the order is refused while a remediation owns the host, while",
        "it is in maintenance, or where its target is ambiguous. Exit codes: 0 proven, 1 failed or not proven in time, 2 wrong",
        "command line, 3 refused (the order was not sent).",
      ].join("\n"),
      customUsage: [
        { input: "redfish://bmc-3.example", brief: "asks for user and password" },
        { input: "--target worker-3", brief: "by its FencingTarget and that one's Secret" },
        { input: "--target worker-3 --yes --timeout 60s -o json", brief: "for scripts" },
      ],
    },
  });
}

async function runOrders(
  context: CliContext,
  powered: Powered,
  orders: readonly Order[],
  options: { timeoutMs: number; agreed: boolean },
  results: OrderResult[],
): Promise<void> {
  for (const order of orders) {
    const isFirst = results.length === 0;
    try {
      // Who has agreed to the first order of a cycle has agreed to all of it.
      const result = await orderPower(context, powered, order, { ...options, agreed: options.agreed || !isFirst });
      results.push(result);
      if (!result.proven) throw new CommandFailure(`${powered.name}: ${tellResult(result)}`);
    } catch (error) {
      if (isFirst) throw error;
      printNote(context, `${powered.name} was powered off and is not proven on: see to it`);
      throw error instanceof Refusal ? new CommandFailure(error.message, { cause: error }) : error;
    }
  }
}

/** `ironfence power`: one host's power, by hand. */
export const powerCommands = buildRouteMap({
  routes: {
    status: statusCommand,
    off: orderCommand("off", ["Off"], {
      brief: "Power a host off at once, and prove it",
      more: "Sends ForceOff, also where the host reads Off, then reads the power until it was Off twice in a row. One reading is no\nproof, nor is an answer.",
    }),
    on: orderCommand("on", ["On"], {
      brief: "Power a host on, and read it back",
      more: "Refused with --target while the node is tainted out-of-service: its volumes may be in use elsewhere.",
    }),
    cycle: orderCommand("cycle", ["Off", "On"], {
      brief: "Power a host off, prove it, and power it on again",
      more: "On is sent only after Off was read twice in a row, so that it is a power cycle in any case.",
    }),
  },
  docs: {
    brief: "Read or change the power of one host, by address or FencingTarget",
    fullDescription:
      "Works without a cluster where an address is given. Passwords come from $IRONFENCE_BMC_PASSWORD, --password-file or the prompt, never from the command line.",
  },
});
