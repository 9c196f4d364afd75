/** `metav1.Time`: RFC 3339 in UTC with whole seconds, as Kubernetes stores it. Rounds down. */
export function toTime(epochMs: number): string {
  return new Date(epochMs).toISOString().replace(/\.\d{3}Z$/, "Z");
}

/** `metav1.MicroTime`: RFC 3339 in UTC with six digits; Leases and events.k8s.io refuse anything else. */
export function toMicroTime(epochMs: number): string {
  return new Date(epochMs).toISOString().replace(/Z$/, "000Z");
}

/** The date of an HTTP header, with whole seconds. Rounds down. */
export function toHttpDate(epochMs: number): string {
  return new Date(epochMs).toUTCString();
}

/** Reads an RFC 3339 time, or the date of an HTTP header; undefined if `text` is absent or not one. */
export function parseTimeMs(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const epochMs = Date.parse(text);
  return Number.isNaN(epochMs) ? undefined : epochMs;
}
