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
 * All parsers of data from BMCs, tenants, owners of hosts and untrusted clients. The tests fuzz them for a short time,
 * and the bench for a long time.
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
