import { failure } from "../http/answer.ts";
import type { RedfishAnswer } from "../http/answer.ts";
import { stringAt } from "../http/json.ts";
import { BmcError } from "../../interface/errors.ts";
import { parseTimeMs } from "../../../runtime/time.ts";

/** The shortest wait before the next read of a task. The answer may name a longer one. */
const TASK_POLL_MS = 250;

/** The progress of an order that runs as a task. Its success proves nothing: only PowerState does. */
export type TaskProgress =
  | { state: "Running"; retryAfterMs: number }
  | { state: "Ended" }
  | { state: "Failed"; error: BmcError };

const FAILED_STATES: ReadonlySet<string> = new Set(["Exception", "Killed", "Cancelled", "Cancelling", "Interrupted"]);

/**
 * Parses the answer of a task monitor or of the task itself: services give either as `Location` (DSP0266, "Asynchronous
 * operations").
 */
export function parseTask(what: string, answer: RedfishAnswer): TaskProgress {
  const state = stringAt(answer.body, "TaskState");
  if (state !== undefined && FAILED_STATES.has(state)) {
    return { state: "Failed", error: new BmcError("Refused", `${what}: the task ended as ${state}`) };
  }
  const ended = state === undefined ? answer.status !== 202 : state === "Completed";
  if (answer.status < 300) return ended ? { state: "Ended" } : { state: "Running", retryAfterMs: retryAfterMs(answer) };
  // The task of a monitor that no longer exists has ended. The answer of a busy BMC shows nothing about the task.
  if (answer.status === 404 || answer.status === 410) return { state: "Ended" };
  const error = failure(what, answer);
  return error.code === "Busy" ? { state: "Running", retryAfterMs: retryAfterMs(answer) } : { state: "Failed", error };
}

/** The reference to follow a task after status 202: from the header, or (AMI) from the body. */
export function taskReference(answer: RedfishAnswer): string | undefined {
  if (answer.status !== 202) return undefined;
  return answer.header("location") ?? stringAt(answer.body, "@odata.id");
}

/** `Retry-After` in seconds, or as a date by the clock of the BMC, which is rarely correct. */
export function retryAfterMs(answer: RedfishAnswer): number {
  const text = answer.header("retry-after") ?? "";
  const dateMs = text.endsWith(" GMT") ? parseTimeMs(text) : undefined;
  const nowMs = parseTimeMs(answer.header("date"));
  const untilDateMs = dateMs === undefined || nowMs === undefined ? 0 : dateMs - nowMs;
  return Math.max(/^\d{1,6}$/.test(text) ? Number(text) * 1_000 : untilDateMs, TASK_POLL_MS);
}
