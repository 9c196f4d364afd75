import type { BareMetalRemediation } from "../../api/ironfence/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../../api/ironfence/bare-metal-remediation.ts";
import { Controller } from "../../kube/reconcile/controller.ts";
import { isKubeError } from "../../kube/errors.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import type { Watched } from "../../kube/watched.ts";
import { keyOf, keyText, parseKey } from "../../kube/watched.ts";
import { FINALIZER } from "../effects/objects/finalizer.ts";
import { isBegun, isFinal } from "../machine/model/decision/state.ts";

/**
 * The shortest time between two repairs of one remediation, so that a client that keeps removing the finalizer does
 * not keep the agent busy.
 */
const PUT_BACK_GAP_MS = 5_000;

/**
 * Restores our finalizer on each remediation that is under way and has lost it, for example by an apply of a manifest
 * without it. Without the finalizer, a deletion would remove the remediation at once and leave the host off. This runs
 * apart from the reconcile of the remediation, because a fence must not wait for it. It ends when `signal` aborts.
 */
export async function keepFinalizers(
  { runtime, remediations }: { runtime: KubeRuntime; remediations: Watched<BareMetalRemediation> },
  signal: AbortSignal,
): Promise<void> {
  const { clock } = runtime;
  const putBackAtMs = new Map<string, number>();
  const controller: Controller = new Controller(runtime, {
    name: "finalizers",
    concurrency: 1,
    reconcile: async (key, running) => {
      const remediation = remediations.get(parseKey(key));
      if (remediation === undefined || !hasLostFinalizer(remediation)) return undefined;
      const { uid } = remediation.metadata;
      const inMs = (putBackAtMs.get(uid) ?? -Infinity) + PUT_BACK_GAP_MS - clock.monotonicMs();
      if (inMs > 0) return { requeueAfterMs: inMs };
      if (await putBack(runtime, remediation, running)) putBackAtMs.set(uid, clock.monotonicMs());
      return undefined;
    },
  });
  const unsubscribe = remediations.subscribe(({ type, object }) => {
    if (type === "deleted") putBackAtMs.delete(object.metadata.uid);
    else if (hasLostFinalizer(object)) controller.enqueue(keyText(keyOf(object)));
  });
  try {
    await controller.run(signal);
  } finally {
    unsubscribe();
  }
}

function hasLostFinalizer({ metadata, status }: BareMetalRemediation): boolean {
  // The API server refuses a new finalizer on an object that is being deleted.
  if (metadata.deletionTimestamp !== undefined || !isBegun(status) || isFinal(status?.phase)) return false;
  return metadata.finalizers?.includes(FINALIZER) !== true;
}

/**
 * @returns true if the finalizer is restored; false if the object has changed. The watch then reports the change, which
 * starts another try.
 */
async function putBack(runtime: KubeRuntime, remediation: BareMetalRemediation, signal: AbortSignal): Promise<boolean> {
  const { uid, resourceVersion, finalizers = [] } = remediation.metadata;
  const value = [...finalizers, FINALIZER];
  const operations = [{ op: "add", path: "/metadata/finalizers", value }] as const;
  try {
    const guard = { uid, resourceVersion };
    await runtime.client.patch(BARE_METAL_REMEDIATIONS, keyOf(remediation), guard, operations, {}, signal);
  } catch (error) {
    if (isKubeError(error, "Conflict", "NotFound")) return false;
    throw error;
  }
  const note = `finalizer ${FINALIZER} was removed while the remediation was under way: it is put back, because the host would be left off without it; delete the remediation to cancel it`;
  runtime.logger.warn({ remediation: keyText(keyOf(remediation)), uid }, "restored a finalizer that was removed");
  runtime.events.record({ regarding: remediation, type: "Warning", reason: "FinalizerPutBack", action: "Tend", note });
  return true;
}
