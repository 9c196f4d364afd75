// Every wait of the state machine that is not in the strategy, with its reason.

/** The longest a host may go unread between the proof that it is off and the end of its release. */
export const POWER_PROOF_AGE_MAX_MS = 5_000;
/** How much longer a remediation has for taking the taint off itself, before another part of the agent does. */
export const PROOF_LAPSED_MS = 1_000;
/** When it is read again, so that a slow answer still comes within POWER_PROOF_AGE_MAX_MS. */
export const POWER_REREAD_MS = 1_500;
/** Between the two readings that make a proof. */
export const OFF_CONFIRM_GAP_MS = 20;
/**
 * Between readings while a change of power is awaited: short at first, since most BMCs take a second or two. With the
 * confirming one, no BMC is read more than four times in any second.
 */
export const POLL_FAST_MS = 330;
export const POLL_SLOW_MS = 1_000;
/** How long after an order the short interval holds. */
export const POLL_FAST_WINDOW_MS = 10_000;
/**
 * How long an order is given to take effect before another one is sent, under an id of its own: BMCs execute late, and
 * fence-agents' window is as long.
 */
export const REORDER_AFTER_MS = 20_000;
/**
 * How long after a power-off order a host that still reads On, or reads On again, may yet be powered off by that
 * order. An order too many does no harm, but a remediation that ends too early leaves the host off, so this is longer
 * than REORDER_AFTER_MS. No standard bounds that time: the slowest BMC of the simulation takes 120 s.
 */
export const ORDER_SETTLED_AFTER_MS = 125_000;
/** For how long after that a node that lives has to contradict a BMC that says that its host is not on. */
export const CONTRADICTED_FOR_MS = 60_000;
/**
 * The same as ORDER_SETTLED_AFTER_MS for a host that its operator powers off because of an annotation. Once that is
 * removed, only an order that the operator has already sent can still be carried out.
 */
export const MARK_SETTLED_AFTER_MS = 30_000;
/**
 * The growing pause before a further power-off of a host that comes on again by itself: none before the second order,
 * once this before the third, twice before the fourth.
 */
export const REORDER_PAUSE_MS = 10_000;
/** How long a host that was ordered on late may take to read On before that is reported. */
export const ON_AWAITED_MS = 30_000;
/** Longest pause between orders to power on that show no effect; an undo that may not give up goes on that often. */
export const ON_PAUSE_MAX_MS = 300_000;
/** How long the BMC has for taking an NMI, or an AC cycle. */
export const ONCE_CALL_MAX_MS = 10_000;
/**
 * How long after its order an AC cycle by outlets lasts. They have read Off within `ONCE_CALL_MAX_MS`: what is left
 * discharges the supplies.
 */
export const SUPPLY_CUT_MS = 2 * ONCE_CALL_MAX_MS;
/** Between readings of a BMC that an AC cycle interrupts. */
export const AC_CYCLE_POLL_MS = 2_000;
/**
 * How long a node that has begun another boot during the wait for its crash dump may take to be Ready, before it is
 * powered off after all: a kubelet reports its boot first, and that it is Ready once its network plugin runs.
 */
export const REBOOTED_READY_MS = 20_000;
/**
 * How long after its last fence_kdump message a crash kernel counts as ended: three intervals of `fence_kdump_send`, of
 * which two messages may be lost.
 */
export const KDUMP_SILENCE_MS = 30_000;
/** How long a verified identity serves the order that follows it. */
export const IDENTITY_AGE_MAX_MS = 5_000;
/** How much older than the host's identity the check at the node may be that the order rests on as well. */
export const EXAMINED_AGE_MAX_MS = 1_000;
/** A remediation without status that is older has been overlooked, or brought back by a restore. */
export const REQUEST_AGE_MAX_MS = 600_000;
/**
 * Between live reads at the node of one that waits to be confirmed: at the earliest after news of it, and at the
 * latest.
 */
export const REQUEST_RECHECK_MIN_MS = 1_000;
export const REQUEST_RECHECK_MAX_MS = 30_000;
/**
 * How often what holds a power order by a live read is checked again, in addition to the watch, which usually shows it.
 */
export const HOLD_REREAD_MS = 5_000;
/**
 * A kubelet's time-out for one renewal of its lease (its status update interval). A renewal that is seen later than
 * this after the host was proven off was sent by a kubelet that runs on another host.
 */
export const RENEWAL_TIMEOUT_MS = 10_000;
/**
 * What a renewal may take on its way: beyond a quarter of the lease's duration and its jitter of 4 %, so 12 s with
 * leases of 40 s.
 */
