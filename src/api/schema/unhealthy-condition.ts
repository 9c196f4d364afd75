/** A condition that makes a node or machine unhealthy once it has had this status for `durationMs`. */
export interface UnhealthyCondition {
  type: string;
  status: string;
  durationMs: number;
}
