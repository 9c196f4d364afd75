import type { Random } from "../../../src/runtime/random.ts";
import { seededRandom } from "../../lib/seeded-random.ts";
import type { Act, Run, Shape } from "./run.ts";
import { below, drawAct, drawFault, drawShape, pick, timeOf } from "./walk.ts";

/** The seed of these runs, in addition to that of the random runs. */
const EARLY_SEED = 700_000_000;
/** Later than the first probes, which read the hosts On. */
const PROBED_MS = 15_000;
/** From a loss of power to its end: around a renewal of the lease, the proof, the taint and the release. */
const BACK_MS = [2_000, 8_000, 12_000, 14_000, 16_000, 17_000, 18_000, 19_000, 20_000, 22_000, 30_000, 90_000];

/**
 * The random run of that seed in which hosts lose their power while their nodes still say that they are Ready, under a
 * health check, and mostly come back at a moment that matters. The same on every machine.
 */
export function earlyOf(seed: number): Run {
  const random = seededRandom(EARLY_SEED + seed);
  const shape: Shape = {
    // Wrong clocks and slow calls keep nearly all releases from being early.
    ...(below(random, 3) === 0 ? drawShape(random) : { agents: pick(random, [[{}], [{}, {}]]) }),
    detector: true,
    hosts: 4 + below(random, 6),
    ...(below(random, 3) === 0 && { skips: true }),
    ...(below(random, 6) === 0 && { controlPlane: true }),
  };
  const lost = ["n1", "n2", "n3"].slice(0, 1 + below(random, 3));
  const script = [
    ...lost.flatMap((host) => drawLoss(random, host)),
    // A remediation that a user leaves behind holds every later one of the control plane.
    ...Array.from({ length: shape.controlPlane === true ? 0 : below(random, 6) }, () => drawAct(random, shape)),
  ];
  script.sort((a, b) => timeOf(a) - timeOf(b));
  const faults = Array.from({ length: below(random, 3) }, () => drawFault(random, shape));
  return { name: "early", seed, shape, script, faults };
}

/** A host loses its power, or seems to, and comes back in one of the ways in which hosts do. */
function drawLoss(random: Random, host: string): Act[] {
  const atMs = PROBED_MS + below(random, 30_000);
  const backMs = atMs + pick(random, BACK_MS) + below(random, 1_000);
  const at = { atMs };
  const back = { atMs: backMs };
  const off: Act = { when: at, do: "order", host, order: "ForceOff" };
  const on: Act = { when: back, do: "order", host, order: "On" };
  const ways: (() => Act[])[] = [
    () => [off],
    ...[on, on, on, on].map((later) => () => [off, later]),
    // Its power goes again, and comes again.
    () => [off, on, { ...off, when: { atMs: backMs + below(random, 20_000) } }],
    // It stands still first, until a watchdog or a user cycles its power.
    () => [
      { when: at, do: "hang", host },
      { when: back, do: "order", host, order: pick(random, ["PowerCycle", "ForceRestart", "ForceOff"]) },
    ],
    // A lie of the BMC while the kubelet is silent.
    () => [
      { when: at, do: "hang", host },
      { when: { atMs: atMs + 8_000 }, do: pick(random, ["flapPower", "freezePower"]), host, forMs: 20_000 },
      { when: back, do: "resume", host },
    ],
    // Off is what the BMC goes on to report, though the host has come back.
    () => [off, { when: { atMs: backMs - 400 }, do: "freezePower", host, forMs: pick(random, [3_000, 20_000]) }, on],
    // The BMC loses its power, too.
    () => [
      { when: at, do: "cutMains", host },
      { when: back, do: "restoreMains", host },
    ],
  ];
  return pick(random, ways)();
}
