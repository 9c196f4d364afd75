import { isDeepStrictEqual } from "node:util";
import type { KubeObject, OwnerReference } from "../kube/resource.ts";
import { shareTexts } from "../runtime/text/shared-text.ts";
import { trimMeta } from "../api/kubernetes/trim.ts";
import {
  CONFIRM,
  HEALTHY_DELAY,
  NHC_TIMED_OUT,
  NODE_AT_CREATION,
  NODE_NAME,
  NODE_READY_IN_BOOT,
  OLD_REMEDIATION_CR,
  TEMPLATE_NAME,
} from "../api/names/annotations.ts";
import { CLONED_FROM_GROUP_KIND } from "../api/cluster-api/cluster-api.ts";
import type { BareMetalRemediation } from "../api/ironfence/bare-metal-remediation.ts";
import type { FencingTarget } from "../api/ironfence/fencing-target.ts";

// What caches keep of the kinds that both the detector and the remediator watch.

export const KEPT_REMEDIATION_ANNOTATIONS: readonly string[] = [
  NODE_NAME,
  TEMPLATE_NAME,
  NHC_TIMED_OUT,
  HEALTHY_DELAY,
  OLD_REMEDIATION_CR,
  CLONED_FROM_GROUP_KIND,
  CONFIRM,
  NODE_READY_IN_BOOT,
  NODE_AT_CREATION,
];

/**
 * Saves memory if thousands of remediations have equal values.
 *
 * @returns a function that returns its last result again if the next value is equal, and otherwise that value.
 */
function sharing<T>(): (value: T) => T {
  let last: T | undefined;
  return (value) => {
    if (last === undefined || !isDeepStrictEqual(last, value)) last = value;
    return last;
  };
}

const sharedStrategy = sharing<BareMetalRemediation["spec"]["strategy"]>();
const sharedOwners = sharing<OwnerReference[]>();

/** A BareMetalRemediation without managed fields, and with only the annotations that the agent reads. */
export function trimRemediation(raw: KubeObject): BareMetalRemediation {
  const remediation = raw as BareMetalRemediation;
  remediation.status?.conditions?.forEach(shareTexts);
  const metadata = trimMeta(remediation.metadata, KEPT_REMEDIATION_ANNOTATIONS);
  const { ownerReferences } = metadata;
  if (ownerReferences !== undefined) metadata.ownerReferences = sharedOwners(ownerReferences);
  if (remediation.spec?.strategy !== undefined) remediation.spec.strategy = sharedStrategy(remediation.spec.strategy);
  return { ...remediation, metadata };
}

/** A FencingTarget without managed fields. */
export function trimTarget(raw: KubeObject): FencingTarget {
  const target = raw as FencingTarget;
  target.status?.conditions?.forEach(shareTexts);
  return { ...target, metadata: trimMeta(target.metadata) };
}
