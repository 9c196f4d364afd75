import { BARE_METAL_REMEDIATIONS } from "../../../api/ironfence/bare-metal-remediation.ts";
import type { BareMetalRemediation } from "../../../api/ironfence/bare-metal-remediation.ts";
import { keyOf } from "../../../kube/watched.ts";
import type { EffectContext } from "../context/effect-context.ts";

/** On every remediation that has begun, so that its changes are undone before it disappears. */
export const FINALIZER = "ironfence.io/remediation";

export async function setFinalizer(
  { runtime, session }: EffectContext,
  wanted: boolean,
  signal: AbortSignal,
): Promise<void> {
  const { metadata } = session.remediation;
  const others = (metadata.finalizers ?? []).filter((name) => name !== FINALIZER);
  const guard = { uid: metadata.uid, resourceVersion: metadata.resourceVersion };
  const value = wanted ? [...others, FINALIZER] : others;
  const written = await runtime.client.patch<BareMetalRemediation>(
    BARE_METAL_REMEDIATIONS,
    keyOf(session.remediation),
    guard,
    [{ op: "add", path: "/metadata/finalizers", value }],
    {},
    signal,
  );
  session.learn(written);
}
