import { ADDRESS_TARGETS } from "./address.ts";
import { EVIDENCE_TARGETS } from "./evidence.ts";
import { DRIVER_TARGETS } from "./driver.ts";
import { IPMI_TARGETS } from "./ipmi.ts";
import { REDFISH_TARGETS } from "./redfish.ts";
import { SNMP_TARGETS } from "./snmp.ts";
import { KUBECONFIG_TARGETS } from "./kubeconfig.ts";
import { METRICS_TARGETS } from "./metrics.ts";
import { METAL3_TARGETS } from "./metal3.ts";
import type { FuzzTarget } from "./target.ts";

/**
 * Parsers of what BMCs, tenants, owners of hosts and strangers send: for the short run in the tests and the long one of
 * the bench.
 */
export const FUZZ_TARGETS: readonly FuzzTarget[] = [
  ...IPMI_TARGETS,
  ...REDFISH_TARGETS,
  ...DRIVER_TARGETS,
  ...SNMP_TARGETS,
  ...EVIDENCE_TARGETS,
  ...ADDRESS_TARGETS,
  ...KUBECONFIG_TARGETS,
  ...METAL3_TARGETS,
  ...METRICS_TARGETS,
];
