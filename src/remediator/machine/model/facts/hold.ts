/**
 * Why power orders are held. Paused: no new power-off is sent. PauseUnknown: neither, because what would show a pause
 * cannot be read. Maintenance: no order at all, an On included.
 */
export interface Hold {
  reason: "Paused" | "PauseUnknown" | "Maintenance";
  message: string;
}

/** Why power-offs are held. `isUnread` means that the stop switch could not be read. */
export interface PauseReason {
  reason: string;
  isUnread?: true;
}

/** What holds power orders. @param paused, maintenance why, by the stop switch and in the words of the target. */
export function holdOf(paused: PauseReason | undefined, maintenance: string | undefined): Hold | undefined {
  if (maintenance !== undefined) return { reason: "Maintenance", message: `no power order is sent: ${maintenance}` };
  if (paused === undefined) return undefined;
  const message = `no power-off is sent: ${paused.reason}`;
  return { reason: paused.isUnread === true ? "PauseUnknown" : "Paused", message };
}
