// Annotations that ironfence reads or writes. Never change these strings: other controllers and stored objects use
// them.

/** On a remediation CR: the node to remediate. By default it is the name of the CR (medik8s contract). */
export const NODE_NAME = "remediation.medik8s.io/node-name";
/** On a remediation CR: the template that it was created from. */
export const TEMPLATE_NAME = "remediation.medik8s.io/template-name";
/** On a remediation CR: the time (RFC 3339) at which the health check ended the attempt. */
export const NHC_TIMED_OUT = "remediation.medik8s.io/nhc-timed-out";
/** On a remediation CR: the time until which its deletion waits although the node is healthy. */
export const HEALTHY_DELAY = "remediation.medik8s.io/healthy-delay";
/** On a remediation CR: the health check has already counted it as older than 48 h. */
export const OLD_REMEDIATION_CR = "nodehealthcheck.medik8s.io/old-remediation-cr-flag";
/** On a remediation template: its remediator accepts several CRs for one node, if each is from a different template. */
export const MULTIPLE_TEMPLATES_SUPPORT = "remediation.medik8s.io/multiple-templates-support";
/** On a node: the operator confirms that it is healthy. The health check removes the annotation. */
export const MANUALLY_CONFIRMED_HEALTHY = "remediation.medik8s.io/manually-confirmed-healthy";
/** On a node: `namespace/name` of its Machine. */
export const MACHINE = "machine.openshift.io/machine";
/** On a node of Cluster API: name and namespace of its Machine, in the management cluster. */
export const CLUSTER_API_MACHINE = "cluster.x-k8s.io/machine";
export const CLUSTER_API_NAMESPACE = "cluster.x-k8s.io/cluster-namespace";
/** On a node of OKD: its present configuration, and the one that it is being changed to. */
export const CURRENT_CONFIG = "machineconfiguration.openshift.io/currentConfig";
export const DESIRED_CONFIG = "machineconfiguration.openshift.io/desiredConfig";

/**
 * On a node: the fencing attempt (`<remediation uid>/<attempt id>`) that put the out-of-service taint there, for
 * information. A kubelet can write this annotation, so the owner of the out-of-service taint is read from a second
 * taint with the same key.
 */
export const FENCED_BY = "ironfence.io/fenced-by";
/** On a node: the fencing attempt (`<remediation uid>/<attempt id>`) that put our quarantine taint there. */
export const QUARANTINED_BY = "ironfence.io/quarantined-by";

/**
 * On a node: the start time of the drill that has cordoned it. A drill removes only a cordon with its own start time.
 */
export const DRILL = "ironfence.io/drill";

/** On a Secret with a BMC's credentials: the addresses to which the credentials may be sent (`isAllowed`). */
export const ALLOWED_ADDRESSES = "ironfence.io/allowed-addresses";

/** On a BareMetalHost: JSON with the remediation that may power the host now, and the identity that it has read. */
export const HOST_OWNER = "ironfence.io/owner";
/** On a BareMetalHost: JSON, the last reboot that was proven off. */
export const LAST_REBOOT = "ironfence.io/last-reboot";
/**
 * On a BareMetalHost: JSON with the remediation that asked Metal3's operator to keep the host off, and the status at
 * that time.
 */
export const POWER_OFF_REQUEST = "ironfence.io/power-off-request";
/**
 * On a BareMetalHost: JSON with the image that a remediation has removed from it and the name of that remediation,
 * until the image is back.
 */
export const REMOVED_IMAGE = "ironfence.io/removed-image";
/**
 * On a BareMetalHost without a consumer: with `true`, the agent may find this host by the `spec.providerID` of a Node.
 * The kubelet of that Node can choose the value.
 */
export const ALLOW_PROVIDER_ID = "ironfence.io/allow-provider-id";
/**
 * On a BareMetalHost: with `true`, the power state in its status counts as proof, if only its operator can reach the
 * BMC.
 */
export const TRUST_POWER_STATUS = "ironfence.io/trust-power-status";

/**
 * On a health check: with `5/24h`, no further remediation starts for a node that had 5 within 24 hours. The default is
 * 10/24h.
 */
export const ATTEMPT_BUDGET = "ironfence.io/attempt-budget";
/**
 * On OKD's MachineHealthCheck: with `true`, no Machine is deleted while another one that the health check covers is
 * being deleted. The default is `false`.
 */
export const ONE_MACHINE_AT_A_TIME = "ironfence.io/one-machine-at-a-time";
/** On a health check: with `false`, no new round of steps starts for a node that no step brought back. */
export const START_ANEW = "ironfence.io/start-anew";
/**
 * On a health check: with `true`, the rest of a duration is skipped if the node is not Ready and its host is proven
 * off. With `false`, there is no early release either: a node that is still Ready is never remediated because its host
 * is proven off.
 */
export const SKIP_DURATION_IF_OFF = "ironfence.io/skip-duration-if-off";
/**
 * On a health check: JSON, each node's remediations that count against its budget, `<uid>@<time>` separated by commas.
 */
export const REMEDIATION_ATTEMPTS = "ironfence.io/remediation-attempts";

/**
 * On a BareMetalRemediation that waits with the reason StaleRequest: the operator sets it to the UID of the object to
 * confirm that the node is to be fenced. A copy that a restore creates has another UID.
 */
export const CONFIRM = "ironfence.io/confirm";
/**
 * On a BareMetalRemediation or a Metal3Remediation that was created by a health check of ironfence, and on a
 * BareMetalRemediation that serves such a Metal3Remediation or a Machine of OKD: the ID of the boot in which its node
 * was Ready at the creation, or nothing if the node was not Ready. If the node is Ready in another boot before the
 * remediation begins, its host is not powered off, also if another agent than the one that created the remediation
 * begins it.
 */
export const NODE_READY_IN_BOOT = "ironfence.io/node-ready-in-boot";
/**
 * Next to `node-ready-in-boot`: JSON with the UID, the boot and the failure zone of the Node at the creation. If the
 * Node is deleted before the remediation has stored a status, they are all that is known of it. They never replace what
 * a Node or a status says.
 */
export const NODE_AT_CREATION = "ironfence.io/node-at-creation";

/**
 * On the agent's Lease, for `ironfence status`: the version of the leader, what it serves, and why it is not ready
 * (empty if it is ready).
 */
export const AGENT_VERSION = "ironfence.io/version";
export const AGENT_COMPONENTS = "ironfence.io/components";
export const AGENT_FAMILIES = "ironfence.io/families";
export const AGENT_NOT_READY = "ironfence.io/not-ready";
/**
 * On the agent's Lease: why the agent does not act although it holds the Lease, for example because another
 * installation works. Empty if it acts.
 */
export const AGENT_STANDS_BY = "ironfence.io/stands-by";

/** On the Lease of an agent that only observes: JSON with the last remediations that it would have started. */
export const WOULD_HAVE_REMEDIATED = "ironfence.io/would-have-remediated";

/**
 * On the agent's Lease: how many hosts it may remediate at the same time, in all and in one failure zone; 0 for any
 * number.
 */
export const AGENT_MAX_HOSTS = "ironfence.io/max-hosts";
export const AGENT_MAX_HOSTS_PER_ZONE = "ironfence.io/max-hosts-per-zone";

/** On a request of another project that ironfence has begun to serve: the name of its BareMetalRemediation. */
export const SERVED_BY = "ironfence.io/served-by";
/**
 * On a request of another project: why ironfence does not serve it (`<reason>: <message>`). The operator removes the
 * annotation to try again.
 */
export const REFUSED = "ironfence.io/refused";
