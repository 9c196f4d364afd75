import { beginPowerOn, deleteNode, keepProof } from "./releasing.ts";
import { deviceGate, fail, failAttempt, move, run, wait } from "../rules/transitions.ts";
import type { Now, Walk } from "../model/snapshot.ts";
import type { Attempt } from "../model/state.ts";
import { processing } from "../model/status.ts";
import type { InstalledHost } from "../model/reprovision.ts";
import { isFresh, LOOK_AGAIN_MS } from "../model/reprovision.ts";
import { whyNotInstallable } from "../rules/reprovision-checks.ts";
import type { Decision } from "../model/decision.ts";

/** Of Metal3's operator: nothing is installed on the host. */
const EMPTY_STATES: readonly (string | undefined)[] = ["available", "ready"];

/**
 * Has a BareMetalHost installed anew: what is installed is saved, taken off, and once the host is empty put on again. Every step is
 * stored before it is made, and an undo puts the image back.
 */
export function decideInstallation(walk: Walk, now: Now): Decision {
  const { installation } = walk.status;
  if (installation === undefined || installation.step === "Provisioned") return beginInstallation(walk, now);
  const look = walk.seen.installed;
  if (!isFresh(look, now.monotonicMs, LOOK_AGAIN_MS)) return run({ do: "examineHost" });
  if (look.consumer !== undefined || look.isGone) {
    const whose = look.isGone ? "is gone" : `was taken by ${look.consumer ?? ""}`;
    return fail(walk, now, "HostTaken", `${hostText(walk)} ${whose} while it was being installed again`);
  }
  return installation.step === "Deprovisioning"
    ? deprovision(walk, installation, look, now)
    : provision(walk, installation, look, now);
}

/** The host is still proven off: its Node object goes, so that it joins anew, and what is installed is saved. */
function beginInstallation(walk: Walk, now: Now): Decision {
  const { attempt, plan, seen } = walk;
  if (walk.remainingMs <= 0) {
    const { reason, message } = seen.device ?? {
      reason: "ProvisionTimeout" as const,
      message: "the node could not be deleted in time",
    };
    return failAttempt(walk, now, reason, message);
  }
  const pending = deviceGate(walk, now) ?? keepProof(walk, now) ?? deleteNode(walk, now);
  if (pending !== undefined) return pending;
  const look = seen.installed;
  if (!isFresh(look, now.monotonicMs)) return run({ do: "examineHost" });
  const why = whyNotInstallable(walk, look);
  if (why !== undefined || look.image === undefined) return fail(walk, now, "HostNotInstallable", why ?? "no image");
  const message = `${hostText(walk)} is to be deprovisioned`;
  return saveImage(walk, now, { ...attempt, deadlineMs: now.epochMs + plan.timeoutMs }, look.image, message);
}

function saveImage(walk: Walk, now: Now, attempt: Attempt, image: string, message: string): Decision {
  return move(walk, now, {
    to: "Provisioning",
    step: "Deprovisioning",
    message,
    attempt,
    conditions: processing("Deprovisioning", message),
    fields: { installation: { step: "Deprovisioning", image } },
  });
}

type Installation = NonNullable<Walk["status"]["installation"]>;

function deprovision(walk: Walk, installation: Installation, look: InstalledHost, now: Now): Decision {
  if (look.image !== undefined) {
    const late = outOfTime(walk, look, now);
    if (late !== undefined) return late;
    const unproven = deviceGate(walk, now) ?? keepProof(walk, now);
    if (unproven !== undefined) return unproven;
    if (look.image !== installation.image) {
      const message = `${hostText(walk)} now has another image set: that one is saved instead of the first`;
      return saveImage(walk, now, walk.attempt, look.image, message);
    }
    return isFresh(look, now.monotonicMs) ? run({ do: "takeImageOff" }) : run({ do: "examineHost" });
  }
  if (!EMPTY_STATES.includes(look.provisioningState)) return awaitOperator(walk, look, now);
  const { attempt, plan } = walk;
  const message = `${hostText(walk)} is deprovisioned, and is to be provisioned with what it had`;
  return move(walk, now, {
    to: "Provisioning",
    step: "Provisioning",
    message,
    attempt: { ...attempt, deadlineMs: now.epochMs + plan.timeoutMs },
    conditions: processing("Provisioning", message),
    fields: { installation: { ...installation, step: "Provisioning" } },
  });
}

function provision(walk: Walk, installation: Installation, look: InstalledHost, now: Now): Decision {
  if (look.image === undefined) return outOfTime(walk, look, now) ?? run({ do: "putImageBack" });
  if (look.provisioningState !== "provisioned") return awaitOperator(walk, look, now);
  const fields = { installation: { ...installation, step: "Provisioned" as const } };
  return beginPowerOn(walk, now, "Provisioned", `${hostText(walk)} is provisioned`, [], fields);
}

function awaitOperator(walk: Walk, look: InstalledHost, now: Now): Decision {
  return outOfTime(walk, look, now) ?? wait(walk, look.atMs + LOOK_AGAIN_MS + 1 - now.monotonicMs);
}

function outOfTime(walk: Walk, look: InstalledHost, now: Now): Decision | undefined {
  if (walk.remainingMs > 0) return undefined;
  const error = look.errorMessage === undefined ? "" : `: ${look.errorMessage}`;
  const message = `${hostText(walk)} is still ${look.provisioningState ?? "in no provisioning state"} after its time${error}`;
  return fail(walk, now, "ProvisionTimeout", message);
}

/** Puts back what was taken off a BareMetalHost. Undefined where nothing was, or it is back, or the host is another's by now. */
export function restoreInstallation(walk: Walk, now: Now): Decision | undefined {
  const { attempt, seen, status } = walk;
  const { installation } = status;
  if (installation === undefined || installation.step === "Provisioned") return undefined;
  const look = seen.installed;
  if (!isFresh(look, now.monotonicMs, LOOK_AGAIN_MS)) return run({ do: "examineHost" });
  if (look.image === undefined && look.consumer === undefined && !look.isGone) return run({ do: "putImageBack" });
  const message = `${hostText(walk)} has its image back, or now belongs to another user`;
  return move(walk, now, {
    to: walk.state.name,
    step: "ImageRestored",
    message,
    attempt,
    fields: { installation: { ...installation, step: "Provisioned" } },
  });
}

function hostText({ status }: Walk): string {
  return `BareMetalHost ${status.target?.namespace ?? ""}/${status.target?.name ?? ""}`;
}
