import type { KubeApi } from "../lib/kube-api.ts";
import type { ObjectView } from "./machines.ts";

const LOOK_MS = 300;

/** On a Machine: it goes only once its host was taken back. */
export const MACHINE_FINALIZER = "machine.example.com/provider";

/** The controllers behind the Machines of one namespace: of Cluster API and its provider, or of OKD. */
export interface MachineControllers {
  /** Where the Machines are. */
  api: KubeApi;
  machines: string;
  /** Of the cluster of their Nodes. */
  nodes: KubeApi;
  /** Whether the owner of a Machine deletes it. */
  isGivenUp?(machine: ObjectView): boolean;
  /** Makes another Machine instead of one that is being deleted, where there is none yet. */
  replace(machine: ObjectView): Promise<void>;
  /** Takes the host of a Machine that is being deleted back. @returns whether it has been taken. */
  takeHostBack(machine: ObjectView): Promise<boolean>;
}

/**
 * Plays them until `signal` aborts: an owner that makes another Machine for each that is deleted, and a provider that
 * takes the host of the old one back, deletes its Node, and has a Machine name its Node once there is one. Every step
 * can be repeated; one that fails is passed to `onError`, and tried again.
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
