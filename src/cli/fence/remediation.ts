import { NODE_NAME } from "../../api/names/annotations.ts";
import type { BareMetalRemediation } from "../../api/ironfence/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../../api/ironfence/bare-metal-remediation.ts";
import { IS_CONTROL_PLANE_NODE } from "../../api/names/labels.ts";
import { isKubeError } from "../../kube/errors.ts";
import type { KubeObject } from "../../kube/resource.ts";
import { apiVersionOf } from "../../kube/resource.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import { keyOf } from "../../kube/watched.ts";
import type { CliContext } from "../terminal/context.ts";
import { printNote } from "../terminal/context.ts";
import type { FencePreview, StrategyType } from "./preview.ts";

/** How often a deletion is tried again because the agent has written to the object. */
const TRIES_MAX = 5;

/** The part of a remediation that the user chooses. */
interface RemediationOrder extends KubeObject {
  spec: { strategy: { type: StrategyType } };
}

/** Creates a remediation. @param dryRun the server checks permissions and schema, and stores nothing. */
export function createRemediationByHand(
  runtime: KubeRuntime,
  preview: Pick<FencePreview, "isControlPlane">,
  { namespace, nodeName, strategy }: { namespace: string; nodeName: string; strategy: StrategyType },
  dryRun: boolean,
  signal: AbortSignal,
): Promise<KubeObject> {
  const metadata = {
    namespace,
    generateName: `${nodeName}-by-hand-`,
    annotations: { [NODE_NAME]: nodeName },
    ...(preview.isControlPlane && { labels: { [IS_CONTROL_PLANE_NODE]: "" } }),
  };
  // The server fills in the rest of the strategy.
  const object: Omit<RemediationOrder, "metadata"> & { metadata: object } = {
    apiVersion: apiVersionOf(BARE_METAL_REMEDIATIONS),
    kind: BARE_METAL_REMEDIATIONS.kind,
    metadata,
    spec: { strategy: { type: strategy } },
  };
  return runtime.client.create<RemediationOrder>(BARE_METAL_REMEDIATIONS, object, { dryRun }, signal);
}

/** Deletes a remediation that has succeeded. */
export async function deleteFinishedRemediation(
  context: CliContext,
  runtime: KubeRuntime,
  ended: BareMetalRemediation,
  signal: AbortSignal,
): Promise<void> {
  const { namespace, name, uid } = ended.metadata;
  try {
    await runtime.client.delete(BARE_METAL_REMEDIATIONS, keyOf(ended), { guard: { uid } }, signal);
  } catch (error) {
    if (!isKubeError(error)) throw error;
    if (error.code === "NotFound") return;
    const next = `kubectl delete baremetalremediation -n ${namespace} ${name}`;
    printNote(context, `left behind: the finished remediation could not be deleted (${error.message}): ${next}`);
  }
}

/**
 * Deletes a remediation, unless its host may have been ordered off. The agent stores an order before it sends it, so
 * the API server refuses the deletion if an order comes after the read that shows none.
 *
 * @returns the remediation that was deleted, as it was last read; undefined if it was not deleted, or if another user
 * has deleted it.
 */
export async function withdrawRemediation(
  runtime: KubeRuntime,
  created: KubeObject,
  signal: AbortSignal,
): Promise<BareMetalRemediation | undefined> {
  const key = keyOf(created);
  const { uid } = created.metadata;
  for (let tries = 1; ; tries += 1) {
    try {
      const live = await runtime.client.get<BareMetalRemediation>(BARE_METAL_REMEDIATIONS, key, signal);
      const { deletionTimestamp, resourceVersion } = live.metadata;
      if (live.metadata.uid !== uid || deletionTimestamp !== undefined || mayHaveOrdered(live)) return undefined;
      await runtime.client.delete(BARE_METAL_REMEDIATIONS, key, { guard: { uid, resourceVersion } }, signal);
      return live;
    } catch (error) {
      if (isKubeError(error, "NotFound")) return undefined;
      if (!isKubeError(error, "Conflict") || tries === TRIES_MAX) throw error;
    }
  }
}

/** Whether a power order may have been sent, according to what the agent stores before it sends one. */
function mayHaveOrdered({ status }: BareMetalRemediation): boolean {
  const { phase = "Resolving", attempt, retryCount = 0 } = status ?? {};
  const isBefore = phase === "Resolving" || phase === "Verifying";
  return !isBefore || retryCount > 0 || (attempt !== undefined && attempt.action !== "None");
}
