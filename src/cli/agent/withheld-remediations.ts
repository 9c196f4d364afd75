import type { Counter, Registry } from "prom-client";
import type { WithheldRemediation } from "../../api/ironfence/withheld-remediation.ts";
import { readWithheldRemediations } from "../../api/ironfence/withheld-remediation.ts";
import { WOULD_HAVE_REMEDIATED } from "../../api/names/annotations.ts";
import type { RemediationListener, StartedRemediation } from "../../detector/shared/model/started-remediation.ts";
import type { EventNote, EventRecorder } from "../../kube/events.ts";
import type { Clock } from "../../runtime/clock.ts";
import { toTime } from "../../runtime/time.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { createCounter, metric } from "../../telemetry/metric.ts";

/** How many withheld remediations are kept. The log has all of them, and so do Kubernetes Events until they expire. */
const KEPT_MAX = 20;
/** The longest text of a remedy or a reason that the Lease stores, in characters. */
const TEXT_LENGTH_MAX = 240;
/** How many open remediations are remembered; each is a short text. */
const OPEN_MAX = 10_000;

export const OBSERVED_METRIC = metric({
  name: "ironfence_would_have_remediated_total",
  type: "counter",
  help: "Remediations that an agent with `--observe` would have started",
  labels: {},
});

/** The reasons of Kubernetes Events that report a write. An agent that only observes does not record them. */
const ACTS: readonly string[] = [
  "RemediationCreated",
  "RemediationRemoved",
  "DurationSkipped",
  "MachineMarkedUnhealthy",
  "MachineDeleted",
  "ExternalAnnotationAdded",
];

export interface WithheldRemediationsDeps {
  clock: Clock;
  logger: Logger;
  events: EventRecorder;
  registry: Registry;
}

/** Reports what an agent that only observes would have done, and keeps it for `ironfence status`. */
export class WithheldRemediations implements RemediationListener {
  readonly #deps: WithheldRemediationsDeps;
  readonly #counter: Counter;
  /** The newest withheld remediations. Undefined until those of the last leader have been read. */
  #kept: WithheldRemediation[] | undefined;
  /** Remediations that were open when the last leader ended, and about which this leader has not decided yet. */
  readonly #inherited = new Set<string>();
  /** All withheld remediations that have not ended. In a large outage these are more than `#kept` has. */
  readonly #open = new Set<string>();

  constructor(deps: WithheldRemediationsDeps) {
    this.#deps = deps;
    this.#counter = createCounter(OBSERVED_METRIC, deps.registry);
  }

  /** Takes over the withheld remediations that the last leader has stored in the Lease. */
  restore(annotations: Readonly<Record<string, string>> | undefined): void {
    this.#kept = readWithheldRemediations(annotations);
    for (const known of this.#kept) if (known.until === undefined) this.#inherited.add(outageOf(known));
  }

  /** Ends the remediations that the last leader has left open if their nodes are Ready now. */
  endInherited(isWell: (node: string) => boolean): void {
    const until = toTime(this.#deps.clock.nowMs());
    this.#kept = this.#kept?.map((known) => {
      const outage = outageOf(known);
      if (!this.#inherited.has(outage) || known.until !== undefined || !isWell(known.node)) return known;
      this.#inherited.delete(outage);
      return { ...known, until };
    });
  }

  /** The annotation for the Lease. */
  get annotations(): Record<string, string> {
    return this.#kept === undefined ? {} : { [WOULD_HAVE_REMEDIATED]: JSON.stringify(this.#kept) };
  }

  /** Records the Kubernetes Events of the detector, except those that report a write. */
  get events(): EventRecorder {
    return {
      record: (note: EventNote) => {
        if (!ACTS.includes(note.reason)) this.#deps.events.record(note);
      },
    };
  }

  started({ healthCheck, subject, about, remedy, because }: StartedRemediation): void {
    const kept = (this.#kept ??= []);
    const isSame = (known: WithheldRemediation): boolean =>
      known.until === undefined &&
      known.node === subject &&
      known.healthCheck === healthCheck &&
      kindOf(known.remedy) === kindOf(remedy);
    // The same remediation may start again after a restart of the agent, or after another controller has written to the
    // objects.
    const same = kept.find(isSame);
    if (same !== undefined) this.#inherited.delete(outageOf(same));
    const open = `${healthCheck} ${subject} ${kindOf(remedy)}`;
    const isKnown = same !== undefined || this.#open.has(open);
    if (this.#open.size < OPEN_MAX) this.#open.add(open);
    if (isKnown) return;
    const { clock, logger, events } = this.#deps;
    const at = toTime(clock.nowMs());
    const texts = { remedy: remedy.slice(0, TEXT_LENGTH_MAX), because: because.slice(0, TEXT_LENGTH_MAX) };
    this.#kept = [...kept, { at, node: subject, healthCheck, ...texts }].slice(-KEPT_MAX);
    this.#counter.inc();
    logger.warn({ node: subject, healthCheck, ...texts }, "would remediate; nothing is written (--observe)");
    const note = `${healthCheck} would remediate it by ${remedy}, because ${because}. Nothing was done: this agent only observes`;
    events.record({ regarding: about, type: "Warning", reason: "WouldRemediate", action: "Observe", note });
  }

  ended({ healthCheck, subject }: Pick<StartedRemediation, "healthCheck" | "subject">): void {
    for (const open of this.#open) if (open.startsWith(`${healthCheck} ${subject} `)) this.#open.delete(open);
    const until = toTime(this.#deps.clock.nowMs());
    this.#kept = this.#kept?.map((known) =>
      known.until === undefined && known.node === subject && known.healthCheck === healthCheck
        ? { ...known, until }
        : known,
    );
  }
}

function outageOf({ healthCheck, node }: WithheldRemediation): string {
  return `${healthCheck} ${node}`;
}

/** The first word, which is the kind of the remedy. A step of another kind is another remediation. */
function kindOf(remedy: string): string {
  return remedy.split(" ")[0] ?? remedy;
}
