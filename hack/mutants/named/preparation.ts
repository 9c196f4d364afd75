import { TARGETS } from "./killers.ts";
import { mutantsOf } from "./mutant.ts";
import type { Mutant } from "./mutant.ts";

const remediator = mutantsOf("src/remediator");
const redfish = mutantsOf("src/bmc/redfish");

const PREPARED_SIM = "test/sim/prepared.test.ts";
const PREPARED_HOSTS = "test/unit/remediator/hosts/fencing-target/prepared-hosts.test.ts";
const PREPARED_REDFISH = "test/integration/targets-redfish.test.ts";
const PREPARED = "hosts/fencing-target/prepared-hosts";

/** The preparation of a power-off in the last seconds of a duration. */
export const PREPARATION_MUTANTS: readonly Mutant[] = [
  remediator(
    "prepared-identity-counts",
    PREPARED,
    "an identity that was read during the preparation does not count later",
    "opened.forgetIdentities();",
    "",
    PREPARED_HOSTS,
  ),
  remediator(
    "prepared-for-unedited-target",
    PREPARED,
    "prepared devices are used only for the same version of their target",
    "JSON.stringify([uid, generation, expectedIdentity(target),",
    "JSON.stringify([uid, expectedIdentity(target),",
    PREPARED_SIM,
  ),
  remediator(
    "prepared-with-old-secret",
    PREPARED,
    "prepared devices are used only with the same version of the Secret",
    "expectedIdentity(target), devices.map(({ secrets }) => secrets)]",
    "expectedIdentity(target)]",
    PREPARED_HOSTS,
    PREPARED_SIM,
  ),
  remediator(
    "prepared-anything-taken",
    PREPARED,
    "prepared devices are used only if the host would now be opened in the same way",
    "preparation.isTaken = opened?.basis === fresh.basis;",
    "preparation.isTaken = opened !== undefined;",
    PREPARED_HOSTS,
    PREPARED_SIM,
  ),
  remediator(
    "prepared-mismatch-kept",
    PREPARED,
    "the devices of a host that was not verified are not kept",
    "if (!check.verified || running.aborted) return;",
    "if (running.aborted) return;",
    PREPARED_HOSTS,
  ),
  remediator(
    "prepared-login-holds-order",
    PREPARED,
    "a login of a preparation that hangs does not delay the login of the remediation",
    'abandon.abort(new Error("the preparation has ended"));',
    "",
    PREPARED_REDFISH,
  ),
  redfish(
    "prepared-login-never-abandoned",
    "session/guarded-login",
    "a login that is abandoned ends at once",
    "withDeadline(clock, what, LOGIN_SHARE * callTimeoutMs, abandonLogin, (signal)",
    "withDeadline(clock, what, LOGIN_SHARE * callTimeoutMs, new AbortController().signal, (signal)",
    PREPARED_REDFISH,
  ),
  remediator(
    "prepared-while-hanging",
    PREPARED,
    "a remediation does not wait for a preparation that has not ended",
    'ended.abort(new Error("the remediation of the host has begun"));',
    "while (preparation.opened === undefined && !preparation.isTaken && targetUid !== fresh.basis) await new Promise((resolve) => setImmediate(resolve));",
    PREPARED_REDFISH,
  ),
  remediator(
    "prepared-for-recovered",
    "early/preparer",
    "a preparation ends with the outage of its node",
    "known?.preparation?.end();",
    "",
    PREPARED_SIM,
  ),
  remediator(
    "prepared-for-ever",
    "early/preparer",
    "a preparation ends soon after the duration if no remediation begins",
    "const keptMs = outage.endMs - serverTimeMs(this.#deps.runtime) + PREPARED_KEPT_MS;",
    "const keptMs = 3_600_000;",
    PREPARED_SIM,
  ),
  remediator(
    "prepared-without-lease",
    "early/preparer",
    "a preparation ends when the agent loses its lease",
    "this.#prepare(node, target, AbortSignal.any([signal, ended.signal]))",
    "this.#prepare(node, target, ended.signal)",
    PREPARED_SIM,
  ),
  remediator(
    "prepared-while-stopped",
    "early/preparer",
    "nothing is prepared while power-offs are held",
    "other !== undefined || isStopped() || isManaged(target)",
    "other !== undefined || isManaged(target)",
    PREPARED_SIM,
  ),
  remediator(
    "prepared-in-maintenance",
    "early/preparer",
    "nothing is prepared for a target that must not be used",
    "isExcluded || isConflict || whyTargetUnusable(target) !== undefined",
    "isExcluded || isConflict",
    PREPARED_SIM,
  ),
  remediator(
    "prepared-all-at-once",
    "early/preparer",
    "at most eight hosts are prepared at a time",
    "node === undefined || this.#running.size >= PREPARED_AT_ONCE",
    "node === undefined",
    PREPARED_SIM,
  ),
  remediator(
    "prepared-again",
    "early/preparer",
    "a host is prepared once per outage",
    "if (outage.preparation !== undefined || outage.endMs <= nowMs) continue;",
    "if (outage.endMs <= nowMs) continue;",
    PREPARED_SIM,
  ),
  remediator(
    "prepared-at-will-of-kubelet",
    "early/preparer",
    "a target is prepared at most once in 60 s, whatever its kubelet reports",
    "if (this.#preparedAtMs.has(uid)) return false;",
    "",
    PREPARED_SIM,
  ),
  remediator(
    "probed-at-will-of-kubelet",
    "probes/schedule/probe-schedule",
    "new boots lead to at most one probe of a target in 60 s, whatever its kubelet reports",
    "const gapMs = isBootAgain ? BOOT_GAP_MIN_MS : intervals.changeMs;",
    "const gapMs = intervals.changeMs;",
    PREPARED_SIM,
  ),
  remediator(
    "prepared-under-threshold",
    "early/announcement",
    "nothing is prepared while too few nodes are healthy for a remediation to start",
    "counts === undefined || !mayStart(data, counts)",
    "counts === undefined",
    PREPARED_SIM,
  ),
  remediator(
    "claimed-by-watch",
    "hosts/fencing-target/target-store",
    "an owner in a watched target does not count as a claim, so the target is read live",
    "watched?.status?.owner === undefined ? watched : undefined,",
    "watched,",
    PREPARED_HOSTS,
    TARGETS,
  ),
];
