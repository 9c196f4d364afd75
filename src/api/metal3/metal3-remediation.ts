import type { KubeObject, ObjectMeta } from "../../kube/resource.ts";
import { fieldAt, integerAt, textAt } from "../schema/read-fields.ts";
import { trimMeta } from "../kubernetes/trim.ts";

// Metal3Remediation, in versions v1beta1 and v1beta2. The strings are part of upstream's API.

export const METAL3_REMEDIATION_KIND = "Metal3Remediation";
/** The finalizer on a Metal3Remediation that has begun. */
export const METAL3_REMEDIATION_FINALIZER = "metal3remediation.infrastructure.cluster.x-k8s.io";
/** On a request whose Node is deleted: the Node's annotations and labels as JSON. */
export const NODE_ANNOTATIONS_BACKUP = "remediation.metal3.io/node-annotations-backup";
export const NODE_LABELS_BACKUP = "remediation.metal3.io/node-labels-backup";
/**
 * On a BareMetalHost, followed by the UID of a Metal3Remediation: the controller of the Metal3 provider keeps the host
 * off.
 */
export const METAL3_POWER_OFF_PREFIX = "reboot.metal3.io/metal3-remediation-";
/**
 * On a BareMetalHost: the Metal3 provider no longer chooses it for a Machine. Its releases up to 1.12 read only the
 * first name, and later ones prefer the second. Any value counts.
 */
export const UNHEALTHY_HOST = ["capi.metal3.io/unhealthy", "capm3.metal3.io/unhealthy"] as const;
export const UNHEALTHY_HOST_VALUE = "capm3/UnhealthyNode";

export type Metal3Phase = "Running" | "Waiting" | "Deleting machine" | "Failed";

/** A Metal3Remediation of either version. Every annotation is kept. */
export interface Metal3Remediation extends KubeObject {
  metadata: ObjectMeta & { namespace: string };
  /** Undefined if the object has none. */
  strategy:
    | {
        type: string | undefined;
        /** Reboots beyond the first. */
        retryLimit: number | undefined;
        /** How long one reboot may take: `timeout` of v1beta1, `timeoutSeconds` of v1beta2. */
        timeout: string | undefined;
      }
    | undefined;
  phase: string | undefined;
  retryCount: number | undefined;
  /** RFC 3339. */
  lastRemediated: string | undefined;
  /** All of the status, known or not. */
  rawStatus: Record<string, unknown>;
}

export function readMetal3Remediation(raw: KubeObject): Metal3Remediation {
  const { metadata } = raw;
  const strategy = fieldAt(raw, "spec", "strategy");
  const status = fieldAt(raw, "status");
  return {
    apiVersion: raw.apiVersion,
    kind: raw.kind,
    metadata: { ...trimMeta(metadata), namespace: metadata.namespace ?? "" },
    strategy: strategy === undefined || strategy === null ? undefined : readStrategy(strategy),
    phase: textAt(status, "phase"),
    retryCount: integerAt(status, "retryCount"),
    lastRemediated: textAt(status, "lastRemediated"),
    rawStatus: typeof status === "object" && status !== null ? { ...status } : {},
  };
}

function readStrategy(strategy: unknown): Metal3Remediation["strategy"] {
  const seconds = integerAt(strategy, "timeoutSeconds");
  return {
    type: textAt(strategy, "type"),
    retryLimit: integerAt(strategy, "retryLimit"),
    timeout: seconds === undefined ? textAt(strategy, "timeout") : `${seconds}s`,
  };
}
