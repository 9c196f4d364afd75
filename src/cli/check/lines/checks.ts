import { API_CHECKS } from "./api-checks.ts";
import type { Check } from "../check.ts";
import type { Facts } from "../facts.ts";
import { HEALTH_CHECKS } from "./health-checks.ts";
import { INSTALL_CHECKS } from "./install-checks.ts";
import { NODE_CHECKS } from "./node-checks.ts";
import { REMEDIATION_CHECKS } from "./remediation-checks.ts";
import { TARGET_CHECKS } from "./target-checks.ts";

/** The checks after an installation. Each has a section in docs/reference/checks.md. */
export const CHECKS: readonly Check<Facts>[] = [
  ...API_CHECKS,
  ...INSTALL_CHECKS,
  ...TARGET_CHECKS,
  ...HEALTH_CHECKS,
  ...REMEDIATION_CHECKS,
  ...NODE_CHECKS,
];
