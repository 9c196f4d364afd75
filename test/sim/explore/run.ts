import type { FaultAction, Verb } from "../../../hack/kube-mock/faults.ts";
import type { PowerOrderType } from "../../../hack/rack/events.ts";
import type { ClockFault } from "../agent-clock.ts";
import type { EffectFault, EventFault } from "../agent-process.ts";
import type { OutletState } from "../pdus.ts";
import type { CallFault } from "../rack-driver.ts";

// A run as data: what it is made of is all that is needed to play it again, on any machine, with the same outcome.

/** The clock of an agent, and the installation that it belongs to: the first one by default. */
export interface AgentShape extends ClockFault {
  installation?: string;
  /** It only observes, under a lease of its own. */
  observes?: boolean;
}

/** How the world of a run is made. */
export interface Shape {
  /** Three hosts by default. */
  hosts?: number;
  /** Agents that lead in turn, under leases. One agent without a lease by default. */
  agents?: readonly AgentShape[];
  /** Time that a request to the API takes there and back, at most; drawn for each. None by default. */
  latencyMs?: number;
  /** Whether the detector runs, too, with a health check that keeps two nodes healthy. */
  detector?: boolean;
  /** With it: whether the health check skips durations of hosts that are proven off. */
  skips?: boolean;
  /** Labels of the nodes n1 and n2. */
  labels?: Record<string, string>;
  /** Whether all nodes are of the control plane, with a member of etcd each. */
  controlPlane?: boolean;
  /** Failure zones among which the hosts are dealt out: n1 is in the first, n2 in the second. None by default. */
  zones?: number;
  /** How many hosts agents may remediate at once, and how many of one zone; any number by default. */
  maxHosts?: number;
  maxHostsPerZone?: number;
  /** BareMetalHosts and their operator instead of FencingTargets, with a Metal3Machine that uses each, or free. */
  bareMetalHosts?: "used" | "free";
  /**
   * OKD Machines for all nodes. The script requests their remediation, or one of our health checks does as well; or a
   * Machine that is deleted is replaced by one on the last host, which is off.
   */
  okd?: "asked" | "checked" | "replaced";
  /**
   * Cluster API Machines for all nodes, on BareMetalHosts that are used. The script creates Metal3Remediations, or one
   * of our health checks does.
   */
  metal3?: "asked" | "checked";
  /** Hosts that a driver server powers instead of a BMC: all, or n1, n3 and so on. None by default. */
  driven?: "all" | "half";
  /** Each host is fed by two outlets that are enrolled for it, and its BMC with it. */
  outlets?: boolean;
  /** Pods with a volume of their own; one by default. */
  pods?: number;
}

/** When a deed is done: so long after the beginning, or after a remediation has first entered a state. */
export type When = { atMs: number } | { on: string; name?: string; afterMs?: number };

/** Something that happens in the world, whatever the agents do. */
export type Deed =
  | { do: "hang" | "resume" | "failDisk" | "replaceDisk" | "cutMains" | "restoreMains"; host: string }
  | { do: "order"; host: string; order: PowerOrderType }
  | { do: "bmc"; host: string; is: "up" | "refused" | "silent" }
  | { do: "outlets"; host: string; is: OutletState }
  | { do: "restartBmc" | "flapPower" | "freezePower" | "delayOrders"; host: string; forMs: number }
  | { do: "rewire"; host: string; to: string; lies?: boolean }
  | { do: "remediate"; node: string; name?: string; strategy?: Record<string, unknown> }
  | { do: "delete" | "timeOut"; name: string }
  | { do: "ask" | "withdraw"; node: string }
  | { do: "holdPod" | "freePod" | "tidy" | "confirm" }
  | { do: "mend" | "restore"; host: string }
  /**
   * The agent's finalizer is removed, replaced by another one, or another one is added, which goes with the verdict.
   */
  | { do: "finalizers"; name: string; how: "strip" | "replace" | "add" }
  /** An agent of another version stores what this one does not know for so long, or until all faults end. */
  | { do: "otherVersion"; name: string; forMs: number }
  | { do: "knownAgain" }
  | { do: "holdUnseen"; host: string; what: "pause" | "maintenance"; forMs: number }
  | { do: "operator"; is: "away" | "back" | "restarted" }
  | { do: "pause"; on: boolean }
  | { do: "maintain"; host: string; on: boolean }
  | { do: "dropTarget" | "remakeTarget"; host: string }
  | { do: "label" | "annotate" | "taint" | "cordon" | "outOfService"; node: string }
  /** The Node object goes; its host and its member of etcd are as they were. */
  | { do: "deleteNode"; node: string }
  | { do: "crash"; agent: number }
  /** The process is stopped, or its machine suspended. */
  | { do: "suspend"; agent: number; forMs: number; machine?: boolean }
  | { do: "jumpClock"; agent: number; byMs: number }
  | { do: "cutWatches" | "compact" }
  | { do: "lagWatches"; forMs: number; plural?: string }
  | { do: "deleteLease" }
  /** The agents' watches are open, and silent until all faults end. */
  | { do: "silenceWatches"; plural: string }
  /**
   * All that agents, or one of them, ask of one kind goes wrong, while the rest works: for so long, or until all faults
   * end.
   */
  /** Every call of agents takes so long, and is answered. */
  | { do: "brownout"; delayMs: number; forMs: number }
  /** The API server's clock is set. */
  | { do: "jumpServerClock"; byMs: number }
  /** The stop switch is turned on, with an end of its own by the API server's clock. */
  | { do: "pauseFor"; forMs: number }
  | { do: "hamper"; agent?: number; resource: string; verbs: readonly Verb[]; action: FaultAction; forMs?: number };

export type Act = { when: When } & Deed;

/**
 * What happens to the agents at one counted point of the run: their effects, their calls to BMCs, the events they are
 * shown.
 */
export type Fault =
  | ({ at: "effect"; index: number } & EffectFault)
  /** After the effect the agent's calls on its lease hang for so long, and the Lease is deleted. */
  | { at: "effect"; index: number; how: "deleteLease"; forMs: number }
  | ({ at: "call"; index: number; times: number } & CallFault)
  | ({ at: "event"; index: number } & EventFault);

export interface Run {
  /** The scenario, or `walk`, or `rack`. */
  name: string;
  seed: number;
  shape: Shape;
  script: readonly Act[];
  faults: readonly Fault[];
}

/** The result of a run. */
export interface Outcome {
  violations: readonly { invariant: string; atMs: number; what: string }[];
  /** What the agents did, in order: the points at which faults can be set. */
  effects: readonly string[];
  calls: readonly string[];
  events: readonly string[];
  /** Transitions of remediations, as `Verifying→PoweringOff`. */
  transitions: ReadonlySet<string>;
  /** Fences: attempts (power cycles of a remediation) of which a power-off order reached the host. */
  fences: number;
  /** Verdicts, as `Succeeded` or `Failed Reason`. */
  verdicts: readonly string[];
  /** Virtual time that it took. */
  endMs: number;
  /** What happened, a line each; empty unless asked for. */
  story: readonly string[];
}
