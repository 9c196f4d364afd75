import type { KubeApi } from "../lib/kube-api.ts";
import type { ObjectView } from "./machines.ts";

const LOOK_MS = 300;

/** The finalizer that keeps a Machine until its host was released. */
export const MACHINE_FINALIZER = "machine.example.com/provider";

/** Simulated controllers for the Machines of one namespace: those of Cluster API and its provider, or those of OKD. */
export interface MachineControllers {
  /** The cluster of the Machines. */
  api: KubeApi;
  machines: string;
  /** The cluster of their Nodes. */
  nodes: KubeApi;
  /** Whether the owner of a Machine is to delete it now. */
  isGivenUp?(machine: ObjectView): boolean;
  /** Creates another Machine for one that is being deleted, unless it exists already. */
  replace(machine: ObjectView): Promise<void>;
  /** Takes the host of a Machine that is being deleted back. @returns whether it has been taken. */
  takeHostBack(machine: ObjectView): Promise<boolean>;
}

/**
 * Runs the controllers until `signal` aborts. The owner creates another Machine for each one that is deleted. The
 * provider takes the host of the old Machine back, deletes its Node, and sets `nodeRef` of a Machine when its Node
 * exists. Every step can be repeated. If one fails, the error goes to `onError` and the step is tried again.
 */
export async function playMachineControllers(
  controllers: MachineControllers,
  onError: (error: unknown) => void,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    try {
      for (const machine of await controllers.api.list<ObjectView>(controllers.machines)) {
        await tend(controllers, machine);
      }
    } catch (error) {
      if (!signal.aborted) onError(error);
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}

async function tend(controllers: MachineControllers, machine: ObjectView): Promise<void> {
  const { api, machines, nodes } = controllers;
  const { name, deletionTimestamp, finalizers = [] } = machine.metadata;
  const path = `${machines}/${name}`;
  const nodeRef = machine.status?.nodeRef;
  if (deletionTimestamp === undefined) {
    if (controllers.isGivenUp?.(machine) === true) await api.delete(path);
    if (nodeRef !== undefined || (await nodes.find(`/api/v1/nodes/${name}`)) === undefined) return;
    await api.mergePatch(`${path}/status`, { status: { nodeRef: { apiVersion: "v1", kind: "Node", name } } });
    return;
  }
  if (!finalizers.includes(MACHINE_FINALIZER)) return;
  await controllers.replace(machine);
  if (!(await controllers.takeHostBack(machine))) return;
  if (nodeRef !== undefined) await nodes.delete(`/api/v1/nodes/${nodeRef.name}`);
  const kept = finalizers.filter((finalizer) => finalizer !== MACHINE_FINALIZER);
  await api.mergePatch(path, { metadata: { finalizers: kept } });
}
