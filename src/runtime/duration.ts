const UNIT_MS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
};

/** The durations that the API server accepts in our CRDs: Go's form (`metav1.Duration`) without a sign. */
export const DURATION_PATTERN = "^([0-9]+(\\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$";

/**
 * Reads a duration in Go's form (`300s`, `1h30m`, `1.5m`, `-10s`, `0`), as Kubernetes' `metav1.Duration` writes it.
 *
 * @returns milliseconds, or undefined if `text` is not such a duration.
 */
export function parseDurationMs(text: string): number | undefined {
  const match = /^([+-]?)(.*)$/.exec(text);
  const sign = match?.[1] === "-" ? -1 : 1;
  const body = match?.[2] ?? "";
  if (body === "0") return 0;
  if (!/^(?:\d+(?:\.\d*)?(?:ns|us|µs|ms|s|m|h))+$/.test(body)) return undefined;
  let totalMs = 0;
  for (const [, amount, unit] of body.matchAll(/(\d+(?:\.\d*)?)(ns|us|µs|ms|s|m|h)/g)) {
    totalMs += Number(amount) * (UNIT_MS[unit ?? ""] ?? 0);
  }
  return sign * totalMs;
}

/** Writes a duration as Go's `time.Duration.String` does: `5m0s`, `1h0m0s`, `30s`. Whole seconds, rounded down. */
export function formatDuration(durationMs: number): string {
  const seconds = Math.floor(durationMs / 1_000);
  const [hours, minutes] = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60];
  const parts = [hours > 0 ? `${hours}h` : "", seconds >= 60 ? `${minutes}m` : "", `${seconds % 60}s`];
  return parts.join("");
}
