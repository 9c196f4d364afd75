import * as z from "zod";
import { WOULD_HAVE_REMEDIATED } from "../names/annotations.ts";

const withheldRemediationSchema = z.object({
  /** RFC 3339. */
  at: z.string(),
  /** When the remediation was no longer needed, RFC 3339; absent while it is still needed. */
  until: z.string().optional(),
  /** The name of the node, or of the Machine if it has no node. */
  node: z.string(),
  healthCheck: z.string(),
  /** What the agent would have created or requested. */
  remedy: z.string(),
  because: z.string(),
});

/** A remediation that an agent with `--observe` would have started. */
export type WithheldRemediation = z.infer<typeof withheldRemediationSchema>;

/** Reads what an agent with `--observe` has stored in its Lease, oldest first; empty if it cannot be parsed. */
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
