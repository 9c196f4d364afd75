import type { Machine } from "../../../api/cluster-api/cluster-api.ts";
import type { MachineHealthCheck } from "../../../api/cluster-api/machine-health-check.ts";
import type { ObjectKey } from "../../../kube/client.ts";
import { keyOf } from "../../../kube/watched.ts";
import type { RemediationStore } from "../../shared/views/remediation-store.ts";
import { pausedCondition } from "../decide/decide.ts";
import { machineUidOf } from "../decide/request.ts";
import { judgeUnhealthyLimit } from "../decide/threshold.ts";
import type { MachineCheckState } from "../snapshot/check-state.ts";
import { judgeNow, machineCheckKey } from "../snapshot/check-state.ts";
import type { MachineChecks } from "../snapshot/machine-checks.ts";
import type { MachineActionContext } from "./actions.ts";

export interface MachineStartGuardDeps {
  store: { get: (key: ObjectKey) => MachineHealthCheck | undefined };
  states: MachineChecks;
  remediations: RemediationStore;
}

/** Checks immediately before an action starts a remediation that it may still start. */
export class MachineStartGuard {
  readonly #deps: MachineStartGuardDeps;
  /**
   * The Machines whose remediation is being started, by UID, so that two reconciles never start one for the same
   * Machine.
   */
  readonly #starting = new Map<string, Machine>();

  constructor(deps: MachineStartGuardDeps) {
    this.#deps = deps;
  }

  /** The Machines whose remediation is being started at this moment. */
  get starting(): Iterable<Machine> {
    return this.#starting.values();
  }

  /** Is called when the action on a Machine has ended. */
  ended(machine: Machine): void {
    this.#starting.delete(machine.metadata.uid);
  }

  contextOf(check: MachineHealthCheck, state: MachineCheckState): MachineActionContext {
    const { states } = this.#deps;
    const { compiled } = state;
    return {
      check,
      covers: (machine) => "policy" in compiled && compiled.policy.covers(machine),
      judge: (machine, cluster, node) => judgeNow(states.sources, check, machine, cluster, node),
      readNode: async ({ nodeName }, cluster, signal) => {
        const nodes = states.nodesOf(check);
        const isBefore = cluster !== undefined && !cluster.controlPlaneInitialized;
        if (nodeName === undefined || nodes === undefined || isBefore) return { state: "none" };
        return nodes.readNode(nodeName, signal);
      },
      findObjection: (signal) => this.#findObjection(check, state, signal),
      mayStart: (machine) => this.#mayStart(check, state, machine),
    };
  }

  /** Why the threshold allows no remediation, by a live list of the nodes. */
  async #findObjection(
    check: MachineHealthCheck,
    { compiled }: MachineCheckState,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const { states } = this.#deps;
    if ("problem" in compiled) return undefined;
    await states.nodesOf(check)?.confirm(signal);
    const { size } = compiled.tracker;
    const healthy = states.healthyByList(check, compiled) ?? compiled.tracker.healthy;
    const judgment = judgeUnhealthyLimit(compiled.policy.unhealthyLimit, size, size - healthy);
    return judgment.allowed ? undefined : judgment.message;
  }

  /**
   * Whether a remediation that was decided may still start: the spec is the same, the health check is not paused, the
   * threshold is met, and neither the Machine nor another Machine of its control plane has a remediation. If it may
   * start, the Machine is added to `starting` at once.
   */
  #mayStart(check: MachineHealthCheck, state: MachineCheckState, machine: Machine): boolean {
    const { store, states, remediations } = this.#deps;
    const { compiled } = state;
    const current = store.get(keyOf(check));
    if (current === undefined || machineCheckKey(current) !== state.key || "problem" in compiled) return false;
    if (pausedCondition(current, states.clusterOf(current)).status === "True") return false;
    const { uid, namespace, name } = machine.metadata;
    const { policy, tracker } = compiled;
    tracker.advance(states.sources.nowMs());
    const { size, healthy } = tracker;
    if (!judgeUnhealthyLimit(policy.unhealthyLimit, size, size - healthy).allowed) return false;
    if (states.blockedBy(current) !== undefined || states.nodesOf(current)?.unreachable !== undefined) return false;
    if (this.#starting.has(uid)) return false;
    // Requests are searched by the name of their Machine, because that is fast, and this runs for each of thousands of
    // Machines.
    if (remediations.named({ namespace, name }).some(({ object }) => machineUidOf(object) === uid)) return false;
    if (policy.step !== undefined && machine.isControlPlane && this.#isControlPlaneBusy(current, state, uid))
      return false;
    this.#starting.set(uid, machine);
    return true;
  }

  #isControlPlaneBusy(check: MachineHealthCheck, { compiled, observations }: MachineCheckState, uid: string): boolean {
    if ("problem" in compiled) return true;
    const { machines } = this.#deps.states.snapshot(check, compiled, observations, undefined, this.starting);
    const facts = machines.find(({ machine }) => machine.metadata.uid === uid);
    return facts === undefined || facts.controlPlaneBusy !== undefined;
  }
}
