// Every wait of the state machine that is not in the strategy, with its reason.

/** Maximum age of the last reading of Off. When it is older and cannot be renewed, the host is not proven off. */
export const POWER_PROOF_AGE_MAX_MS = 5_000;
/** The time that a remediation has to remove the taint after its proof ended. Then `unvouched-taints.ts` does it. */
export const PROOF_LAPSED_MS = 1_000;
/** Interval between readings of a host that is proven off: a slow answer still comes within POWER_PROOF_AGE_MAX_MS. */
export const POWER_REREAD_MS = 1_500;
/** Interval between the two readings of a proof. */
export const OFF_CONFIRM_GAP_MS = 20;
/**
 * Interval between readings while a change of power is awaited: short at first, because most BMCs take a second or two.
 * Together with the second reading of a proof, no BMC is read more than four times in any second.
 */
export const POLL_FAST_MS = 330;
export const POLL_SLOW_MS = 1_000;
/** How long after an order the short interval applies. */
export const POLL_FAST_WINDOW_MS = 10_000;
/**
 * How long an order may take to have an effect before another one is sent under a new id: BMCs carry orders out late,
 * and fence-agents waits as long.
 */
export const REORDER_AFTER_MS = 20_000;
/**
 * How long after a power-off order the BMC may still carry it out although the host reads On. This is longer than
 * REORDER_AFTER_MS: an extra order does no harm, but a remediation that ends too early leaves the host off. No standard
 * bounds this time; the slowest BMC of the simulation takes 120 s.
 */
export const ORDER_SETTLED_AFTER_MS = 125_000;
/**
 * If a BMC still reports the host as not on this long after ORDER_SETTLED_AFTER_MS, a renewal of the node's lease shows
 * that the BMC is wrong.
 */
export const CONTRADICTED_FOR_MS = 60_000;
/**
 * The same as ORDER_SETTLED_AFTER_MS for a host that the Metal3 operator powers off because of an annotation. Once the
 * annotation is removed, only an order that the operator has already sent can still be carried out.
 */
export const MARK_SETTLED_AFTER_MS = 30_000;
/**
 * The pause before a further power-off of a host that came on again by itself. It is multiplied by the number of orders
 * minus one: none before the second order, one before the third, two before the fourth.
 */
export const REORDER_PAUSE_MS = 10_000;
/** How long an undo waits after a power-on order, even past its deadline, before it reports that the host is not on. */
export const ON_AWAITED_MS = 30_000;
/** Longest pause between power-on orders that have no effect, such as those of an undo that must not give up. */
export const ON_PAUSE_MAX_MS = 300_000;
/** How long a BMC may take to answer an order for an NMI or an AC cycle. */
export const ONCE_CALL_MAX_MS = 10_000;
/**
 * How long an AC cycle by outlets lasts, from its order. The outlets read Off within `ONCE_CALL_MAX_MS`; the rest of
 * the time lets the power supplies discharge.
 */
export const SUPPLY_CUT_MS = 2 * ONCE_CALL_MAX_MS;
/** Interval between readings of a BMC that an AC cycle interrupts. */
export const AC_CYCLE_POLL_MS = 2_000;
/**
 * How long a node that begins another boot during the wait for its crash dump may take to become Ready before its host
 * is powered off. A kubelet reports its boot first, and Ready only when its network plugin runs.
 */
export const REBOOTED_READY_MS = 20_000;
/**
 * How long after its last fence_kdump message a crash kernel counts as ended: three intervals of `fence_kdump_send`, so
 * that two messages in a row may be lost.
 */
export const KDUMP_SILENCE_MS = 30_000;
/** Maximum age of an identity check when an order is sent. */
export const IDENTITY_AGE_MAX_MS = 5_000;
/** Maximum difference in age between the identity check and the other live reads on which an order is based. */
export const EXAMINED_AGE_MAX_MS = 1_000;
/** A remediation that is older and has not begun was overlooked, or a backup tool has restored it. */
export const REQUEST_AGE_MAX_MS = 600_000;
/**
 * Interval between live reads of the node of a remediation that waits for confirmation: MIN if the watch shows that
 * the node has become Ready or not Ready, otherwise MAX.
 */
export const REQUEST_RECHECK_MIN_MS = 1_000;
export const REQUEST_RECHECK_MAX_MS = 30_000;
/** Interval between live reads of a hold. Usually the watch shows its end first. */
export const HOLD_REREAD_MS = 5_000;
/**
 * A kubelet's time-out for one renewal of its lease (its status update interval). If the agent sees a renewal later
 * than this after the host was proven off, the kubelet that sent it runs on another host.
 */
export const RENEWAL_TIMEOUT_MS = 10_000;
/**
 * How long a renewal may take to arrive. It is added to a quarter of the lease's duration and 4 % of jitter, which
 * makes 12 s for a lease of 40 s.
 */
