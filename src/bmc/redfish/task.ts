import { failure } from "./answer.ts";
import type { Answer } from "./answer.ts";
import { stringAt } from "./json.ts";
import { BmcError } from "../errors.ts";

/** Wait before the next look at a task whose answer names none. */
const LOOK_AGAIN_MS = 500;

/** How an order that is carried out as a task stands. That it ended well proves nothing: PowerState does. */
export type TaskStand =
  | { state: "Running"; retryAfterMs: number }
  | { state: "Ended" }
  | { state: "Failed"; error: BmcError };

const FAILED_STATES: ReadonlySet<string> = new Set(["Exception", "Killed", "Cancelled", "Cancelling", "Interrupted"]);

/** Reads the answer of a task monitor or of the task itself: services give either as `Location` (DSP0266, "Asynchronous operations"). */
export function parseTask(what: string, answer: Answer): TaskStand {
  const state = stringAt(answer.body, "TaskState");
  if (state !== undefined && FAILED_STATES.has(state)) {
    return { state: "Failed", error: new BmcError("Refused", `${what}: the task ended as ${state}`) };
  }
  const ended = state === undefined ? answer.status !== 202 : state === "Completed";
  if (answer.status < 300) return ended ? { state: "Ended" } : { state: "Running", retryAfterMs: retryAfterMs(answer) };
  // A monitor that is gone has ended; a BMC that is busy tells nothing of the task.
  if (answer.status === 404 || answer.status === 410) return { state: "Ended" };
  const error = failure(what, answer);
  return error.code === "Busy" ? { state: "Running", retryAfterMs: retryAfterMs(answer) } : { state: "Failed", error };
}

/** `Retry-After` in seconds; the date form needs a clock that BMCs seldom have right. */
export function retryAfterMs(answer: Answer): number {
  const text = answer.header("retry-after") ?? "";
  return /^\d{1,6}$/.test(text) ? Math.max(Number(text) * 1_000, LOOK_AGAIN_MS) : LOOK_AGAIN_MS;
}
