import { NODES } from "../../api/kubernetes/core-types.ts";
import { isKubeError } from "../../kube/errors.ts";
import { toTime } from "../../runtime/time.ts";
import { isNewBoot } from "../machine/states/rejoining.ts";
import { beginEvidence } from "./power/begin-evidence.ts";
import { examineRequest } from "./objects/examine-request.ts";
import { orderPower, readPower, readWhole, setBootOverride } from "./power/devices.ts";
import type { EffectContext } from "./context/effect-context.ts";
import { acCycle, sendNmi } from "./power/nmi-and-ac-cycle.ts";
import { readHolds } from "./power/read-holds.ts";
import { markPatch } from "../machine/node-patches/marks.ts";
import { getNode, patchNode } from "../clusters/node-writes.ts";
import { outcomeOf } from "./context/outcome.ts";
import { checkSuccessor, claimHost, ownerOf } from "./power/claim-host.ts";
import { countBound, releasePods } from "./objects/release-pods.ts";
import { runReprovisionEffect } from "./objects/reprovision.ts";
import { backupOf, restorePatch } from "../machine/node-patches/node-backup.ts";
import type { Effect } from "../machine/model/decision/decision.ts";
import { setFinalizer } from "./objects/finalizer.ts";
import { examineWithIdentity, verifyWithHolds, readLease, readLeaseWithin } from "./power/examine.ts";
import { resolveSubject, findCluster } from "./objects/resolve-subject.ts";
import { mark, signQuarantineAgain, putOnBy, putTaint } from "./objects/node-marks.ts";

/**
 * Runs one effect once and reports the result as events, which `observe` interprets. The failure of a device is an
 * event too. Failures of the API server are thrown as KubeErrors.
 */