export const RENEWAL_SLACK_MS = 1_600;
/**
 * The least time that a live kubelet gets to renew its lease: a lease keeps its first duration even if the kubelet's
 * configuration has changed since.
 */
export const RENEWAL_WAIT_MIN_MS = 12_000;
/** A longer lease duration counts as this one, so that no lease keeps a host off for hours. */
export const LEASE_DURATION_COUNTED_MAX_MS = 240_000;
/**
 * Interval between live reads of a lease while the agent waits for its silence. They show that the API server answers,
 * even if another kind cannot be read. The interval and the call must fit into the limit of
 * `src/kube/connection/follow-contact.ts`, after which the API server counts as unreachable.
 */
export const LEASE_REREAD_MS = 3_000;
/** Maximum age of the reading of Off that an early power-off order needs. */
export const EARLY_READING_AGE_MAX_MS = 1_500;
/** Interval between readings of a host that must not be powered on yet: another client may power it on. */
export const EARLY_POLL_MS = 5_000;
/**
 * How long after the first renewal of its lease a node may take to report its new boot: a kubelet reports its status
 * every 10 s.
 */
export const SAME_BOOT_AFTER_MS = 30_000;
/** Interval between checks of what is still on the node. It doubles from MIN to MAX. */
export const DRAIN_CHECK_MIN_MS = 250;
export const DRAIN_CHECK_MAX_MS = 3_000;
/** The longest that one batch of pod deletions may take before the power is checked again. */
export const RELEASE_BATCH_MAX_MS = 2_000;
/**
 * Longest live read of a target that the remediation owns according to its status. If it fails, the stored ownership
 * counts.
 */
export const RECLAIM_MAX_MS = 5_000;
/** Longest live read before a power-on. If it takes longer, the watched object decides. */
export const ON_CHECK_MAX_MS = 5_000;
/** The least time that a process gets for an undo, even if the stored deadline is over. */
export const UNDO_MIN_MS = 50_000;
/** Interval between checks of a host that another remediation owns. Usually the watch shows its release first. */
export const CLAIM_RECHECK_MS = 30_000;
/** While a cluster is unreachable: the interval between checks whether its Cluster still exists. */
export const CLUSTER_RECHECK_MS = 30_000;
/** The same as CLAIM_RECHECK_MS if the watch shows another owner than the last claim reported. */
export const FREED_RECHECK_MS = 250;
/** Maximum age of the live read of waiting remediations when an undo decides whether to power the host on. */
export const SUCCESSOR_AGE_MAX_MS = 1_000;
/** Backoff between calls to a device that fails. */
export const DEVICE_RETRY_MIN_MS = 1_000;
export const DEVICE_RETRY_MAX_MS = 15_000;
/** Wait before a device that refuses permanently is called again: logins with a wrong password lock accounts. */
export const DEVICE_FINAL_RETRY_MS = 300_000;
/** How long a remediation keeps its slot while its cluster or an API is unreachable, or after its deadline. */
export const SLOT_KEPT_MS = 60_000;
/** Backoff between calls to an API server that fails. */
export const API_RETRY_MIN_MS = 200;
export const API_RETRY_MAX_MS = 10_000;
/**
 * How long a remediation waits, for example after a start, until it reports that something it needs was not read.
 * Longer than POWER_PROOF_AGE_MAX_MS: the report rewrites a status of version 0.1.0, which until then shows that an
 * unvouched taint is ironfence's own.
 */
export const UNREAD_REPORT_AFTER_MS = 7_000;
/** Interval between checks whether something that was not read has been read. */
export const UNREAD_RECHECK_MS = 200;
/** Interval between checks of a remediation of another version: its deadline may have passed. */
export const UNKNOWN_RECHECK_MS = 10_000;
/** How long API calls of one kind may fail before the remediation reports that. */
export const API_REPORT_AFTER_MS = 20_000;
/** Interval between warnings about failing API calls: Kubernetes Events are kept for an hour. */
export const API_REPEAT_MS = 10 * 60_000;
/** Longest backoff between tries to remove our out-of-service taint, Retry-After included: the host may be on. */
export const UNTAINT_RETRY_MAX_MS = 1_000;
/**
 * How long the first try to remove the taint may last. Each further try gets twice the time, up to MAX, because the
 * API server may only be slow.
 */
export const UNTAINT_TRY_MIN_MS = 3_000;
export const UNTAINT_TRY_MAX_MS = 24_000;
/** Longest live read of a remediation after the guard of a write has failed. Then the next guard decides. */
export const REFRESH_MAX_MS = 3_000;
/** How late an unanswered write may take effect: an API server aborts a request after one minute. */
export const WRITE_LATE_MAX_MS = 70_000;
