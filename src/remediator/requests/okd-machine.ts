import type { BareMetalRemediation } from "../../api/ironfence/bare-metal-remediation.ts";
import type { Machine } from "../../api/cluster-api/cluster-api.ts";
import type { MachineHealthCheck } from "../../api/cluster-api/machine-health-check.ts";
import { OKD_MACHINE_HEALTH_CHECKS, readOkdMachineHealthCheck } from "../../api/okd/okd-machine-health-check.ts";
import { NODE_READY_IN_BOOT } from "../../api/names/annotations.ts";
import { OKD_MACHINES, readOkdMachine, readyInBootOf } from "../../api/okd/okd-machine.ts";
import { findObject } from "../../kube/objects/find-object.ts";
import type { KubeObject, ResourceType } from "../../kube/resource.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import { awaitServed, findServed } from "../../kube/objects/served-kind.ts";
import { keyOf } from "../../kube/watched.ts";
import { creationRecord } from "../../nodes/creation-record.ts";
import { isReady } from "../../nodes/ready.ts";
import { getNode } from "../clusters/node-writes.ts";
import type { OkdMachineStep } from "./decide-okd-machine.ts";
import { concerns, decideOkdMachine, isRequested, otherRemediator, remediationSpec } from "./decide-okd-machine.ts";
import { hostOfMachine } from "../hosts/bare-metal-host/lookup/machine-host.ts";
import type { RequestKind } from "./request.ts";
import { childName, createChild, removeChild, runRequests } from "./request.ts";

/** How often a Machine with a request is checked: another party may act on it or on its node. */
const RECHECK_MS = 5_000;
/** The most Machines whose last report is remembered. */
const LAST_REPORTS_MAX = 1_000;

/**
 * Serves every Machine of OKD that asks for external remediation until `signal` aborts: the remediator's half of OKD's
 * external-baremetal. Waits for the CRD, then for requests.
 */
export async function serveOkdMachines(runtime: KubeRuntime, zoneLabel: string, signal: AbortSignal): Promise<void> {
  const type = await awaitServed(runtime, OKD_MACHINES, signal);
  await runRequests(runtime, new OkdMachineRequests(runtime, type, zoneLabel), signal);
}

class OkdMachineRequests implements RequestKind<Machine> {
  readonly family = "okd-machine";
  readonly type: ResourceType;
  readonly #runtime: KubeRuntime;
  readonly #zoneLabel: string;
  /** By UID, the oldest first. */
  readonly #lastReports = new Map<string, string>();

  constructor(runtime: KubeRuntime, type: ResourceType, zoneLabel: string) {
    this.#runtime = runtime;
    this.#zoneLabel = zoneLabel;
    this.type = type;
  }

  trim(raw: KubeObject): Machine | undefined {
    return concerns(raw) ? readOkdMachine(raw) : undefined;
  }

  async reconcile(
    watched: Machine,
    child: BareMetalRemediation | undefined,
    signal: AbortSignal,
  ): Promise<{ requeueAfterMs?: number }> {
    const runtime = this.#runtime;
    // Read live, because the watch may still show a request that is done, whose node would be powered off again.
    const machine = await rereadMachine(runtime, this.type, watched, signal);
    if (machine === undefined) return {};
    const { apiVersion, kind, metadata } = machine;
    const { namespace, name, uid } = metadata;
    const host = await hostOfMachine(runtime, { apiVersion, kind, namespace, name, uid }, signal);
    const otherActor = otherRemediator(machine, host);
    const nodeReady = await isNodeReady(runtime, machine, child, signal);
    const step = decideOkdMachine({ machine, child, nodeReady, otherActor, nowMs: runtime.clock.nowMs() });
    await this.#carryOut(machine, child, step, signal);
    return isRequested(machine) ? { requeueAfterMs: RECHECK_MS } : {};
  }

  async #carryOut(
    machine: Machine,
    child: BareMetalRemediation | undefined,
    step: OkdMachineStep,
    signal: AbortSignal,
  ): Promise<void> {
    const runtime = this.#runtime;
    switch (step.do) {
      case "wait":
        return;
      case "hold":
        return this.#report(machine, "Warning", step.reason, step.message);
      case "create": {
        const spec = remediationSpec(machine, await healthChecks(runtime, machine, signal));
        // A node that has come back since the request, or comes back before the child begins, is not powered off.
        const readyInBoot = readyInBootOf(machine);
        const node = await getNode(runtime.client, machine.nodeName, signal);
        const annotations = {
          ...creationRecord(node, this.#zoneLabel),
          ...(readyInBoot !== undefined && { [NODE_READY_IN_BOOT]: readyInBoot }),
        };
        await createChild(runtime, this, machine, spec, { annotations }, signal);
        const note = `BareMetalRemediation ${childName(machine)} power-cycles the host of this Machine`;
        return this.#report(machine, "Normal", "RemediationStarted", note);
      }
      case "remove":
        if (child !== undefined) await removeChild(runtime, child, signal);
        return this.#report(machine, step.reason === "TriedAgain" ? "Normal" : "Warning", step.reason, step.message);
      case "patch": {
        const { uid, resourceVersion } = machine.metadata;
        await runtime.client.patch(this.type, keyOf(machine), { uid, resourceVersion }, step.operations, {}, signal);
        if (step.done) this.#report(machine, "Normal", "RemediationSucceeded", "the node of this Machine is back");
        return;
      }
    }
  }

  /** Reports a step, unless it is the same as the last report about the Machine. */
  #report(machine: Machine, type: "Normal" | "Warning", reason: string, note: string): void {
    const { uid, name, namespace } = machine.metadata;
    if (this.#lastReports.get(uid) === `${reason} ${note}`) return;
    this.#lastReports.delete(uid);
    this.#lastReports.set(uid, `${reason} ${note}`);
    for (const oldest of this.#lastReports.keys()) {
      if (this.#lastReports.size <= LAST_REPORTS_MAX) break;
      this.#lastReports.delete(oldest);
    }
    this.#runtime.logger.info(
      { namespace, machine: name, machineUid: uid, reason, note },
      "external remediation of a Machine",
    );
    this.#runtime.events.record({ regarding: machine, type, reason, action: "ExternalRemediation", note });
  }
}

/** The Machine as it is now; undefined if it is gone, or if another Machine has its name. */
async function rereadMachine(
  { client }: KubeRuntime,
  type: ResourceType,
  watched: Machine,
  signal: AbortSignal,
): Promise<Machine | undefined> {
  const current = await findObject(client, type, keyOf(watched), signal);
  return current?.metadata.uid === watched.metadata.uid ? readOkdMachine(current) : undefined;
}

/** The health checks of the namespace of the Machine; empty if OKD serves none. */
async function healthChecks(
  runtime: KubeRuntime,
  { metadata: { namespace } }: Machine,
  signal: AbortSignal,
): Promise<MachineHealthCheck[]> {
  const type = await findServed(runtime, OKD_MACHINE_HEALTH_CHECKS, signal);
  if (type === undefined) return [];
  const { items } = await runtime.client.list(type, { namespace }, signal);
  return items.map(readOkdMachineHealthCheck);
}

/** Reads the node only after a failure, because only then it matters. */
async function isNodeReady(
  runtime: KubeRuntime,
  { nodeName }: Machine,
  child: BareMetalRemediation | undefined,
  signal: AbortSignal,
): Promise<boolean | undefined> {
  if (child?.status?.phase !== "Failed" || nodeName === undefined) return undefined;
  const node = await getNode(runtime.client, nodeName, signal);
  return node && isReady(node);
}
