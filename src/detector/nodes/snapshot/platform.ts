import { trimMeta } from "../../../api/kubernetes/trim.ts";
import type { KubeObject } from "../../../kube/resource.ts";
import type { KubeRuntime } from "../../../kube/runtime.ts";
import { DynamicKinds } from "../../shared/views/dynamic-kinds.ts";
import { field } from "../../shared/model/remediation.ts";
import type { PlatformFacts } from "../decide/decision.ts";
import { TERMINATING } from "../decide/decision.ts";
import type { Disabled } from "../decide/status.ts";

const CLUSTER_VERSION = { apiVersion: "config.openshift.io/v1", kind: "ClusterVersion" };
const MACHINE_HEALTH_CHECK = { apiVersion: "machine.openshift.io/v1beta1", kind: "MachineHealthCheck" };
/**
 * How often discovery is repeated in a cluster that does not serve the kinds of OKD. It is rare, because these kinds
 * are installed together with the cluster.
 */
const ABSENT_RETRY_MS = 600_000;

interface PlatformObject extends KubeObject {
  /** `status.conditions` of a ClusterVersion, `spec.unhealthyConditions` of a MachineHealthCheck. */
  conditions: readonly { type: unknown; status: unknown }[];
}

/** Watches the ClusterVersion and the MachineHealthChecks of OKD if the API server serves them. */
export class Platform {
  readonly #kinds: DynamicKinds<PlatformObject>;

  constructor(runtime: KubeRuntime, onChange: () => void, signal: AbortSignal) {
    this.#kinds = new DynamicKinds(runtime, { trim, onChange, absentRetryMs: ABSENT_RETRY_MS }, signal);
  }

  read(): PlatformFacts | "pending" {
    const versions = this.#kinds.state(CLUSTER_VERSION.apiVersion, CLUSTER_VERSION.kind);
    const checks = this.#kinds.state(MACHINE_HEALTH_CHECK.apiVersion, MACHINE_HEALTH_CHECK.kind);
    if (versions.state === "pending" || checks.state === "pending") return "pending";
    const forbidden = [versions, checks].find((state) => state.state === "forbidden");
    const progressing = versions.state === "watched" ? [...versions.view.values()].find(isProgressing) : undefined;
    const present = checks.state === "watched" ? [...checks.view.values()] : [];
    const relevant = present.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
    const custom = relevant.filter((check) => !isTerminationHandler(check));
    return {
      isOkd: versions.state !== "absent",
      upgrading: progressing?.metadata.name,
      conflict: custom.length > 0 ? conflictOf(custom) : undefined,
      hasTerminationHandler: relevant.some(isTerminationHandler),
      unknown: forbidden?.state === "forbidden" ? forbidden.message : undefined,
    };
  }

  settled(): Promise<void> {
    return this.#kinds.settled();
  }
}

function conflictOf(checks: readonly PlatformObject[]): Disabled {
  const names = checks
    .map(({ metadata }) => `${metadata.namespace ?? ""}/${metadata.name}`)
    .sort()
    .slice(0, 10);
  return {
    reason: "ConflictingMachineHealthCheckDetected",
    message: `Custom MachineHealthCheck(s) detected, disabling NodeHealthCheck to avoid conflicts: ${names.join(", ")}`,
  };
}

function isProgressing({ conditions }: PlatformObject): boolean {
  return conditions.some(({ type, status }) => type === "Progressing" && status === "True");
}

function isTerminationHandler({ conditions }: PlatformObject): boolean {
  return conditions.length === 1 && conditions[0]?.type === TERMINATING;
}

function trim(raw: KubeObject): PlatformObject {
  const found =
    raw.kind === CLUSTER_VERSION.kind
      ? field(field(raw, "status"), "conditions")
      : field(field(raw, "spec"), "unhealthyConditions");
  const { apiVersion, kind, metadata } = raw;
  const conditions: unknown[] = Array.isArray(found) ? found : [];
  return {
    apiVersion,
    kind,
    metadata: trimMeta(metadata, []),
    conditions: conditions.map((condition) => ({ type: field(condition, "type"), status: field(condition, "status") })),
  };
}
