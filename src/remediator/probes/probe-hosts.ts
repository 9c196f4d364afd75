import { MACHINE } from "../../api/names/annotations.ts";
import type { Node } from "../../api/kubernetes/core.ts";
import type { BareMetalHost } from "../../api/metal3/metal3.ts";
import { BmcError } from "../../bmc/interface/errors.ts";
import { Controller } from "../../kube/reconcile/controller.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import type { Watched } from "../../kube/watched.ts";
import { DeadlineError, withDeadline } from "../../runtime/deadline.ts";
import type { HostProbeState, RemediatorMetrics } from "../telemetry/metrics.ts";
import type { FencedHost } from "../hosts/model/host.ts";
import { HostRefusal, TargetError } from "../hosts/model/host.ts";
import type { ProbeSchedule } from "./schedule/probe-schedule.ts";
import { DEFAULT_PROBE_INTERVALS } from "./schedule/probe-intervals.ts";
import { dueAtMs, firstHostDelayMs, nextDelayMs } from "./schedule/probe-schedule.ts";
import type { BareMetalHostDirectory } from "../hosts/bare-metal-host/directory.ts";
import { hostText, powerOffRefusal } from "../hosts/bare-metal-host/store/power-path.ts";
import type { DeviceFailure } from "./schedule/probe-result.ts";

export interface HostProbesDeps {
  runtime: KubeRuntime;
  directory: BareMetalHostDirectory;
  /** The nodes of the agent's own cluster. */
  nodes: Pick<Watched<Node>, "values">;
  metrics: Pick<RemediatorMetrics, "probedHosts">;
}

/** How many hosts are probed at the same time. */
const PROBES_AT_ONCE = 8;
/** The deadline for the probe of one host. */
const PROBE_TIMEOUT_MS = 120_000;

/**
 * Probes every BareMetalHost whose state allows a fence, so that an old password or a replaced BMC is found before a
 * fence needs it. A probe reads the identity and the power state of the host. It sends no orders, writes nothing, and
 * skips a host that a remediation owns. The results are Kubernetes Events on the host and a metric, because the status
 * of the host belongs to its operator. Resolves after `signal` aborts.
 */
export async function probeHosts(deps: HostProbesDeps, signal: AbortSignal): Promise<void> {
  const { runtime, directory, metrics } = deps;
  const prober = new BareMetalHostProber(deps);
  const controller: Controller = new Controller(runtime, {
    name: "bare-metal-hosts",
    concurrency: PROBES_AT_ONCE,
    reconcile: (uid, running) => prober.reconcile(uid, running),
    minBackoffMs: 1_000,
    maxBackoffMs: 60_000,
  });
  const unsubscribe = directory.subscribe((uid) => {
    if (uid !== undefined) controller.enqueue(uid);
  });
  for (const { metadata } of directory.index.values()) controller.enqueue(metadata.uid);
  try {
    await controller.run(signal);
  } finally {
    unsubscribe();
    // From now on, another agent probes and counts.
    metrics.probedHosts({ usable: 0, failing: 0, unprobed: 0 });
  }
}

/** Why a host could not be fenced now: the reason of its Kubernetes Event. */
interface HostProblem {
  reason: DeviceFailure | "IdentityMismatch" | "IdentityUnknown" | "PowerUnknown";
  message: string;
}

/** What this process knows of one host, by UID, until the host is deleted. */
interface HostMemory extends ProbeSchedule {
  state: HostProbeState;
  problem: HostProblem | undefined;
  failuresInARow: number;
}

class BareMetalHostProber {
  readonly #deps: HostProbesDeps;
  readonly #memories = new Map<string, HostMemory>();

  constructor(deps: HostProbesDeps) {
    this.#deps = deps;
  }

  async reconcile(uid: string, signal: AbortSignal): Promise<{ requeueAfterMs?: number }> {
    const { runtime, directory } = this.#deps;
    const host = directory.index.byUid(uid);
    const fenced = directory.byUid(uid);
    if (host === undefined || fenced === undefined) {
      this.#memories.delete(uid);
      this.#count();
      return {};
    }
    const memory = this.#memoryOf(host, fenced);
    // A change of the state or of the owner starts the next reconcile.
    if (powerOffRefusal(host) !== undefined || fenced.owner !== undefined) {
      if (fenced.owner === undefined) this.#conclude(host, memory, "unprobed", undefined);
      return {};
    }
    const trigger = { ...memory.trigger, fingerprint: fenced.version };
    memory.dueAtMs = dueAtMs(memory, trigger, DEFAULT_PROBE_INTERVALS);
    if (memory.dueAtMs <= runtime.clock.monotonicMs()) {
      const problem = await this.#probe(host, fenced, signal);
      memory.trigger = trigger;
      this.#schedule(memory, problem);
      this.#conclude(host, memory, problem === undefined ? "usable" : "failing", problem);
    }
    return { requeueAfterMs: Math.max(0, memory.dueAtMs - runtime.clock.monotonicMs()) };
  }

