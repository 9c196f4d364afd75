import type { KubeObject } from "../../../kube/resource.ts";

/** A remediation that the detector has started. */
export interface StartedRemediation {
  /** The health check, for example `NodeHealthCheck workers`. */
  healthCheck: string;
  /** The node, or the Machine without one; in words. */
  subject: string;
  /** The Node or the Machine. */
  about: KubeObject;
  /** What was created or asked for, for example `BareMetalRemediation ironfence-system/worker-3`. */
  remedy: string;
  /** Why. Text for the operator. */
  because: string;
}

/** Receives what the detector starts, and when the node or Machine needs no remediation any more. */
export interface RemediationListener {
  started(remediation: StartedRemediation): void;
  ended(remediation: Pick<StartedRemediation, "healthCheck" | "subject">): void;
}

/** An object in words, for `remedy`. */
export function describeRemedy({ kind, metadata: { namespace, name } }: KubeObject): string {
  return `${kind} ${namespace === undefined ? name : `${namespace}/${name}`}`;
}
