import { setTimeout as delay } from "node:timers/promises";
import { systemClock } from "../../src/runtime/system.ts";
import { benchAgent } from "./agent.ts";
import { benchBmc } from "./bmc.ts";
import { benchClusters } from "./clusters.ts";
import { benchFence } from "./fence.ts";
import { benchHostileClusters } from "./hostile.ts";
import { benchOrder } from "./order.ts";
import { printFigures } from "./report.ts";

/** A part that takes longer hangs: each of them takes at most ten minutes on two cores that other work shares. */
const PART_MS_MAX = 20 * 60_000;

/** Every figure that has an aim, part by part, and one table of them. A part that fails does not end the others. */
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
    // What hangs would go on during the next part, so the table shows what there is.
    if (ended === "hangs") break;
  }
  printFigures();
  // Timers of a part that hangs do not keep this process.
  process.exit();
}

function describeFailure(error: unknown): string {
  return `failed: ${error instanceof Error ? error.message : String(error)};`;
}