  /**
   * @throws KubeError if the API server cannot be reached; the reason of `signal` on abort. A failure of the host is a
   * result.
   */
  async #probe(host: BareMetalHost, fenced: FencedHost, signal: AbortSignal): Promise<HostProblem | undefined> {
    const { clock } = this.#deps.runtime;
    try {
      return await withDeadline(clock, `probe of ${hostText(host)}`, PROBE_TIMEOUT_MS, signal, (within) =>
        this.#read(host, fenced, within),
      );
    } catch (error) {
      if (signal.aborted) throw error;
      if (error instanceof TargetError) return { reason: error.reason, message: error.message };
      if (error instanceof DeadlineError) return { reason: "Timeout", message: error.message };
      // The state of the host has changed meanwhile. The watch shows it soon.
      if (error instanceof HostRefusal) return undefined;
      if (!(error instanceof BmcError) || error.code === "Aborted") throw error;
      const reason = error.code === "AuthFailed" ? "AuthenticationFailed" : error.code;
      return { reason, message: `${hostText(host)}: ${error.message}` };
    }
  }

  async #read(host: BareMetalHost, fenced: FencedHost, signal: AbortSignal): Promise<HostProblem | undefined> {
    const power = await fenced.open(undefined, signal);
    try {
      const node = this.#nodeOf(host);
      const check = await power.verifyIdentity(node, signal);
      if (!check.verified) {
        if (check.reason === "Mismatch") return { reason: "IdentityMismatch", message: check.message };
        // An unknown identity counts only if the host has a node here: a remediation knows the node, which may prove
        // the identity.
        return node === undefined ? undefined : { reason: "IdentityUnknown", message: check.message };
      }
      const { state, raw } = await power.readPower(signal);
      if (state !== "Unknown") return undefined;
      return {
        reason: "PowerUnknown",
        message: `the BMC of ${hostText(host)} does not report whether it is on or off: ${raw}`,
      };
    } finally {
      await power.close();
    }
  }

  /** The node of the host, if it is in the agent's own cluster. */
  #nodeOf(host: BareMetalHost): Node | undefined {
    const { directory, nodes } = this.#deps;
    const { name, uid } = host.metadata;
    for (const node of nodes.values()) {
      const { metadata, spec } = node;
      // Only nodes that mention this host are located.
      const hints = [metadata.name, spec.providerID, metadata.annotations?.[MACHINE]].join(" ");
      if (![name, uid, host.consumerRef?.name ?? name].some((mark) => hints.includes(mark))) continue;
      const located = directory.locate({ nodeName: metadata.name, cluster: undefined, machine: undefined });
      if (located.found && located.host.metadata.uid === uid) return node;
    }
    return undefined;
  }

  #schedule(memory: HostMemory, problem: HostProblem | undefined): void {
    const { clock, random } = this.#deps.runtime;
    memory.failuresInARow = problem === undefined ? 0 : memory.failuresInARow + 1;
    const failing = [...this.#memories.values()].filter(({ failuresInARow }) => failuresInARow > 0).length;
    const delayMs = nextDelayMs(
      {
        healthy: problem === undefined,
        loginRefused: problem?.reason === "AuthenticationFailed",
        failuresInARow: memory.failuresInARow,
        inOutage: 0,
        nodeDown: false,
      },
      { devices: this.#memories.size, failingTargets: failing, outages: 0 },
      DEFAULT_PROBE_INTERVALS,
      random,
    );
    memory.probedAtMs = clock.monotonicMs();
    memory.dueAtMs = memory.probedAtMs + delayMs;
  }

  #conclude(host: BareMetalHost, memory: HostMemory, state: HostProbeState, problem: HostProblem | undefined): void {
    const { runtime } = this.#deps;
    const before = memory.problem;
    memory.state = state;
    memory.problem = problem;
    this.#count();
    if (problem?.reason === before?.reason) return;
    const fields = { host: hostText(host), reason: problem?.reason, detail: problem?.message };
    if (problem !== undefined) {
      runtime.logger.warn(fields, "a BareMetalHost could not be fenced now");
      this.#record(host, "Warning", problem.reason, problem.message);
    } else if (state === "usable") {
      runtime.logger.info(fields, "a BareMetalHost can be fenced again");
      this.#record(host, "Normal", "Usable", `${hostText(host)} can be fenced again: its BMC answers as it should`);
    }
  }

  #record(host: BareMetalHost, type: "Normal" | "Warning", reason: string, note: string): void {
    this.#deps.runtime.events.record({ regarding: host, type, reason, action: "Probe", note });
  }

  #memoryOf({ metadata }: BareMetalHost, fenced: FencedHost): HostMemory {
    const known = this.#memories.get(metadata.uid);
    if (known !== undefined) return known;
    const { clock, random } = this.#deps.runtime;
    const hosts = [...this.#deps.directory.index.values()].length;
    const memory: HostMemory = {
      trigger: { fingerprint: fenced.version, readyUuid: "", outage: "", unreadBoot: "" },
      probedAtMs: undefined,
      dueAtMs: clock.monotonicMs() + firstHostDelayMs(hosts, DEFAULT_PROBE_INTERVALS, random),
      state: "unprobed",
      problem: undefined,
      failuresInARow: 0,
    };
    this.#memories.set(metadata.uid, memory);
    this.#count();
    return memory;
  }

  #count(): void {
    const counts: Record<HostProbeState, number> = { usable: 0, failing: 0, unprobed: 0 };
    for (const { state } of this.#memories.values()) counts[state] += 1;
    this.#deps.metrics.probedHosts(counts);
  }
}
