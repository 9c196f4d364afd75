import { setTimeout as delay } from "node:timers/promises";
import { systemClock } from "../../src/runtime/system.ts";
import { benchAgent } from "./agent.ts";
import { benchBmc } from "./bmc.ts";
import { benchClusters } from "./clusters.ts";
import { benchFence } from "./fence.ts";
import { benchHostileClusters } from "./hostile.ts";
import { benchOrder } from "./order.ts";
import { printFigures } from "./report.ts";

/**
 * A part that takes longer is taken to hang. Each part needs at most ten minutes on two cores that other work shares.
 */
const PART_MS_MAX = 20 * 60_000;

/**
 * Runs every part of the bench and prints one table of all figures that have an aim. A part that fails does not end the
 * others.
 */
export async function benchAll(clusterCount: number): Promise<void> {
  const parts: readonly [name: string, run: () => Promise<void>][] = [
    ["agent --nodes 5000", () => benchAgent(5_000)],
    ["clusters", () => benchClusters(clusterCount)],
    ["hostile", () => benchHostileClusters(clusterCount)],
    ["order", benchOrder],
    ["bmc", benchBmc],
    ["fence", () => benchFence()],
  ];
  for (const [index, [name, run]] of parts.entries()) {
    console.log(`\n== ${index + 1} of ${parts.length}: ${name}`);
    const begunMs = systemClock.monotonicMs();
    const ended = await Promise.race([run().then(() => "ended", describeFailure), delay(PART_MS_MAX, "hangs")]);
    console.log(`== ${name} ${ended} after ${((systemClock.monotonicMs() - begunMs) / 1_000).toFixed(0)} s`);
    if (ended === "ended") continue;
    process.exitCode = 1;
    // A part that hangs would still run during the next one, so the run ends here and the table shows the figures so
    // far.
    if (ended === "hangs") break;
  }
  printFigures();
  // Without this, the timers of a part that hangs would keep this process running.
  process.exit();
}

function describeFailure(error: unknown): string {
  return `failed: ${error instanceof Error ? error.message : String(error)};`;
}
