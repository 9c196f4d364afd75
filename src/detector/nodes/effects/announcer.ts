import type { KubeObject } from "../../../kube/resource.ts";
import type { EventRecorder } from "../../../kube/events.ts";
import type { CheckState } from "../snapshot/check-state.ts";
import type { Announcement, EventReason } from "../decide/decision.ts";
import type { HealthCheckObject } from "../snapshot/health-check.ts";

/** How the notes of all medik8s events begin, by which people filter them. */
const NOTE_PREFIX = "[remediation]";

/** Tells people what becomes of a health check, by events on it. */
export class Announcer {
  readonly #events: EventRecorder;

  constructor(events: EventRecorder) {
    this.#events = events;
  }

  /** Tells what stands and was not told yet. @returns the keys of all that stands. */
  announce(check: HealthCheckObject, state: CheckState, standing: readonly Announcement[]): ReadonlySet<string> {
    for (const announcement of standing) {
      if (!state.told.has(announcement.key)) this.tell(check, announcement);
    }
    return new Set(standing.map(({ key }) => key));
  }

  tell(
    check: HealthCheckObject,
    told: { type: "Normal" | "Warning"; reason: EventReason; note: string },
    related?: KubeObject,
  ): void {
    const note = `${NOTE_PREFIX} ${told.note}`;
    this.#events.record({
      regarding: check,
      action: "HealthCheck",
      ...told,
      note,
      ...(related !== undefined && { related }),
    });
  }
}
