import type { KubeObject } from "../../kube/resource.ts";
import type { MachineHealthCheck } from "../cluster-api/machine-health-check.ts";
import { OKD_MACHINE_GROUP, OKD_MACHINE_VERSIONS } from "./okd-machine.ts";
import {
  MACHINE_HEALTH_CHECK_KIND,
  amountAt,
  typeAndMetaOf,
  readDurations,
  readMachineHealthCheckStatus,
  readSelector,
  readTemplateReference,
} from "../cluster-api/machine-health-check.ts";

/** The group, kind and versions by which the API server serves them. */
export const OKD_MACHINE_HEALTH_CHECKS = {
  group: OKD_MACHINE_GROUP,
  kind: MACHINE_HEALTH_CHECK_KIND,
  versions: OKD_MACHINE_VERSIONS,
} as const;
/** On a health check: what is done to an unhealthy Machine if there is no template. */
const REMEDIATION_STRATEGY_ANNOTATION = "machine.openshift.io/remediation-strategy";
/** The value of that annotation that asks for power fencing: the Machine is annotated for it instead of deleted. */
const EXTERNAL_BAREMETAL = "external-baremetal";

/**
 * Reads OKD's MachineHealthCheck (machine.openshift.io/v1beta1). It is an old form of the kind of Cluster API, and has
 * no cluster, no range and no conditions of Machines.
 */
export function readOkdMachineHealthCheck(raw: KubeObject): MachineHealthCheck {
  const problems: string[] = [];
  return {
    ...typeAndMetaOf(raw),
    spec: {
      clusterName: "",
      selector: readSelector(raw, problems),
      ...readDurations(raw, problems),
      unhealthyMachineConditions: [],
      unhealthyInRange: undefined,
      unhealthyLessThanOrEqualTo: amountAt(raw, "spec", "maxUnhealthy"),
      template: readTemplateReference(raw, "spec", "remediationTemplate"),
      problems,
    },
    status: readMachineHealthCheckStatus(raw),
  };
}

/** Whether the health check has that annotation with the value for power fencing. */
export function wantsExternalRemediation({ metadata }: Pick<KubeObject, "metadata">): boolean {
  return metadata.annotations?.[REMEDIATION_STRATEGY_ANNOTATION] === EXTERNAL_BAREMETAL;
}
