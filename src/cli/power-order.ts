import type { PowerReading } from "../bmc/driver.ts";
import { BmcError } from "../bmc/errors.ts";
import type { BmcErrorCode } from "../bmc/errors.ts";
import { POLL_MS_MIN, waitForPower } from "../bmc/wait-for-power.ts";
import { REORDER_AFTER_MS } from "../remediator/machine/model/timings.ts";
import { confirm } from "./confirm.ts";
import type { CliContext } from "./context.ts";
import { printNote } from "./context.ts";
import { CommandFailure, Refusal } from "./failures.ts";
import type { Order, Powered } from "./powered.ts";

/** What one order came to. */
export interface OrderResult {
  order: Order;
  /** Whether the state was read back: for Off twice in a row, since BMCs show a wrong one while they restart. */
  proven: boolean;
  state: PowerReading["state"];
  /** What the BMC said last, literally, or why it could not be asked. */
  raw: string;
  elapsedMs: number;
}

const FRESH_READS = { Off: 2, On: 1 } as const;
const OPPOSITE = { Off: "On", On: "Off" } as const;
/** A BMC that refused an order, as some do right after another one, is asked again so much later. */
const REFUSED_RETRY_MS = 3_000;
/** How long nothing may change before a message says that the command still waits. */
const PATIENCE_MS = 5_000;
/** After these it is not known whether the order arrived: the power state shows it. */
const UNCERTAIN: ReadonlySet<BmcErrorCode> = new Set(["Timeout", "BadResponse", "Unreachable"]);

/**
 * Checks, asks where something speaks against it, orders, and reads until the effect is proven or the time is up. An order
 * that was refused for now, or that has shown no effect for a while, is sent again: to the next level of devices, where
 * there is one. Progress is printed on standard error.
 *
 * @param options `agreed`: the user has agreed already to every question.
 * @throws Refusal where it must not be sent, CommandFailure where it must not be sent again, BmcError where the device will
 * not take it.
 */
export async function orderPower(
  context: CliContext,
  powered: Powered,
  order: Order,
  options: { timeoutMs: number; agreed: boolean },
): Promise<OrderResult> {
  const { clock, signal } = context;
  const { identity, concerns } = await powered.check(order, signal);
  printNote(context, `  ${identity}`);
  await confirm(context, `power ${order.toLowerCase()} ${powered.name}`, concerns, options.agreed);
  // The answer may have taken its time, in which host and cluster went on.
  if (concerns.length > 0 && !options.agreed) await powered.check(order, signal);
  const startMs = clock.monotonicMs();
  const endMs = startMs + options.timeoutMs;
  const device = tellingProgress(context, powered, startMs);
  let sent = await send(context, powered, order);
  for (;;) {
    const timeoutMs = Math.min(endMs - clock.monotonicMs(), sent === "Refused" ? REFUSED_RETRY_MS : REORDER_AFTER_MS);
    const wait = { clock, pollMs: POLL_MS_MIN, timeoutMs, freshReads: FRESH_READS[order] };
    const proof = await waitForPower(device, order, wait, signal);
    const elapsedMs = Math.round(clock.monotonicMs() - startMs);
    if (proof.proven) return { order, proven: true, ...proof.reading, elapsedMs };
    const { last, error } = proof;
    if (clock.monotonicMs() >= endMs || error?.retryable === false) {
      // A last reading that our own deadline has cut short says less than the one before.
      if (last !== undefined && (error === undefined || error.code === "Timeout")) {
        return { order, proven: false, ...last, elapsedMs };
      }
      return { order, proven: false, state: "Unknown", raw: error?.message ?? "nothing", elapsedMs };
    }
    if (sent === "Refused" || (error === undefined && last?.state === OPPOSITE[order])) {
      await checkAgain(powered, order, signal);
      sent = await send(context, powered, order);
    }
  }
}

/** A refusal says that nothing was ordered: after the first order it is a failure. */
async function checkAgain(powered: Powered, order: Order, signal: AbortSignal): Promise<void> {
  try {
    await powered.check(order, signal);
  } catch (error) {
    throw error instanceof Refusal ? new CommandFailure(error.message, { cause: error }) : error;
  }
}

/** The result of an order, as text. */
export function tellResult({ order, proven, raw, elapsedMs }: OrderResult): string {
  const time = `${(elapsedMs / 1_000).toFixed(1)} s`;
  const wanted = order.toLowerCase();
  if (!proven) return `not proven ${wanted} after ${time}; last seen: ${raw}; the order may still take effect`;
  return order === "Off" ? `off: proven by two fresh reads after ${time}` : `on: read back after ${time}`;
}

async function send(context: CliContext, powered: Powered, order: Order): Promise<"Sent" | "Refused"> {
  printNote(context, `  ordering ${order === "Off" ? "ForceOff" : "On"}`);
  try {
    await (order === "Off" ? powered.forceOff(context.signal) : powered.on(context.signal));
    return "Sent";
  } catch (error) {
    if (!(error instanceof BmcError) || !error.retryable) throw error;
    const isUncertain = UNCERTAIN.has(error.code);
    const what = isUncertain ? "the answer was lost" : "refused for now";
    printNote(context, `  ${what} (${error.message}): the power state will tell`);
    return isUncertain ? "Sent" : "Refused";
  }
}

function tellingProgress(
  context: CliContext,
  device: Pick<Powered, "readPower">,
  startMs: number,
): Pick<Powered, "readPower"> {
  let told = "";
  let toldAtMs = -Infinity;
  const tell = (what: string): void => {
    const nowMs = context.clock.monotonicMs();
    if (what === told && nowMs - toldAtMs < PATIENCE_MS) return;
    told = what;
    toldAtMs = nowMs;
    printNote(context, `  ${((nowMs - startMs) / 1_000).toFixed(1).padStart(6)} s  ${what}`);
  };
  return {
    async readPower(signal) {
      try {
        const reading = await device.readPower(signal);
        tell(`the BMC says: ${reading.raw}`);
        return reading;
      } catch (error) {
        if (!signal.aborted && error instanceof Error) tell(`cannot be read: ${error.message}`);
        throw error;
      }
    },
  };
}
