import type { KubeObject } from "../../../kube/resource.ts";

/** A remediation that the detector has started. */
export interface StartedRemediation {
  /** The health check, for example `NodeHealthCheck workers`. */
  healthCheck: string;
  /** The node as text; the Machine if it has no node. */
  subject: string;
  /** The Node or the Machine. */
  about: KubeObject;
  /** What was created or asked for, for example `BareMetalRemediation ironfence-system/worker-3`. */
  remedy: string;
  /** Why the remediation was started. Text for the operator. */
  because: string;
}

/** Is called when the detector starts a remediation, and when a node or Machine no longer needs one. */
export interface RemediationListener {
  started(remediation: StartedRemediation): void;
  ended(remediation: Pick<StartedRemediation, "healthCheck" | "subject">): void;
}

/** Describes an object, for `remedy`. */
export function describeRemedy({ kind, metadata: { namespace, name } }: KubeObject): string {
  return `${kind} ${namespace === undefined ? name : `${namespace}/${name}`}`;
}
