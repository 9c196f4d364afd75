import { isDeepStrictEqual } from "node:util";
import { SKIP_DURATION_IF_OFF } from "../../api/names/annotations.ts";
import type { NodeHealthCheckSpec } from "../../api/ironfence/node-health-check.ts";
import { NODE_HEALTH_CHECKS, nodeHealthCheckSpecSchema } from "../../api/ironfence/node-health-check.ts";
import { trimMeta } from "../../api/kubernetes/trim.ts";
import type { LabelMatcher } from "../../api/schema/label-selector.ts";
import { compileSelector, SelectorError } from "../../api/schema/label-selector.ts";
import type { LabelSelector } from "../../api/schema/meta.ts";
import type { KubeObject } from "../../kube/resource.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import { abortReason } from "../../runtime/clock.ts";
import type { Announcing } from "../early/announcement.ts";
import { durationEndMs, isOurTemplate, readAnnouncing, startCounts } from "../early/announcement.ts";
import type { EarlyProofsWanted } from "../early/early-prover.ts";
import type { PowerOffsAnnounced } from "../early/preparer.ts";
import { whenServed } from "../../kube/objects/when-served.ts";

/**
 * How often the agent checks again whether the API server serves health checks: a cluster may use those of another
 * project.
 */
const CRD_RETRY_MS = 60_000;

/** Which proofs of Off health checks request, and which power-offs they announce. */
export interface ProofsWanted extends EarlyProofsWanted, PowerOffsAnnounced {
  /** Whether any health check requests proofs for nodes that are not Ready. */
  readonly wanted: boolean;
  /** Resolves when the background tasks have ended. Abort the signal first. */
  settled(): Promise<void>;
}

/** The proofs that one health check requests. */
interface ProofRequest {
  /** Whether it requests proofs for nodes that are not Ready. */
  skipsDuration: boolean;
  /** Which nodes it may remediate although they are Ready; undefined for none. */
  early: LabelSelector | undefined;
}

/**
 * Watches health checks for the proofs that they request, so that no BMC is read for a proof in a cluster without such
 * a health check. Health checks that cannot be read request nothing.
 *
 * @param onChange is called when they request other proofs than before.
 */
export function watchProofsWanted(runtime: KubeRuntime, onChange: () => void, signal: AbortSignal): ProofsWanted {
  let requests: readonly ProofRequest[] = [];
  let early: readonly LabelMatcher[] = [];
  let announcing: readonly Announcing[] = [];
  const followers = new Set<() => void>();
  const waiting = new Set<() => void>();
  const onAbsent = (): void => runtime.logger.debug("no NodeHealthChecks are served, so none requests a proof of Off");
  const watch = async (): Promise<void> => {
    try {
      await whenServed(runtime, NODE_HEALTH_CHECKS, { retryMs: CRD_RETRY_MS, onAbsent }, signal);
    } catch (error) {
      if (signal.aborted) return;
      throw error;
    }
    const view = runtime.watch<UncheckedHealthCheck>({ type: NODE_HEALTH_CHECKS, trim: trimRequest }, signal);
    view.subscribe(() => {
      announcing = [...view.values()].flatMap((check) => readAnnouncing(check.spec, check.status) ?? []);
      for (const onAnnounced of followers) onAnnounced();
      const present = [...view.values()].map(readRequest);
      // Most changes affect only the status.
      if (isDeepStrictEqual(present, requests)) return;
      requests = present;
      early = present.flatMap((request) => compile(request.early) ?? []);
      onChange();
      if (early.length > 0) for (const onWanted of waiting) onWanted();
    });
  };
  const watching = watch();
  return {
    get wanted() {
      return requests.some(({ skipsDuration }) => skipsDuration);
    },
    whenEarlyWanted: (signal) =>
      new Promise((resolve, reject) => {
        const end = (settle: () => void) => (): void => {
          waiting.delete(onWanted);
          signal.removeEventListener("abort", onAbort);
          settle();
        };
        const onWanted = end(resolve);
        const onAbort = end(() => reject(abortReason(signal)));
        if (early.length > 0) return resolve();
        if (signal.aborted) return reject(abortReason(signal));
        waiting.add(onWanted);
        signal.addEventListener("abort", onAbort);
      }),
    durationEndMs: (node) => durationEndMs(announcing, node),
    onAnnounced(listener) {
      followers.add(listener);
      return () => followers.delete(listener);
    },
    isEarlyWantedFor: ({ metadata }) => early.some((selects) => selects(metadata.labels)),
    settled: () => watching,
  };
}

/** A health check whose fields have not been checked. */
interface UncheckedHealthCheck extends KubeObject {
  spec?: unknown;
  status?: unknown;
}

function trimRequest({ apiVersion, kind, metadata, spec, status }: UncheckedHealthCheck): UncheckedHealthCheck {
  const counts = startCounts(status);
  return { apiVersion, kind, metadata: trimMeta(metadata, [SKIP_DURATION_IF_OFF]), spec, status: counts };
}

function readRequest(check: UncheckedHealthCheck): ProofRequest {
  const annotation = check.metadata.annotations?.[SKIP_DURATION_IF_OFF];
  const skipsDuration = annotation === "true";
  const { data: spec } = nodeHealthCheckSpecSchema.safeParse(check.spec);
  const isEarly = spec !== undefined && (annotation === undefined || skipsDuration) && usesOurTemplate(spec);
  return { skipsDuration, early: isEarly ? spec.selector : undefined };
}

/** Undefined for an invalid selector: its health check remediates nothing. */
function compile(selector: LabelSelector | undefined): LabelMatcher | undefined {
  try {
    return selector && compileSelector(selector);
  } catch (error) {
    if (error instanceof SelectorError) return undefined;
    throw error;
  }
}

/** Whether any step uses our template. With those of other projects, nothing is early. */
function usesOurTemplate({ remediationTemplate, escalatingRemediations = [] }: NodeHealthCheckSpec): boolean {
  return [remediationTemplate, ...escalatingRemediations.map((step) => step.remediationTemplate)].some(isOurTemplate);
}
