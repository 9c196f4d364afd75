import type { Reach } from "../../bmc/devices/reach-device.ts";
import type { ClockOffset } from "../../kube/server-time.ts";
import type { LeaderLease } from "../../kube/lease/lease-record.ts";
import type { PermissionReview } from "../../kube/reviews/permission-review.ts";
import type { KubeObject } from "../../kube/resource.ts";
import type { ServerVersion } from "../../kube/api-client/server-version.ts";
import type { ClusterAddress } from "../cluster/connect.ts";
import type { Overview } from "../status/objects/read.ts";
import type { FamilyKind } from "../cluster/unread-versions.ts";

/** Why something cannot be read, with the permission that is missing. */
export interface Unread {
  unread: string;
}

/** What was read, or why it cannot be read. */
export type Fact<T> = T | Unread;

export function isUnread(fact: unknown): fact is Unread {
  return typeof fact === "object" && fact !== null && "unread" in fact;
}

/** The facts that every run reads. */
export interface ApiFacts {
  cluster: ClusterAddress;
  namespace: string;
  /** The time by the clock of the API server if that is known, otherwise by the clock of this machine. */
  nowMs: number;
  server: ServerVersion;
  /**
   * How far the clock of the API server is ahead of the clock of this machine; undefined if its answers do not show it.
   */
  clockOffset: ClockOffset | undefined;
  /** The agents' leases, in all namespaces. */
  leases: Fact<readonly LeaderLease[]>;
}

/** The facts that `--pre` reads before an installation. */
export interface PreFacts extends ApiFacts {
  /** Whether ValidatingAdmissionPolicies are served in v1. */
  servesAdmissionPolicies: boolean;
  /** The kinds of all families. */
  familyKinds: readonly FamilyKind[];
  /** The CRD of NodeHealthCheck; undefined if there is none. */
  healthCheckCrd: Fact<KubeObject | undefined>;
  /** The permissions of the user who runs the command. */
  permissions: Fact<readonly PermissionReview[]>;
  /** The ports of the BMCs that objects in the cluster name, and of those that the user named. */
  ports: readonly PortFinding[];
  /** Why the BMCs that objects in the cluster name cannot be listed. */
  portsUnread: string | undefined;
}

/** Whether one BMC answers this machine. */
export interface PortFinding {
  /** The object that names the BMC, such as `FencingTarget ironfence-system/worker-1`; absent if the user named it. */
  owner?: string;
  address: string;
  /** `invalid`: the address cannot be used. */
  reach: Reach | { state: "invalid"; why: string };
}

/** The facts that a run after the installation reads. */
export interface Facts extends ApiFacts {
  overview: Overview;
  /** The kinds whose CRDs ironfence ships. */
  customResources: Fact<readonly CustomResource[]>;
  admission: Fact<AdmissionPolicies>;
  deployments: Fact<readonly Deployment[]>;
  /** The permissions of the agent's service account. */
  permissions: Fact<readonly GrantedPermission[]>;
  serviceAccount: string;
  /** The kinds of the leader's families. */
  familyKinds: readonly FamilyKind[];
  /** The remediation templates that health checks name. */
  templates: readonly TemplateFact[];
  /** UIDs of targets for which `--live` had no time left; empty without `--live`. */
  unprobed: ReadonlySet<string>;
}

/** A CRD that ironfence ships, as the cluster has it. */
export interface CustomResource {
  kind: string;
  isInstalled: boolean;
  /** Whether the CRD has the label of ironfence, and is not one of another operator. */
  isOwn: boolean;
  /** Fields of this version that the cluster drops, such as `status.offProof`. */
  missingFields: readonly string[];
}

/** Admission policies of ironfence, by name. */
export interface AdmissionPolicies {
  policies: ReadonlySet<string>;
  /** Policies that a binding with the action Deny enforces. */
  enforced: ReadonlySet<string>;
  /** Which user each policy for an agent names, by the name of the policy. */
  users: ReadonlyMap<string, string>;
}

export interface Deployment extends KubeObject {
  spec?: {
    replicas?: number;
    template?: { spec?: { serviceAccountName?: string; containers?: { image?: string }[] } };
  };
  status?: { observedGeneration?: number; replicas?: number; updatedReplicas?: number; readyReplicas?: number };
}

/** A permission that the manifests in one folder grant. */
export interface GrantedPermission extends PermissionReview {
  folder: string;
}

/** A remediation template that health checks name. */
export interface TemplateFact {
  /** Kind and name. */
  text: string;
  healthChecks: readonly string[];
  /** What is wrong; undefined if the template is there. */
  problem: string | Unread | undefined;
}
