import { NAMESPACES } from "../../hack/kube-mock/controllers/cluster-types.ts";
import type { BareMetalRemediation } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { EXTERNAL_REMEDIATION_ANNOTATION as REQUEST } from "../../src/api/okd/okd-machine.ts";
import { NODES } from "../../src/api/kubernetes/core-types.ts";
import type { KubeObject, ResourceType } from "../../src/kube/resource.ts";
import { apiVersionOf } from "../../src/kube/resource.ts";
import type { Cluster } from "./cluster.ts";

export { REQUEST };

export const MACHINES: ResourceType = {
  group: "machine.openshift.io",
  version: "v1beta1",
  kind: "Machine",
  plural: "machines",
  namespaced: true,
};
export const HEALTH_CHECKS: ResourceType = { ...MACHINES, kind: "MachineHealthCheck", plural: "machinehealthchecks" };
const MACHINE_SETS: ResourceType = { ...MACHINES, kind: "MachineSet", plural: "machinesets" };
export const OKD_NAMESPACE = "openshift-machine-api";

/** Time until a Machine and its new Node name each other, and from the deletion of a Machine until it is gone. */
const LINK_MS = 300;
const DEPROVISION_MS = 2_000;

/** How long the health check waits for nodes to start. */
export const STARTUP_MS = 180_000;

/** Machines m1, m2 and so on for a cluster's nodes n1, n2 and so on, all of one MachineSet. */
export class OkdMachines {
  readonly #cluster: Cluster;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
    cluster.serve("machine.openshift.io");
    cluster.create(NAMESPACES, { name: OKD_NAMESPACE }, {});
    const hosts = cluster.rack.hosts.map(({ name }) => name);
    cluster.create(MACHINE_SETS, { namespace: OKD_NAMESPACE, name: "workers" }, { spec: { replicas: hosts.length } });
    for (const host of hosts) this.createMachine(machineOf(host), host);
  }

  createMachine(name: string, nodeName: string | undefined, metadata: Record<string, unknown> = {}): void {
    const { server } = this.#cluster;
    const apiVersion = apiVersionOf(MACHINE_SETS);
    const { kind } = MACHINE_SETS;
    const uid = server.collection(MACHINE_SETS).get({ namespace: OKD_NAMESPACE, name: "workers" })?.metadata.uid;
    const ownerReferences = [{ apiVersion, kind, name: "workers", uid, controller: true }];
    this.#cluster.create(MACHINES, { namespace: OKD_NAMESPACE, name, ownerReferences, ...metadata }, { spec: {} });
    const status = { phase: "Running", ...(nodeName !== undefined && { nodeRef: { kind: "Node", name: nodeName } }) };
    this.setStatus(name, status);
  }

  machine(name: string): KubeObject | undefined {
    return this.#machines.get({ namespace: OKD_NAMESPACE, name });
  }

  annotation(name: string, key: string): string | undefined {
    return this.machine(name)?.metadata.annotations?.[key];
  }

  /** Requests a remediation, as a health check of OKD or ours does. */
  ask(name: string): void {
    this.annotate(name, { [REQUEST]: "" });
  }

  withdraw(name: string): void {
    this.annotate(name, { [REQUEST]: null });
  }

  /** Sets annotations; `null` removes one. */
  annotate(name: string, annotations: Record<string, string | null>): void {
    this.patch(name, { metadata: { annotations } });
  }

  patch(name: string, patch: Record<string, unknown>): void {
    this.#machines.mergePatch({ namespace: OKD_NAMESPACE, name }, patch);
  }

  setStatus(name: string, status: Record<string, unknown>): void {
    this.#machines.mergePatch({ namespace: OKD_NAMESPACE, name }, { status }, "status");
  }

  delete(name: string): void {
    this.#machines.delete({ namespace: OKD_NAMESPACE, name });
  }

  child(name: string): BareMetalRemediation | undefined {
    const prefix = `${name}-`;
    const found = this.#cluster.server.collection<BareMetalRemediation>(BARE_METAL_REMEDIATIONS).values();
    return [...found].find(({ metadata }) => metadata.name.startsWith(prefix));
  }

  /** Creates a health check over all Machines that finds a node unhealthy after a minute. */
  createHealthCheck(spec: Record<string, unknown> = {}, annotations: Record<string, string> = {}): void {
    const unhealthyConditions = ["False", "Unknown"].map((status) => ({ type: "Ready", status, timeout: "60s" }));
    this.#cluster.create(
      HEALTH_CHECKS,
      { namespace: OKD_NAMESPACE, name: "check", annotations },
      { spec: { selector: {}, unhealthyConditions, nodeStartupTimeout: `${STARTUP_MS}ms`, ...spec } },
    );
  }

  /**
   * Simulates the controllers of Machines: a deleted Machine and its Node are removed after a while, and a replacement
   * is created, whose node is on the host `spare`, which was off before.
   */
  replaceDeleted(spare: string): void {
    const { server, clock, rack } = this.#cluster;
    const nodes = server.collection(NODES);
    server.onChange(({ type, object }) => {
      const { name, deletionTimestamp, finalizers = [] } = object.metadata;
      if (object.kind === "Node" && type === "ADDED") clock.schedule(LINK_MS, () => this.#link(name));
      if (object.kind !== "Machine" || deletionTimestamp === undefined || finalizers.length === 0) return;
      clock.schedule(DEPROVISION_MS, () => {
        if (this.machine(name) === undefined) return;
        const node = nodeOf(name);
        if (nodes.get({ name: node }) !== undefined) nodes.delete({ name: node });
        this.patch(name, { metadata: { finalizers: null } });
        this.createMachine(machineOf(spare), undefined);
        rack.host(spare).order("On");
      });
    });
    for (const { name } of rack.hosts) {
      if (name === spare) this.delete(machineOf(name));
      else this.patch(machineOf(name), { metadata: { finalizers: ["machine.machine.openshift.io"] } });
    }
  }

  /** Makes Node and Machine name each other. */
  #link(node: string): void {
    const { server } = this.#cluster;
    const machine = machineOf(node);
    if (this.machine(machine) === undefined || server.collection(NODES).get({ name: node }) === undefined) return;
    const annotations = { "machine.openshift.io/machine": `${OKD_NAMESPACE}/${machine}` };
    server.collection(NODES).mergePatch({ name: node }, { metadata: { annotations } });
    this.setStatus(machine, { phase: "Running", nodeRef: { kind: "Node", name: node } });
  }

  /** What has not settled yet: a request for the Machine of a Ready node, or a remediation without its request. */
  unmet(): string[] {
    return this.#cluster.rack.hosts.flatMap(({ name: node }) => {
      const name = machineOf(node);
      const isAsked = this.annotation(name, REQUEST) !== undefined;
      const { phase, node: subject } = this.child(name)?.status ?? {};
      // If the node was Ready all the time, something else has found it unhealthy. The request then stays for a while,
      // so that the host is not cycled repeatedly.
      const stays = phase === "Failed" && subject?.wasReady === true;
      if (isAsked && !stays && this.#cluster.isReady(node))
        return [`Machine ${name} is asked to be remediated, and its node is Ready`];
      return !isAsked && this.child(name) !== undefined
        ? [`Machine ${name} has a remediation that is not requested`]
        : [];
    });
  }

  get #machines() {
    return this.#cluster.server.collection<KubeObject>(MACHINES);
  }
}

function nodeOf(machine: string): string {
  return machine.replace("m", "n");
}

export function machineOf(node: string): string {
  return node.replace("n", "m");
}
