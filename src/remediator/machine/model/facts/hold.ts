/**
 * Why power orders are held. Paused: no power-off is sent. PauseUnknown: no power-off is sent because the agent cannot
 * read whether there is a pause. Maintenance: no order is sent, not even an On.
 */
export interface Hold {
  reason: "Paused" | "PauseUnknown" | "Maintenance";
  message: string;
}

/** Why the pause holds power-offs. `isUnread`: the stop switch could not be read. */
export interface PauseReason {
  reason: string;
  isUnread?: true;
}

/**
 * What holds power orders; undefined if nothing does. Maintenance comes first because it holds more.
 *
 * @param paused why the stop switch holds power-offs.
 * @param maintenance why the target holds all orders.
 */
export function holdOf(paused: PauseReason | undefined, maintenance: string | undefined): Hold | undefined {
  if (maintenance !== undefined) return { reason: "Maintenance", message: `no power order is sent: ${maintenance}` };
  if (paused === undefined) return undefined;
  const message = `no power-off is sent: ${paused.reason}`;
  return { reason: paused.isUnread === true ? "PauseUnknown" : "Paused", message };
}
