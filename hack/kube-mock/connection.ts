/** What reading an answer, or waiting for one, throws where a real connection would break. */
export class ConnectionLost extends Error {
  override readonly name = "ConnectionLost";
}
