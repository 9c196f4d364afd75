/** It is `nowMs`, on the clock that decisions use: what has expired by then counts no more. */
export interface TimePassed {
  type: "timePassed";
  nowMs: number;
}
