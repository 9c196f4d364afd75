import { mutantsOf } from "./mutant.ts";
import type { Mutant } from "./mutant.ts";

const mutant = mutantsOf("src/cli/check");
const CHECKS = "test/unit/cli/check/checks.test.ts";

export const CLI_MUTANTS: readonly Mutant[] = [
  mutant(
    "unread-passes",
    "check",
    "a check that may not read something never passes",
    'return { level: "warning", message: `cannot be checked: ${why}` };',
    'return { level: "ok", message: `cannot be checked: ${why}` };',
    CHECKS,
  ),
  mutant(
    "unprobed-passes",
    "lines/target-checks",
    "a target that was never probed is not called usable",
    "targets.filter(({ spec, status }) => !spec.maintenance && readyOf(status) === undefined)",
    "targets.filter(({ spec, status }) => spec.maintenance && readyOf(status) === undefined)",
    CHECKS,
  ),
  mutant(
    "unlisted-hosts-cover",
    "lines/target-checks",
    "no node is called covered by BareMetalHosts that may not be listed",
    "...(bareMetalHosts === undefined ? [] : HOSTS)",
    "...(bareMetalHosts === undefined ? HOSTS : [])",
    CHECKS,
  ),
  mutant(
    "refused-login-repeated",
    "read/live-probes",
    "waiting for checks sends a refused password no second time",
    "refused.push(...result.refused);",
    "refused.push(...result.refused.slice(0, 0));",
    "test/integration/cli-check.test.ts",
  ),
];
