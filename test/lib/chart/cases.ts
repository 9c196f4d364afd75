import { AGENT_CASES } from "./agent-cases.ts";
import { INSTALL_CASES } from "./install-cases.ts";
import { METRICS_CASES } from "./metrics-cases.ts";
import { NETWORK_CASES } from "./network-cases.ts";
import type { Case } from "./rendered.ts";

/** A case for every value of the chart, by its path: its effect on the rendered objects, and the objects without it. */
export const CASES: Readonly<Record<string, Case>> = {
  ...INSTALL_CASES,
  ...AGENT_CASES,
  ...NETWORK_CASES,
  ...METRICS_CASES,
};