export async function runEffect(context: EffectContext, effect: Effect, signal: AbortSignal): Promise<void> {
  const { session, nodeRuntime } = context;
  const { client } = nodeRuntime;
  const { nodeName } = session;
  switch (effect.do) {
    case "addFinalizer":
      return setFinalizer(context, true, signal);
    case "dropFinalizer":
      return setFinalizer(context, false, signal);
    case "askForAdmission":
      return context.admissions.ask(session.remediation);
    case "withdrawAdmission":
      return context.admissions.withdraw(session.uid);
    case "handOver":
      return context.handOver(`this agent runs on node ${nodeName ?? ""}, which must be powered off`);
    case "claimHost":
      return claimHost(context, signal);
    case "releaseHost":
      await context.host?.release(ownerOf(session), { asItIs: effect.asItIs, outcome: outcomeOf(session) }, signal);
      return session.observe({ type: "HostReleased" });
    case "checkSuccessor":
      return checkSuccessor(context, signal);
    case "findCluster":
      return findCluster(context, signal);
    case "resolveSubject":
      return resolveSubject(context, signal);
    case "examine":
      return examineWithIdentity(context, signal);
    case "verifyIdentity":
      return verifyWithHolds(context, signal);
    case "examineRequest":
      return examineRequest(context, signal);
    case "readHolds":
      return session.observe(await readHolds(context, signal));
    case "readLease":
      return effect.withinMs === undefined
        ? readLease(context, signal)
        : readLeaseWithin(context, effect.withinMs, signal);
    case "proveWritable":
      await signQuarantineAgain(context, signal);
      return readLease(context, signal);
    case "readPower":
      return readPower(context, effect.withinMs, signal);
    case "beginEvidence":
      return beginEvidence(context);
    case "readWhole":
      return readWhole(context, signal);
    case "sendNmi":
      return sendNmi(context, effect.withinMs, signal);
    case "acCycle":
      return acCycle(context, effect.attemptId, effect.withinMs, signal);
    case "forceOff":
      return orderPower(context, "ForceOff", effect.attemptId, signal);
    case "powerOn":
      return orderPower(context, "On", effect.attemptId, signal, effect);
    case "setBootOverride":
      return setBootOverride(context, effect.override, signal);
    case "findMachine":
    case "examineMachine":
    case "askToReplace":
    case "handToOwner":
    case "deleteMachine":
    case "checkReplacement":
    case "examineHost":
    case "takeImageOff":
    case "putImageBack":
    case "deleteSelf":
      return runReprovisionEffect(context, effect, signal);
    case "closeDevices":
      await session.closeDevices();
      return session.observe({ type: "DevicesClosed" });
    case "quarantine":
      await mark(context, { quarantine: "on" }, effect.attemptId, signal);
      return session.observe({ type: "Quarantined" });
    case "taint":
      return putTaint(context, effect.attemptId, signal);
    case "untaint":
      await mark(context, { outOfService: "off" }, "", signal);
      return session.observe({ type: "Untainted" });
    case "swapMarks":
      await mark(context, { outOfService: "off", quarantine: "on" }, effect.attemptId, signal);
      return session.observe({ type: "MarksSwapped" });
    case "clearMarks":
      await mark(context, { outOfService: "off", quarantine: "off" }, "", signal);
      return session.observe({ type: "MarksCleared" });
    case "liftQuarantine": {
      // The watch shows that the node is back. The live node must show it too.
      const patchFor: Parameters<typeof patchNode>[2] = (node) =>
        isNewBoot(session, node)
          ? markPatch(node, { outOfService: "off", quarantine: "off" }, "", undefined, putOnBy(session, node))
          : [];
      const node = await patchNode(client, nodeName, patchFor, signal);
      return session.observe({ type: "QuarantineLifted", isNewBoot: node !== undefined && isNewBoot(session, node) });
    }
    case "releasePods": {
      const node = await getNode(client, nodeName, signal);
      // If a Node with another UID has joined since, its pods do not run on the host that is off.
      const isFenced = node === undefined || node.metadata.uid === session.status.node?.uid;
      const pods =
        isFenced && nodeName !== undefined
          ? await releasePods({ ...nodeRuntime, writes: context.earlyPodWrites }, nodeName, effect.withinMs, signal)
          : 0;
      return session.observe({ type: "PodsReleased", pods });
    }
    case "checkDrained": {
      const bound = nodeName === undefined ? { pods: 0, attachments: 0 } : await countBound(client, nodeName, signal);
      return session.observe({ type: "DrainChecked", ...bound, atMs: session.now().monotonicMs });
    }
    case "backupNode": {
      const node = await getNode(client, nodeName, signal);
      if (node === undefined || node.metadata.uid !== session.status.node?.uid) {
        return session.observe({ type: "NodeDeleted" });
      }
      const { resourceVersion } = node.metadata;
      return session.observe({ type: "NodeSaved", backup: backupOf(node, session.status.backup), resourceVersion });
    }
    case "deleteNode":
      return deleteNode(context, signal);
    case "restoreNode": {
      const { backup } = session.status;
      if (backup === undefined) return;
      const patchFor: Parameters<typeof patchNode>[2] = (node) =>
        node.metadata.uid === backup.nodeUID ? [] : restorePatch(node, backup);
      const node = await patchNode(client, nodeName, patchFor, signal);
      return session.observe({ type: "NodeRestored", uid: node?.metadata.uid });
    }
    case "recordReboot": {
      const { uid: nodeUID, bootID } = session.status.node ?? {};
      const reboot = {
        time: toTime(effect.onOrderedAtMs),
        offConfirmedAt: toTime(effect.offConfirmedAtMs),
        ...(nodeUID !== undefined && { nodeUID }),
        ...(bootID !== undefined && { bootID }),
      };
      await context.host?.recordReboot(reboot, signal);
      return session.observe({ type: "RebootRecorded" });
    }
  }
}

async function deleteNode({ nodeRuntime, session }: EffectContext, signal: AbortSignal): Promise<void> {
  const { nodeName } = session;
  const { backup } = session.observations;
  if (backup === undefined || nodeName === undefined) return;
  try {
    const guard = { uid: backup.status.nodeUID, resourceVersion: backup.resourceVersion };
    await nodeRuntime.client.delete(NODES, { name: nodeName }, { guard }, signal);
    session.observe({ type: "NodeDeleted" });
  } catch (error) {
    if (isKubeError(error, "NotFound")) return session.observe({ type: "NodeDeleted" });
    // The node was changed since it was saved: save it again.
    if (isKubeError(error, "Conflict")) session.observe({ type: "SavedNodeOutdated" });
    throw error;
  }
}
