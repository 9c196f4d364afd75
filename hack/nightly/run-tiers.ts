import type { Tier } from "./tiers.ts";

export interface TierReport {
  name: string;
  result: "passed" | "failed" | "timed out" | "could not start";
  seconds: number;
}

/** Runs a command. @returns its exit code; null where it was ended after `timeoutMs`. */
export type StartTier = (run: readonly string[], timeoutMs: number) => Promise<number | null>;

/**
 * Runs the tiers one after the other, and prints a line of each at the end: its result, how long it took, and what it
 * shows.
 */
export async function runTiers(
  tiers: readonly Tier[],
  start: StartTier,
  print: (text: string) => void,
): Promise<TierReport[]> {
  const report: TierReport[] = [];
  for (const tier of tiers) {
    print(`== ${tier.name}: npm run ${tier.run.join(" ")}`);
    const begun = performance.now();
    const result = await resultOf(tier, start);
    report.push({ name: tier.name, result, seconds: Math.round((performance.now() - begun) / 1_000) });
  }
  print("== what ran");
  for (const [index, { name, result, seconds }] of report.entries()) {
    print(`${result}: ${name} (${seconds} s): ${tiers[index]?.shows ?? ""}`);
  }
  return report;
}

async function resultOf({ run, timeoutMinutes }: Tier, start: StartTier): Promise<TierReport["result"]> {
  try {
    const code = await start(run, timeoutMinutes * 60_000);
    if (code === null) return "timed out";
    return code === 0 ? "passed" : "failed";
  } catch {
    return "could not start";
  }
}
