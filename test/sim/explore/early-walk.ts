import type { Random } from "../../../src/runtime/random.ts";
import { seededRandom } from "../../lib/seeded-random.ts";
import type { Act, Run, Shape } from "./run.ts";
import { below, drawAct, drawFault, drawShape, pick, timeOf } from "./walk.ts";

/** The seed of these runs, in addition to that of the random runs. */
const EARLY_SEED = 700_000_000;
/** After this time, the first probes have read the hosts On. */
const PROBED_MS = 15_000;
/** Durations of a power loss. They end around a renewal of the lease, the proof, the taint and the release. */
const BACK_MS = [2_000, 8_000, 12_000, 14_000, 16_000, 17_000, 18_000, 19_000, 20_000, 22_000, 30_000, 90_000];

/**
 * The random run of a seed in which hosts under a health check lose power while their nodes are still Ready, and mostly
 * come back at a critical moment. It is the same on every machine.
 */
export function earlyOf(seed: number): Run {
  const random = seededRandom(EARLY_SEED + seed);
  const shape: Shape = {
    // With wrong clocks or slow calls, hardly any release is early.
    ...(below(random, 3) === 0 ? drawShape(random) : { agents: pick(random, [[{}], [{}, {}]]) }),
    detector: true,
    hosts: 4 + below(random, 6),
    ...(below(random, 3) === 0 && { skips: true }),
    ...(below(random, 6) === 0 && { controlPlane: true }),
  };
  const lost = ["n1", "n2", "n3"].slice(0, 1 + below(random, 3));
  const script = [
    ...lost.flatMap((host) => drawLoss(random, host)),
    // A remediation that a user never deletes would block all later ones of the control plane.
    ...Array.from({ length: shape.controlPlane === true ? 0 : below(random, 6) }, () => drawAct(random, shape)),
  ];
  script.sort((a, b) => timeOf(a) - timeOf(b));
  const faults = Array.from({ length: below(random, 3) }, () => drawFault(random, shape));
  return { name: "early", seed, shape, script, faults };
}

/** A host loses power, or seems to, and comes back in a random way. */
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
    // It loses power a second time and gets it back.
    () => [off, on, { ...off, when: { atMs: backMs + below(random, 20_000) } }],
    // It hangs first, until a watchdog or a user cycles its power.
    () => [
      { when: at, do: "hang", host },
      { when: back, do: "order", host, order: pick(random, ["PowerCycle", "ForceRestart", "ForceOff"]) },
    ],
    // The BMC reports a wrong state while the kubelet does not renew its lease.
    () => [
      { when: at, do: "hang", host },
      { when: { atMs: atMs + 8_000 }, do: pick(random, ["flapPower", "freezePower"]), host, forMs: 20_000 },
      { when: back, do: "resume", host },
    ],
    // The BMC keeps reporting Off although the host has come back.
    () => [off, { when: { atMs: backMs - 400 }, do: "freezePower", host, forMs: pick(random, [3_000, 20_000]) }, on],
    // The BMC loses its power, too.
    () => [
      { when: at, do: "cutMains", host },
      { when: back, do: "restoreMains", host },
    ],
  ];
  return pick(random, ways)();
}
