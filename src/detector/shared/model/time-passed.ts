/** Reports the current time on the clock that decisions use, so that observations which have expired are dropped. */
export interface TimePassed {
  type: "timePassed";
  nowMs: number;
}
