import type { Registry } from "prom-client";
import { PAUSED_ANNOTATION, PAUSED_FOR_OTHERS } from "../../../api/cluster-api/cluster-api.ts";
import type { MachineHealthCheck } from "../../../api/cluster-api/machine-health-check.ts";
import type { Watched } from "../../../kube/watched.ts";
import { collectedGauge, metric } from "../../../telemetry/metric.ts";

/** The reasons of the condition RemediationAllowed while it is False. */
const GATES = ["SpecInvalid", "ViewStale", "WorkloadClusterUnreachable", "TooManyUnhealthy"] as const;
/** The condition does not exist yet, for example because the Cluster does not exist. */
const NOT_JUDGED = "NotJudged";
/** A reason that another version of the agent has written. */
const OTHER = "Other";

/** The families that serve MachineHealthChecks, by their names in the option `--families`. */
export type MachineFamily = "machine-health-check" | "okd-machine-health-check";
const FAMILIES = ["machine-health-check", "okd-machine-health-check"] as const satisfies MachineFamily[];

export const MACHINE_HEALTH_CHECKS_METRIC = metric({
  name: "ironfence_machine_health_checks",
  type: "gauge",
  help: "MachineHealthChecks by the reason why they do not remediate: `Paused`, the reason of the condition `RemediationAllowed` while it is False, `NotJudged` without that condition, `NoMachines` if the selector matches none; `None` if nothing is wrong",
  labels: { family: FAMILIES, reason: ["None", "Paused", ...GATES, "NoMachines", NOT_JUDGED, OTHER] },
});

type Checks = Pick<Watched<MachineHealthCheck>, "values">;

/** Counts the health checks of one family from `add` until `remove`. */
export interface FamilyCount {
  add(checks: Checks): void;
  remove(): void;
}

/** Counts the MachineHealthChecks of all families in one gauge, as they are stored when the metrics are read. */
export class MachineCheckCounts {
  readonly #registry: Registry;
  readonly #checks = new Map<MachineFamily, Checks>();

  constructor(registry: Registry) {
    this.#registry = registry;
  }

  of(family: MachineFamily): FamilyCount {
    return { add: (checks) => this.#add(family, checks), remove: () => this.#remove(family) };
  }

  #add(family: MachineFamily, checks: Checks): void {
    if (this.#checks.size === 0) {
      collectedGauge(MACHINE_HEALTH_CHECKS_METRIC, this.#registry, (set) => {
        for (const [of, views] of this.#checks) {
          const byReason = Map.groupBy(views.values(), reasonOf);
          for (const [reason, same] of byReason) set({ family: of, reason }, same.length);
        }
      });
    }
    this.#checks.set(family, checks);
  }

  /** The next term of leadership registers the gauge again. */
  #remove(family: MachineFamily): void {
    if (!this.#checks.delete(family) || this.#checks.size > 0) return;
    this.#registry.removeSingleMetric(MACHINE_HEALTH_CHECKS_METRIC.name);
  }
}

function reasonOf({ metadata, status }: MachineHealthCheck): string {
  const conditions = [...status.conditions, ...status.v1beta1Conditions];
  if (isPaused(metadata.annotations?.[PAUSED_ANNOTATION], conditions)) return "Paused";
  const allowed = conditions.find(({ type }) => type === "RemediationAllowed");
  if (allowed === undefined) return NOT_JUDGED;
  if (allowed.status !== "True") return GATES.find((known) => known === allowed.reason) ?? OTHER;
  return status.expectedMachines === 0 ? "NoMachines" : "None";
}

/**
 * A health check of v1beta1 has no condition Paused, so the annotation counts. If the annotation pauses only the
 * controller of Cluster API, the condition describes that controller and does not count.
 */
function isPaused(annotation: string | undefined, conditions: MachineHealthCheck["status"]["conditions"]): boolean {
  if (annotation !== undefined) return annotation !== PAUSED_FOR_OTHERS;
  return conditions.some(({ type, status: is }) => type === "Paused" && is === "True");
}
