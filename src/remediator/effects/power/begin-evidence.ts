import type { BmcEvidence } from "../../../bmc/evidence/model.ts";
import type { KubeRuntime } from "../../../kube/runtime.ts";
import type { HostPower } from "../../hosts/model/host.ts";
import type { EffectContext } from "../context/effect-context.ts";
import { fieldsOf } from "../context/effect-context.ts";

/**
 * Begins to read what the BMC shows about why the host died, and returns at once. When the reading ends, it reports an
 * event, which wakes the remediation. It ends at the latest when the devices are closed.
 */
export function beginEvidence({ session, runtime }: EffectContext): void {
  const { power } = session;
  // Without open devices, a later decision begins it.
  if (power === undefined) return;
  session.observe({ type: "EvidenceBegun" });
  void report(power, session, runtime);
}

async function report(
  power: HostPower,
  session: EffectContext["session"],
  { logger }: Pick<KubeRuntime, "logger">,
): Promise<void> {
  let evidence: BmcEvidence | undefined;
  try {
    evidence = await power.readEvidence?.(session.lifetime);
  } catch (error) {
    logger.info({ ...fieldsOf(session), err: error }, "the log of the BMC was not read");
  }
  if (session.lifetime.aborted) return;
  session.observe({ type: "EvidenceRead", evidence, epochMs: session.now().epochMs });
  session.wake();
}
