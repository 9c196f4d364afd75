import type { Random } from "../../../src/runtime/random.ts";
import { seededRandom } from "../../lib/seeded-random.ts";
import { earlyOf } from "./early-walk.ts";
import type { Act, Run } from "./run.ts";
import { below, pick, timeOf, walkOf, worldOf } from "./walk.ts";

/** Offset of the seed for random acts with outlets, in addition to the random run of the same seed. */
const OUTLETS_SEED = 900_000_000;
/** Offset of the seed for random acts while outlets are off for an AC cycle. */
const CYCLE_SEED = 1_800_000_000;
const HOSTS = ["n1", "n2", "n3"] as const;
/** The time of the first orders in most runs. */
const ABOUT_MS = 20_000;

/**
 * A random run of any kind in which outlets feed the hosts. Most BMCs fail shortly before the power-off of their hosts,
 * and some remediations request a crash dump or an AC cycle. It is the same on every machine.
 */
export function outletsOf(seed: number): Run {
  const random = seededRandom(OUTLETS_SEED + seed);
  const draw = pick(random, [walkOf, worldOf, earlyOf]);
  const run = draw(seed);
  const script = run.script.map((act): Act =>
    act.do === "remediate" ? { ...act, strategy: { ...act.strategy, ...drawExtras(random) } } : act,
  );
  for (const host of HOSTS) script.push(...drawTrouble(random, host));
  script.push(...drawCycleTrouble(seededRandom(CYCLE_SEED + seed)));
  return { ...run, name: "outlets", shape: { ...run.shape, outlets: true }, script: script.toSorted(byTime) };
}

function drawExtras(random: Random): Record<string, unknown> {
  return {
    ...(below(random, 3) === 0 && { diagnostics: "NMI", diagnosticsTimeout: pick(random, ["2s", "10s", "30s"]) }),
    ...(below(random, 3) === 0 && { powerOn: "ACCycle", acCycleTimeout: pick(random, ["20s", "90s"]) }),
  };
}

/** A BMC fails with its host, and may come back. Outlets may fail as well. */
function drawTrouble(random: Random, host: string): Act[] {
  const acts: Act[] = [];
  const atMs = ABOUT_MS + below(random, 15_000);
  if (below(random, 4) > 0) acts.push({ when: { atMs }, do: "bmc", host, is: "silent" });
  if (below(random, 2) === 0) {
    acts.push({ when: { atMs: atMs + 5_000 + below(random, 30_000) }, do: "bmc", host, is: "up" });
  }
  if (below(random, 3) === 0) {
    acts.push({
      when: { atMs: atMs + below(random, 10_000) },
      do: "outlets",
      host,
      is: pick(random, ["welded", "silent"]),
    });
    acts.push({ when: { atMs: atMs + 15_000 + below(random, 20_000) }, do: "outlets", host, is: "well" });
  }
  return acts;
}

/**
 * Faults while outlets are off: another unit is chained to their PDU, an agent of another build takes over, or the
 * agent ends.
 */
function drawCycleTrouble(random: Random): Act[] {
  const host = pick(random, HOSTS);
  const afterMs = below(random, 15_000);
  const when = { on: "PoweringOn", afterMs } as const;
  const isGone = { on: "PoweringOn", afterMs: afterMs + 5_000 + below(random, 60_000) } as const;
  const draws: (() => Act[])[] = [
    () => [],
    () => [
      { when, do: "outlets", host, is: "chained" },
      { when: isGone, do: "outlets", host, is: "well" },
    ],
    () => [{ when, do: "otherVersion", name: host, forMs: pick(random, [500, 5_000, 30_000]) }],
    () => [{ when, do: "crash", agent: 0 }],
  ];
  return pick(random, draws)();
}

function byTime(a: Act, b: Act): number {
  return timeOf(a) - timeOf(b);
}
