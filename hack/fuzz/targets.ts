import { ADDRESS_TARGETS } from "./address.ts";
import { IPMI_TARGETS } from "./ipmi.ts";
import { REDFISH_TARGETS } from "./redfish.ts";
import type { FuzzTarget } from "./target.ts";

/** Every parser of what comes from outside in `src/bmc`: for the short run in the tests and for the long one of the bench. */
export const FUZZ_TARGETS: readonly FuzzTarget[] = [...IPMI_TARGETS, ...REDFISH_TARGETS, ...ADDRESS_TARGETS];
