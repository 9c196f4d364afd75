import type { Effect } from "../decision/decision.ts";

/** A kind of call to the API: storing the status, or an effect. */
export type ApiCall = "store" | Effect["do"];

/** A kind of call that keeps failing. */
export interface ApiFailure {
  call: ApiCall;
  /** Names the object, the cause, and the next step if it is known. */
  message: string;
  /** The API server refuses the call, so the failure does not end by itself. */
  refused: boolean;
  /** Failures in a row. */
  failures: number;
  retryAtMs: number;
  /** When the first of the failures began. */
  sinceMs: number;
}
