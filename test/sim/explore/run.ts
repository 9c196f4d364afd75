import type { FaultAction, Verb } from "../../../hack/kube-mock/faults.ts";
import type { PowerOrderType } from "../../../hack/rack/events.ts";
import type { ClockFault } from "../agent-clock.ts";
import type { EffectFault, EventFault } from "../agent-process.ts";
import type { OutletState } from "../pdus.ts";
import type { CallFault } from "../rack-driver.ts";

// A run as data. It contains everything that is needed to replay it on any machine with the same outcome.

/** The clock of an agent, and its installation: the first one by default. */
export interface AgentShape extends ClockFault {
  installation?: string;
  /** It only observes, under a separate lease. */
  observes?: boolean;
}

/** The options of the world of a run. */
export interface Shape {
  /** Three hosts by default. */
  hosts?: number;
  /** Agents that compete for leases. By default there is one agent without a lease. */
  agents?: readonly AgentShape[];
  /** The maximum round-trip time of a request to the API, which is drawn for each request. None by default. */
  latencyMs?: number;
  /** Whether the detector runs as well, with a health check whose minHealthy is two. */
  detector?: boolean;
  /** With `detector`: whether the health check skips durations of hosts that are proven off. */
  skips?: boolean;
  /** Labels of the nodes n1 and n2. */
  labels?: Record<string, string>;
  /** Whether all nodes belong to the control plane, each with an etcd member. */
  controlPlane?: boolean;
  /**
   * The number of failure zones. Hosts are distributed over them: n1 is in the first, n2 in the second. None by
   * default.
   */
  zones?: number;
  /** How many hosts agents may remediate at once, and how many of one zone; any number by default. */
  maxHosts?: number;
  maxHostsPerZone?: number;
  /** BareMetalHosts and their operator instead of FencingTargets. A Metal3Machine uses each of them, or none. */
  bareMetalHosts?: "used" | "free";
  /**
   * OKD Machines for all nodes. asked: the script requests their remediation. checked: one of our health checks does it
   * as well. replaced: the last host, which is off, gets the replacement of a deleted Machine.
   */
  okd?: "asked" | "checked" | "replaced";
  /**
   * Cluster API Machines for all nodes, which use BareMetalHosts. The script creates Metal3Remediations, or one of our
   * health checks does.
   */
  metal3?: "asked" | "checked";
  /**
   * Hosts that a driver server powers instead of a BMC: all, or every second one (n1, n3 and so on). None by default.
   */
  driven?: "all" | "half";
  /** Two enrolled outlets feed each host and its BMC. */
  outlets?: boolean;
  /** The number of pods, each with its own volume; one by default. */
  pods?: number;
}

/** When a deed happens: a time after the beginning, or after a remediation has first entered a state. */
export type When = { atMs: number } | { on: string; name?: string; afterMs?: number };

/** Something that happens in the world independently of the agents. */
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
   * The finalizer of the agent is removed or replaced by another one, or another one is added, which is removed after
   * the verdict.
   */
  | { do: "finalizers"; name: string; how: "strip" | "replace" | "add" }
  /** An agent of another version stores a state that this version does not know, for a time or until all faults end. */
  | { do: "otherVersion"; name: string; forMs: number }
  | { do: "knownAgain" }
  | { do: "holdUnseen"; host: string; what: "pause" | "maintenance"; forMs: number }
  | { do: "operator"; is: "away" | "back" | "restarted" }
  | { do: "pause"; on: boolean }
  | { do: "maintain"; host: string; on: boolean }
  | { do: "dropTarget" | "remakeTarget"; host: string }
  | { do: "label" | "annotate" | "taint" | "cordon" | "outOfService"; node: string }
  /** The Node object is deleted. Its host and its etcd member do not change. */
  | { do: "deleteNode"; node: string }
  | { do: "crash"; agent: number }
  /** The process is stopped, or its machine suspended. */
  | { do: "suspend"; agent: number; forMs: number; machine?: boolean }
  | { do: "jumpClock"; agent: number; byMs: number }
  | { do: "cutWatches" | "compact" }
  | { do: "lagWatches"; forMs: number; plural?: string }
  | { do: "deleteLease" }
  /** The watches of agents stay open and send nothing until all faults end. */
  | { do: "silenceWatches"; plural: string }
  /** Every call of agents is answered after a delay. */
  | { do: "brownout"; delayMs: number; forMs: number }
  /** The clock of the API server is moved. */
  | { do: "jumpServerClock"; byMs: number }
  /** The stop switch is turned on, with an end by the clock of the API server. */
  | { do: "pauseFor"; forMs: number }
  /** Calls of one or all agents for one kind fail, while others work: for a time, or until all faults end. */
  | { do: "hamper"; agent?: number; resource: string; verbs: readonly Verb[]; action: FaultAction; forMs?: number };

export type Act = { when: When } & Deed;

/** A fault at one counted point of the run: an effect of the agents, a call to a BMC, or a watch event. */
export type Fault =
  | ({ at: "effect"; index: number } & EffectFault)
  /** After the effect, the agent's calls on its lease hang for `forMs`, and the Lease is deleted. */
  | { at: "effect"; index: number; how: "deleteLease"; forMs: number }
  /**
   * The agent crashes between the effect and its answer, and starts again after `forMs`. Meanwhile a host comes back
   * by itself: it resumes, or is restarted or switched on.
   */
  | { at: "effect"; index: number; how: "downtime"; forMs: number; host: string; by: "resume" | PowerOrderType }
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
  /** The effects of the agents in order. Faults can be set at each of them. */
  effects: readonly string[];
  calls: readonly string[];
  events: readonly string[];
  /** Transitions of remediations, as `Verifying→PoweringOff`. */
  transitions: ReadonlySet<string>;
  /** Attempts (power cycles of a remediation) whose power-off order reached the host. */
  fences: number;
  /** Verdicts, as `Succeeded` or `Failed Reason`. */
  verdicts: readonly string[];
  /** Virtual time at the end. */
  endMs: number;
  /** The story, one event per line; empty unless requested. */
  story: readonly string[];
}
