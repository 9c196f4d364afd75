import { BMC_DELAY_MS, measureSteps } from "../e2e/figures.ts";
import { figure, median } from "./report.ts";

/** How much longer than the BMC a fence may take, from the end of a duration until the pod is gone. */
const ADDED_S_MAX = 0.5;

/**
 * Measures whole fences on the real control plane.
 *
 * @param graceMs silence after which a node counts as dead.
 */
export async function benchFence(graceMs?: number): Promise<void> {
  const figures = await measureSteps(graceMs);
  // A duration begins at the whole second of the transition: Kubernetes stores no finer time.
  const value = (median(figures["duration over → pod object gone"]) - BMC_DELAY_MS) / 1_000;
  const what = "duration over → pod object gone, above the BMC's 2 s";
  figure({ what, value, unit: "s", aim: ADDED_S_MAX, fails: false });
}
