import { AC_CYCLE_MUTANTS } from "./ac-cycle.ts";
import { API_MUTANTS } from "./api.ts";
import { BMC_MUTANTS } from "./bmc.ts";
import { BMC_DRIVER_MUTANTS } from "./bmc-driver.ts";
import { BMC_IPMI_MUTANTS } from "./bmc-ipmi.ts";
import { BMC_SNMP_MUTANTS } from "./bmc-snmp.ts";
import { BMC_REDFISH_MUTANTS } from "./bmc-redfish.ts";
import { CLI_MUTANTS } from "./cli.ts";
import { CLUSTERS_MUTANTS } from "./clusters.ts";
import { CONFIG_MUTANTS } from "./config.ts";
import { DETECTOR_MUTANTS } from "./detector.ts";
import { DETECTOR_ACTIONS_MUTANTS } from "./detector-actions.ts";
import { DETECTOR_DECISIONS_MUTANTS } from "./detector-decisions.ts";
import { DETECTOR_MACHINES_MUTANTS } from "./detector-machines.ts";
import { EVIDENCE_MUTANTS } from "./evidence.ts";
import { DIAGNOSTICS_MUTANTS } from "./diagnostics.ts";
import { EARLY_MUTANTS } from "./early.ts";
import { KUBE_MUTANTS } from "./kube.ts";
import { OUTLETS_MUTANTS } from "./outlets.ts";
import { PREPARATION_MUTANTS } from "./preparation.ts";
import { REMEDIATOR_MUTANTS } from "./remediator.ts";
import { REMEDIATOR_BARE_METAL_HOST_MUTANTS } from "./remediator-bare-metal-host.ts";
import { REMEDIATOR_BEGINNING_MUTANTS } from "./remediator-beginning.ts";
import { REMEDIATOR_CALLS_MUTANTS } from "./remediator-calls.ts";
import { REMEDIATOR_HOLDS_MUTANTS } from "./remediator-holds.ts";
import { REMEDIATOR_ORPHANS_MUTANTS } from "./remediator-orphans.ts";
import { REMEDIATOR_POWER_OFF_MUTANTS } from "./remediator-power-off.ts";
import { REMEDIATOR_RELEASE_MUTANTS } from "./remediator-release.ts";
import { REMEDIATOR_REPROVISION_MUTANTS } from "./remediator-reprovision.ts";
import { REMEDIATOR_REQUESTS_MUTANTS } from "./remediator-requests.ts";
import { REMEDIATOR_TARGETS_MUTANTS } from "./remediator-targets.ts";
import { REMEDIATOR_UNDO_MUTANTS } from "./remediator-undo.ts";
import { REMEDIATOR_WAITS_MUTANTS } from "./remediator-waits.ts";
import { REMEDIATOR_WORKLOADS_MUTANTS } from "./remediator-workloads.ts";
import { TELEMETRY_MUTANTS } from "./telemetry.ts";
import type { Mutant } from "./mutant.ts";

/** All named mutants. Each file has those of one folder of `src`, or of one part of the detector or the remediator. */
export const MUTANTS: readonly Mutant[] = [
  ...AC_CYCLE_MUTANTS,
  ...API_MUTANTS,
  ...BMC_MUTANTS,
  ...BMC_DRIVER_MUTANTS,
  ...BMC_IPMI_MUTANTS,
  ...BMC_REDFISH_MUTANTS,
  ...BMC_SNMP_MUTANTS,
  ...CLI_MUTANTS,
  ...CLUSTERS_MUTANTS,
  ...CONFIG_MUTANTS,
  ...DETECTOR_MUTANTS,
  ...DETECTOR_ACTIONS_MUTANTS,
  ...DETECTOR_DECISIONS_MUTANTS,
  ...DETECTOR_MACHINES_MUTANTS,
  ...DIAGNOSTICS_MUTANTS,
  ...EARLY_MUTANTS,
  ...EVIDENCE_MUTANTS,
  ...KUBE_MUTANTS,
  ...OUTLETS_MUTANTS,
  ...PREPARATION_MUTANTS,
  ...REMEDIATOR_MUTANTS,
  ...REMEDIATOR_BARE_METAL_HOST_MUTANTS,
  ...REMEDIATOR_BEGINNING_MUTANTS,
  ...REMEDIATOR_CALLS_MUTANTS,
  ...REMEDIATOR_HOLDS_MUTANTS,
  ...REMEDIATOR_ORPHANS_MUTANTS,
  ...REMEDIATOR_POWER_OFF_MUTANTS,
  ...REMEDIATOR_RELEASE_MUTANTS,
  ...REMEDIATOR_REPROVISION_MUTANTS,
  ...REMEDIATOR_REQUESTS_MUTANTS,
  ...REMEDIATOR_TARGETS_MUTANTS,
  ...REMEDIATOR_UNDO_MUTANTS,
  ...REMEDIATOR_WAITS_MUTANTS,
  ...REMEDIATOR_WORKLOADS_MUTANTS,
  ...TELEMETRY_MUTANTS,
];
