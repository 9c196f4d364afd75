import type { Tier } from "./tiers.ts";

export interface TierReport {
  name: string;
  result: "passed" | "failed" | "timed out" | "could not start";
  seconds: number;
}

/** Runs a command. @returns its exit code; null if it was ended after `timeoutMs`. */
export type StartTier = (run: readonly string[], timeoutMs: number) => Promise<number | null>;

/**
 * Runs the tiers one after the other. At the end it prints one line per tier: its result, its duration, and what it
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
