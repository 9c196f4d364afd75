import { ADDRESS_TARGETS } from "./address.ts";
import { IPMI_TARGETS } from "./ipmi.ts";
import { REDFISH_TARGETS } from "./redfish.ts";
import { KUBECONFIG_TARGETS } from "./kubeconfig.ts";
import { METAL3_TARGETS } from "./metal3.ts";
import type { FuzzTarget } from "./target.ts";

/** Parsers of what comes from outside, from BMCs, tenants and owners of hosts: for the short run in the tests and for the long one of the bench. */
export const FUZZ_TARGETS: readonly FuzzTarget[] = [
  ...IPMI_TARGETS,
  ...REDFISH_TARGETS,
  ...ADDRESS_TARGETS,
  ...KUBECONFIG_TARGETS,
  ...METAL3_TARGETS,
];
