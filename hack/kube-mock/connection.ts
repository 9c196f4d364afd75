/** Thrown while waiting for an answer or reading it, when a real connection would break. */
export class ConnectionLost extends Error {
  override readonly name = "ConnectionLost";
}
