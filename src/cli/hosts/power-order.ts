import type { PowerReading } from "../../bmc/interface/driver.ts";
import { BmcError } from "../../bmc/interface/errors.ts";
import type { BmcErrorCode } from "../../bmc/interface/errors.ts";
import { POLL_MS_MIN, waitForPower } from "../../bmc/devices/wait-for-power.ts";
import { REORDER_AFTER_MS } from "../../remediator/machine/model/decision/timings.ts";
import { confirm } from "../terminal/confirm.ts";
import type { CliContext } from "../terminal/context.ts";
import { printNote } from "../terminal/context.ts";
import { CommandFailure, CommandRefusal } from "../errors/failures.ts";
import type { Order, SelectedHost } from "./selected-host.ts";

/** The result of one order. */
export interface OrderResult {
  order: Order;
  /** Whether the state was read back: Off twice in a row, since a BMC that restarts may report a wrong state. */
  proven: boolean;
  state: PowerReading["state"];
  /** What the BMC reported last, literally, or why it could not be read. */
  raw: string;
  elapsedMs: number;
}

const FRESH_READS = { Off: 2, On: 1 } as const;
const OPPOSITE = { Off: "On", On: "Off" } as const;
/** Some BMCs refuse an order right after another one. A refused order is sent again after this time. */
const REFUSED_RETRY_MS = 3_000;
/** If nothing changes for this long, a message says that the command still waits. */
const PATIENCE_MS = 5_000;
/** After these errors, the order may have arrived. The power state shows whether it did. */
const UNCERTAIN: ReadonlySet<BmcErrorCode> = new Set(["Timeout", "BadResponse", "Unreachable"]);

/**
 * Checks, asks the user if there are concerns, sends the order, and reads until the effect is proven or the time is up.
 * An order that was refused for now, or that has shown no effect for some time, is sent again, to the next level of
 * devices if there is one. Progress is printed on standard error.
 *
 * @param options `agreed`: the user has agreed already to every question.
 * @throws CommandRefusal if the order must not be sent, CommandFailure if it must not be sent again, BmcError if the
 * device does not accept it.
 */
export async function orderPowerByHand(
  context: CliContext,
  host: SelectedHost,
  order: Order,
  options: { timeoutMs: number; agreed: boolean },
): Promise<OrderResult> {
  const { clock, signal } = context;
  const { identity, concerns } = await host.check(order, signal);
  printNote(context, `  ${identity}`);
  await confirm(context, `power ${order.toLowerCase()} ${host.name}`, concerns, options.agreed);
  // Host and cluster may have changed while the user was asked.
  if (concerns.length > 0 && !options.agreed) await host.check(order, signal);
  const startMs = clock.monotonicMs();
  const endMs = startMs + options.timeoutMs;
  const device = withProgress(context, host, startMs);
  let sent = await send(context, host, order);
  for (;;) {
    const timeoutMs = Math.min(endMs - clock.monotonicMs(), sent === "Refused" ? REFUSED_RETRY_MS : REORDER_AFTER_MS);
    const wait = { clock, pollMs: POLL_MS_MIN, timeoutMs, freshReads: FRESH_READS[order] };
    const proof = await waitForPower(device, order, wait, signal);
    const elapsedMs = Math.round(clock.monotonicMs() - startMs);
    if (proof.proven) return { order, proven: true, ...proof.reading, elapsedMs };
    const { last, error } = proof;
    if (clock.monotonicMs() >= endMs || error?.retryable === false) {
      // If the deadline of the command cut the last reading short, the reading before it is more useful.
      if (last !== undefined && (error === undefined || error.code === "Timeout")) {
        return { order, proven: false, ...last, elapsedMs };
      }
      return { order, proven: false, state: "Unknown", raw: error?.message ?? "nothing", elapsedMs };
    }
    if (sent === "Refused" || (error === undefined && last?.state === OPPOSITE[order])) {
      await checkAgain(host, order, signal);
      sent = await send(context, host, order);
    }
  }
}

/**
 * Checks again before a further order. A CommandRefusal means that nothing was ordered, so it becomes a CommandFailure
 * here.
 */
async function checkAgain(host: SelectedHost, order: Order, signal: AbortSignal): Promise<void> {
  try {
    await host.check(order, signal);
  } catch (error) {
    throw error instanceof CommandRefusal ? new CommandFailure(error.code, error.message, { cause: error }) : error;
  }
}

/** The result of an order, as text. */
export function describeResult({ order, proven, raw, elapsedMs }: OrderResult): string {
  const time = `${(elapsedMs / 1_000).toFixed(1)} s`;
  const wanted = order.toLowerCase();
  if (!proven)
    return `not proven ${wanted} after ${time}; last reading: ${raw}; the order may still take effect: read it again with ironfence power status`;
  return order === "Off" ? `off: proven by two fresh reads after ${time}` : `on: read back after ${time}`;
}

async function send(context: CliContext, host: SelectedHost, order: Order): Promise<"Sent" | "Refused"> {
  printNote(context, `  ordering ${order === "Off" ? "ForceOff" : "On"}`);
  try {
    await (order === "Off" ? host.forceOff(context.signal) : host.on(context.signal));
    return "Sent";
  } catch (error) {
    if (!(error instanceof BmcError) || !error.retryable) throw error;
    const isUncertain = UNCERTAIN.has(error.code);
    const what = isUncertain ? "the answer was lost" : "the BMC refused it for now";
    printNote(context, `  ${what} (${error.message}): the power state will show the result`);
    return isUncertain ? "Sent" : "Refused";
  }
}

function withProgress(
  context: CliContext,
  device: Pick<SelectedHost, "readPower">,
  startMs: number,
): Pick<SelectedHost, "readPower"> {
  let reported = "";
  let reportedAtMs = -Infinity;
  const report = (what: string): void => {
    const nowMs = context.clock.monotonicMs();
    if (what === reported && nowMs - reportedAtMs < PATIENCE_MS) return;
    reported = what;
    reportedAtMs = nowMs;
    printNote(context, `  ${((nowMs - startMs) / 1_000).toFixed(1).padStart(6)} s  ${what}`);
  };
  return {
    async readPower(signal) {
      try {
        const reading = await device.readPower(signal);
        report(`the BMC reports: ${reading.raw}`);
        return reading;
      } catch (error) {
        if (!signal.aborted && error instanceof Error) report(`cannot be read: ${error.message}`);
        throw error;
      }
    },
  };
}
