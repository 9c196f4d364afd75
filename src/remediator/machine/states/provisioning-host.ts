import { beginPowerOn, deleteNode, keepProof } from "./releasing.ts";
import { fail, failAttempt } from "../rules/attempts.ts";
import { ensureDeviceUsable } from "../rules/preconditions.ts";
import { transition, run, wait } from "../rules/transitions.ts";
import type { Now, AttemptSnapshot } from "../model/facts/snapshot.ts";
import type { Attempt } from "../model/decision/state.ts";
import { processing } from "../model/status.ts";
import type { InstalledHost } from "../model/facts/reprovision.ts";
import { isFresh, REREAD_MS } from "../model/facts/reprovision.ts";
import { whyNotInstallable } from "../rules/admission/reprovision-checks.ts";
import type { Decision } from "../model/decision/decision.ts";

/** Provisioning states of the Metal3 operator in which nothing is installed on the host. */
const EMPTY_STATES: readonly (string | undefined)[] = ["available", "ready"];

/**
 * Has a BareMetalHost installed again: saves its image, removes it, and sets it again when the host is deprovisioned.
 * Every step is stored before it is taken, and an undo puts the image back.
 */
export function decideInstallation(snapshot: AttemptSnapshot, now: Now): Decision {
  const { installation } = snapshot.status;
  if (installation === undefined || installation.step === "Provisioned") return beginInstallation(snapshot, now);
  const report = snapshot.observations.installed;
  if (!isFresh(report, now.monotonicMs, REREAD_MS)) return run({ do: "examineHost" });
  if (report.consumer !== undefined || report.isGone) {
    const whose = report.isGone ? "is gone" : `was taken by ${report.consumer ?? ""}`;
    return fail(snapshot, now, "HostTaken", `${hostText(snapshot)} ${whose} while it was being installed again`);
  }
  return installation.step === "Deprovisioning"
    ? deprovision(snapshot, installation, report, now)
    : provision(snapshot, installation, report, now);
}

/** Deletes the Node object so that the node joins again, and saves the image. The host is still proven off. */
function beginInstallation(snapshot: AttemptSnapshot, now: Now): Decision {
  const { attempt, strategy, observations } = snapshot;
  if (snapshot.remainingMs <= 0) {
    const { reason, message } = observations.device ?? {
      reason: "ProvisionTimeout" as const,
      message: "the node could not be deleted in time",
    };
    return failAttempt(snapshot, now, reason, message);
  }
  const pending = ensureDeviceUsable(snapshot, now) ?? keepProof(snapshot, now) ?? deleteNode(snapshot, now);
  if (pending !== undefined) return pending;
  const report = observations.installed;
  if (!isFresh(report, now.monotonicMs)) return run({ do: "examineHost" });
  const why = whyNotInstallable(snapshot, report);
  if (why !== undefined || report.image === undefined)
    return fail(snapshot, now, "HostNotInstallable", why ?? "no image");
  const message = `${hostText(snapshot)} is to be deprovisioned`;
  return saveImage(snapshot, now, { ...attempt, deadlineMs: now.epochMs + strategy.timeoutMs }, report.image, message);
}

function saveImage(snapshot: AttemptSnapshot, now: Now, attempt: Attempt, image: string, message: string): Decision {
  return transition(snapshot, now, {
    to: "Provisioning",
    step: "Deprovisioning",
    message,
    attempt,
    conditions: processing("Deprovisioning", message),
    fields: { installation: { step: "Deprovisioning", image } },
  });
}

type HostInstallation = NonNullable<AttemptSnapshot["status"]["installation"]>;

function deprovision(
  snapshot: AttemptSnapshot,
  installation: HostInstallation,
  report: InstalledHost,
  now: Now,
): Decision {
  if (report.image !== undefined) {
    const late = outOfTime(snapshot, report, now);
    if (late !== undefined) return late;
    const unproven = ensureDeviceUsable(snapshot, now) ?? keepProof(snapshot, now);
    if (unproven !== undefined) return unproven;
    if (report.image !== installation.image) {
      const message = `${hostText(snapshot)} now has another image set: that one is saved instead of the first`;
      return saveImage(snapshot, now, snapshot.attempt, report.image, message);
    }
    return isFresh(report, now.monotonicMs) ? run({ do: "takeImageOff" }) : run({ do: "examineHost" });
  }
  if (!EMPTY_STATES.includes(report.provisioningState)) return awaitOperator(snapshot, report, now);
  const { attempt, strategy } = snapshot;
  const message = `${hostText(snapshot)} is deprovisioned, and will be provisioned with the same image`;
  return transition(snapshot, now, {
    to: "Provisioning",
    step: "Provisioning",
    message,
    attempt: { ...attempt, deadlineMs: now.epochMs + strategy.timeoutMs },
    conditions: processing("Provisioning", message),
    fields: { installation: { ...installation, step: "Provisioning" } },
  });
}

function provision(
  snapshot: AttemptSnapshot,
  installation: HostInstallation,
  report: InstalledHost,
  now: Now,
): Decision {
  if (report.image === undefined) return outOfTime(snapshot, report, now) ?? run({ do: "putImageBack" });
  if (report.provisioningState !== "provisioned") return awaitOperator(snapshot, report, now);
  const fields = { installation: { ...installation, step: "Provisioned" as const } };
  return beginPowerOn(snapshot, now, "Provisioned", `${hostText(snapshot)} is provisioned`, [], fields);
}

function awaitOperator(snapshot: AttemptSnapshot, report: InstalledHost, now: Now): Decision {
  return outOfTime(snapshot, report, now) ?? wait(snapshot, report.atMs + REREAD_MS + 1 - now.monotonicMs);
}

function outOfTime(snapshot: AttemptSnapshot, report: InstalledHost, now: Now): Decision | undefined {
  if (snapshot.remainingMs > 0) return undefined;
  const error = report.errorMessage === undefined ? "" : `: ${report.errorMessage}`;
  const message = `${hostText(snapshot)} is still ${report.provisioningState ?? "in no provisioning state"} at the deadline${error}`;
  return fail(snapshot, now, "ProvisionTimeout", message);
}

/**
 * Puts the image of a BareMetalHost back, and reports when it is back or another consumer uses the host. Undefined if
 * there is nothing to put back.
 */
export function restoreInstallation(snapshot: AttemptSnapshot, now: Now): Decision | undefined {
  const { attempt, observations, status } = snapshot;
  const { installation } = status;
  if (installation === undefined || installation.step === "Provisioned") return undefined;
  const report = observations.installed;
  if (!isFresh(report, now.monotonicMs, REREAD_MS)) return run({ do: "examineHost" });
  if (report.image === undefined && report.consumer === undefined && !report.isGone) return run({ do: "putImageBack" });
  const message = `${hostText(snapshot)} has its image back, or now belongs to another user`;
  return transition(snapshot, now, {
    to: snapshot.state.name,
    step: "ImageRestored",
    message,
    attempt,
    fields: { installation: { ...installation, step: "Provisioned" } },
  });
}

function hostText({ status }: AttemptSnapshot): string {
  return `BareMetalHost ${status.target?.namespace ?? ""}/${status.target?.name ?? ""}`;
}
