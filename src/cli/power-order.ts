import type { PowerReading } from "../bmc/driver.ts";
import { BmcError } from "../bmc/errors.ts";
import type { BmcErrorCode } from "../bmc/errors.ts";
import { waitForPower } from "../bmc/wait-for-power.ts";
import { confirm } from "./confirm.ts";
import type { CliContext } from "./context.ts";
import { printNote } from "./context.ts";
import type { Order, Powered } from "./powered.ts";

/** What one order came to. */
export interface OrderResult {
  order: Order;
  /** Whether the state was read back: for Off twice in a row, since BMCs show a wrong one while they restart. */
  proven: boolean;
  state: PowerReading["state"];
  /** What the BMC said last, literally, or why it could not be read. */
  raw: string;
  elapsedMs: number;
}

const FRESH_READS = { Off: 2, On: 1 } as const;
const POLL_MS = 500;
/** How long nothing may change before a person is told that it is still waited for. */
const PATIENCE_MS = 5_000;
/** After these it is not known whether the order arrived: the state tells. All others say that it has had no effect. */
const UNCERTAIN: ReadonlySet<BmcErrorCode> = new Set(["Timeout", "BadResponse", "Unreachable"]);

/**
 * Checks, asks where something speaks against it, orders, and reads until the effect is proven or the time is up. What goes
 * on is told on standard error.
 *
 * @param agreed a person has agreed to what `confirm` would ask.
 * @throws Refusal where it must not be sent, BmcError where it was refused.
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
  await send(context, powered, order);
  const device = { readPower: (signal: AbortSignal) => powered.readPower(signal) };
  const proof = await waitForPower(
    tellingProgress(context, device, startMs),
    order,
    { clock, pollMs: POLL_MS, timeoutMs: options.timeoutMs, freshReads: FRESH_READS[order] },
    signal,
  );
  const elapsedMs = Math.round(clock.monotonicMs() - startMs);
  if (proof.proven) return { order, proven: true, ...proof.reading, elapsedMs };
  const { last, error } = proof;
  if (error !== undefined) return { order, proven: false, state: "Unknown", raw: error.message, elapsedMs };
  return { order, proven: false, state: last?.state ?? "Unknown", raw: last?.raw ?? "nothing", elapsedMs };
}

/** For people: what an order came to. */
export function tellResult({ order, proven, raw, elapsedMs }: OrderResult): string {
  const time = `${(elapsedMs / 1_000).toFixed(1)} s`;
  const wanted = order.toLowerCase();
  if (!proven) return `not proven ${wanted} after ${time}: the BMC says ${raw}; the order may still take effect`;
  return order === "Off" ? `off: proven by two fresh reads after ${time}` : `on: read back after ${time}`;
}

async function send(context: CliContext, powered: Powered, order: Order): Promise<void> {
  printNote(context, `  ordering ${order === "Off" ? "ForceOff" : "On"}`);
  try {
    await (order === "Off" ? powered.forceOff(context.signal) : powered.on(context.signal));
  } catch (error) {
    if (!(error instanceof BmcError) || !UNCERTAIN.has(error.code)) throw error;
    printNote(context, `  the answer was lost (${error.message}): the power state will tell`);
  }
}

function tellingProgress(
  context: CliContext,
  device: { readPower(signal: AbortSignal): Promise<PowerReading> },
  startMs: number,
): { readPower(signal: AbortSignal): Promise<PowerReading> } {
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