export const RENEWAL_SLACK_MS = 1_600;
/**
 * What a kubelet that lives is given to renew at least: a lease keeps its first duration, even if the kubelet's
 * configuration has changed since.
 */
export const RENEWAL_WAIT_MIN_MS = 12_000;
/** A longer duration of a lease counts as this one, so that no lease keeps a host off for hours. */
export const LEASE_DURATION_COUNTED_MAX_MS = 240_000;
/**
 * Between live reads of a lease whose silence is waited for: by them an outage of the API server is noticed, and a kind
 * that cannot be read is not taken for one (`src/kube/connection/follow-contact.ts`, whose limit this is below, with
 * time for the calls).
 */
export const LEASE_REREAD_MS = 3_000;
/** How old the reading of Off may be on which a power-off order rests that is sent before a duration is over. */
export const EARLY_READING_AGE_MAX_MS = 1_500;
/** Between readings of a host that is off and is not to be powered on yet, since others may do that. */
export const EARLY_POLL_MS = 5_000;
/**
 * How long after the first renewal of its lease a node may take to report its new boot: a kubelet reports its status
 * every 10 s.
 */
export const SAME_BOOT_AFTER_MS = 30_000;
/** Between checks of what is still on the node; doubling from one to the other. */
export const DRAIN_CHECK_MIN_MS = 250;
export const DRAIN_CHECK_MAX_MS = 3_000;
/** The longest that one batch of pod deletions may take before the power is checked again. */
export const RELEASE_BATCH_MAX_MS = 2_000;
/**
 * How long the target of a host may take to be read that is the remediation's by what is stored: then it is taken as
 * that.
 */
export const RECLAIM_MAX_MS = 5_000;
/** How long what is checked before a power-on may take to be read: then what is known of it decides. */
export const ON_CHECK_MAX_MS = 5_000;
/** The least time that a process has for an undo, however late it comes to it. */
export const UNDO_MIN_MS = 50_000;
/** Between checks of a host that another remediation owns, in addition to the watch, which usually shows it. */
export const CLAIM_RECHECK_MS = 30_000;
/** While a cluster is unreachable: the interval between checks whether its Cluster still exists. */
export const CLUSTER_RECHECK_MS = 30_000;
/** The same, if the watch shows another owner than the last claim reported. */
export const FREED_RECHECK_MS = 250;
/** How old a live read of the remediations that wait for the host may be when it decides about the last On. */
export const SUCCESSOR_AGE_MAX_MS = 1_000;
/** Back-off between calls to a device that fails. */
export const DEVICE_RETRY_MIN_MS = 1_000;
export const DEVICE_RETRY_MAX_MS = 15_000;
/** Before a device is called again that must not be called often: more log-ins with a wrong password lock accounts. */
export const DEVICE_FINAL_RETRY_MS = 300_000;
/** How long a remediation keeps its slot while its cluster or an API is unreachable, or after its deadline. */
export const SLOT_KEPT_MS = 60_000;
/** Back-off between calls to an API server that fails. */
export const API_RETRY_MIN_MS = 200;
export const API_RETRY_MAX_MS = 10_000;
/**
 * How long what a remediation needs may take to be read, as after a start, before the remediation says that it waits
 * for it. Longer than POWER_PROOF_AGE_MAX_MS: by what 0.1.0 stored, a taint of 0.1.0's is known.
 */
export const UNREAD_REPORT_AFTER_MS = 7_000;
/** While something has not been read: the interval between checks whether it has been. */
export const UNREAD_RECHECK_MS = 200;
/** How often a remediation of another version is checked: its time may be over. */
export const UNKNOWN_RECHECK_MS = 10_000;
/** How long calls of one kind may fail before the remediation says so. */
export const API_REPORT_AFTER_MS = 20_000;
/** How often a warning about them is repeated: events are kept for an hour. */
export const API_REPEAT_MS = 10 * 60_000;
/** Longest back-off between tries to take our out-of-service taint off, Retry-After included: the host may be on. */
export const UNTAINT_RETRY_MAX_MS = 1_000;
/**
 * How long one try to take the taint off may last at first; twice as long each time, since the API server may just be
 * slow.
 */
export const UNTAINT_TRY_MIN_MS = 3_000;
export const UNTAINT_TRY_MAX_MS = 24_000;
/** How long a remediation is read again after a failed guard: then the guards of the next write decide. */
export const REFRESH_MAX_MS = 3_000;
/** How late a write may take effect that has had no answer: an API server ends what takes longer than a minute. */
export const WRITE_LATE_MAX_MS = 70_000;
