/** Why power orders are held. Paused: no new power-off is sent. Maintenance: no order at all, an On included. */
export interface Stop {
  reason: "Paused" | "Maintenance";
  message: string;
  /** Nobody is known to have paused: what would say so cannot be read. */
  isUnread?: true;
}

/** Why power-offs are held; `isUnread` where that is because the switch cannot be read. */
export interface Paused {
  reason: string;
  isUnread?: true;
}

/** What holds power orders. @param paused, maintenance why, by the stop switch and in the words of the target. */
export function stopFor(paused: Paused | undefined, maintenance: string | undefined): Stop | undefined {
  if (maintenance !== undefined) return { reason: "Maintenance", message: `no power order is sent: ${maintenance}` };
  if (paused === undefined) return undefined;
  const message = `no power-off is sent: ${paused.reason}`;
  return { reason: "Paused", message, ...(paused.isUnread && { isUnread: true }) };
}
