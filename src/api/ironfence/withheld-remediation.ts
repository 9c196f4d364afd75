import * as z from "zod";
import { WOULD_HAVE_REMEDIATED } from "../names/annotations.ts";

const withheldRemediationSchema = z.object({
  /** RFC 3339. */
  at: z.string(),
  /** When it was not needed any more, RFC 3339; absent while it still is. */
  until: z.string().optional(),
  /** The node, or the Machine without one. */
  node: z.string(),
  healthCheck: z.string(),
  /** What would have been created or asked for. */
  remedy: z.string(),
  because: z.string(),
});

/** A remediation that an agent with `--observe` would have started. */
export type WithheldRemediation = z.infer<typeof withheldRemediationSchema>;

/** Reads what such an agent has left in its Lease, oldest first; nothing if it cannot be parsed. */
export function readWithheldRemediations(
  annotations: Readonly<Record<string, string>> | undefined,
): WithheldRemediation[] {
  const text = annotations?.[WOULD_HAVE_REMEDIATED];
  if (text === undefined) return [];
  try {
    return z.array(withheldRemediationSchema).parse(JSON.parse(text));
  } catch {
    return [];
  }
}
