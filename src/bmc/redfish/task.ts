import { failure } from "./answer.ts";
import type { Answer } from "./answer.ts";
import { stringAt } from "./json.ts";
import { BmcError } from "../errors.ts";
import { parseTimeMs } from "../../runtime/time.ts";

/** Wait before the next look at a task whose answer names none. */
const LOOK_AGAIN_MS = 250;

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
  // A monitor that is gone has ended; a BMC that is busy says nothing about the task.
  if (answer.status === 404 || answer.status === 410) return { state: "Ended" };
  const error = failure(what, answer);
  return error.code === "Busy" ? { state: "Running", retryAfterMs: retryAfterMs(answer) } : { state: "Failed", error };
}

/** Where an answer of 202 says that the order can be followed: in its header, or (AMI) in the task that it shows. */
export function taskReference(answer: Answer): string | undefined {
  if (answer.status !== 202) return undefined;
  return answer.header("location") ?? stringAt(answer.body, "@odata.id");
}

/** `Retry-After` in seconds, or as a date, which is measured by the BMC's own clock: few of them are right. */
export function retryAfterMs(answer: Answer): number {
  const text = answer.header("retry-after") ?? "";
  const dateMs = text.endsWith(" GMT") ? parseTimeMs(text) : undefined;
  const nowMs = parseTimeMs(answer.header("date"));
  const untilDateMs = dateMs === undefined || nowMs === undefined ? 0 : dateMs - nowMs;
  return Math.max(/^\d{1,6}$/.test(text) ? Number(text) * 1_000 : untilDateMs, LOOK_AGAIN_MS);
}
