import type { Machine } from "../../../api/cluster-api/cluster-api.ts";
import type { MachineHealthCheck } from "../../../api/cluster-api/machine-health-check.ts";
import type { KubeObject, OwnerReference } from "../../../kube/resource.ts";
import type { CountedAttempt } from "../../shared/model/attempts.ts";
import type { Remediation } from "../../shared/model/remediation.ts";
import type { MachineCheckSnapshot, MachineFacts } from "../decide/decision.ts";
import { attemptKey } from "../decide/decide-machine.ts";
import type { MachineObservations } from "../decide/observe.ts";
import type { MachinePolicy } from "../decide/policy.ts";
import { machineUidOf } from "../decide/request.ts";
import type { MachineTracker } from "./machine-tracker.ts";

/** The sources of a snapshot. */
export interface MachineSnapshotSources {
  check: MachineHealthCheck;
  policy: MachinePolicy;
  tracker: MachineTracker;
  observationsOf: (machine: Machine) => MachineObservations;
  template: MachineCheckSnapshot["template"];
  /** All remediations, with any owner. */
  remediations: readonly Remediation[];
  machineOf: (key: { namespace: string; name: string }) => Machine | undefined;
  /** The Machines whose remediation is being started at this moment. */
  starting: readonly Machine[];
  /** Returns the name of another health check that finds the Machine unhealthy. */
  isUnhealthyToOthers: (machine: Machine) => string | undefined;
  /** Since when the FencingTarget of the Machine's node has been Ready; undefined if it is not Ready. */
  fenceableSinceMs: (machine: Machine) => number | undefined;
  attemptsOf: (key: string) => readonly CountedAttempt[];
  isHistoryFull: boolean;
  blocked: string | undefined;
  unreachable: string | undefined;
}

/** Gathers everything that a decision about one health check depends on. */
export function takeMachineSnapshot(sources: MachineSnapshotSources): MachineCheckSnapshot {
  const { check, policy, tracker, template, isHistoryFull, blocked, unreachable } = sources;
  const namespace = check.metadata.namespace;
  const requests = sources.remediations.filter(({ object }) => object.metadata.namespace === namespace);
  const byMachine = Map.groupBy(requests, ({ object }) => machineUidOf(object) ?? "");
  const byName = Map.groupBy(requests, ({ object }) => object.metadata.name);
  const byOwner = Map.groupBy(requests, ({ object }) => ownerOf(object)?.uid ?? "");
  const names = new Set([...tracker.notable, ...byName.keys()]);
  const busy = busyControlPlanes(sources, requests);
  const facts = [...names].sort().flatMap((name): MachineFacts[] => {
    const tracked = tracker.get(name);
    if (tracked === undefined) return [];
    const { machine, health } = tracked;
    const own = byMachine.get(machine.metadata.uid) ?? [];
    // Another controller created this object, and it has the name of the next request or remediates the Machine.
    const peerCheck = [...(byName.get(name) ?? []), ...(byOwner.get(machine.metadata.uid) ?? [])].find(
      ({ object }) => machineUidOf(object) !== machine.metadata.uid,
    );
    const key = attemptKey(machine, policy.step === undefined ? "askOwner" : "request");
    return [
      {
        machine,
        health,
        requests: own,
        foreign:
          peerCheck &&
          `${peerCheck.object.kind} ${peerCheck.object.metadata.name} exists, and no health check created it`,
        neededBy: own.length > 0 ? sources.isUnhealthyToOthers(machine) : undefined,
        controlPlaneBusy: busy.find(
          ({ metadata, clusterName }) => clusterName === machine.clusterName && metadata.name !== name,
        )?.metadata.name,
        attempts: key === undefined ? [] : sources.attemptsOf(key),
        deferral: sources.observationsOf(machine).deferral,
        fenceableSinceMs: own.some(({ succeeded }) => succeeded === "False")
          ? sources.fenceableSinceMs(machine)
          : undefined,
      },
    ];
  });
  return {
    check,
    policy,
    machineNames: tracker.names,
    healthy: tracker.healthy,
    deleting: tracker.names.find((name) => tracker.get(name)?.machine.metadata.deletionTimestamp !== undefined),
    machines: facts,
    template,
    blocked,
    unreachable,
    isHistoryFull,
  };
}

/** The owner reference to the Machine of a remediation, whichever controller created it. */
function ownerOf({ metadata }: KubeObject): OwnerReference | undefined {
  return metadata.ownerReferences?.find(({ kind }) => kind === "Machine");
}

/** The control plane Machines that any health check is remediating. */
function busyControlPlanes(
  { machineOf, starting, check }: MachineSnapshotSources,
  requests: readonly Remediation[],
): Machine[] {
  const { namespace } = check.metadata;
  const owners = requests.flatMap(({ object }) => {
    const owner = ownerOf(object);
    return (owner && machineOf({ namespace, name: owner.name })) ?? [];
  });
  return [...owners, ...starting.filter(({ metadata }) => metadata.namespace === namespace)].filter(
    ({ isControlPlane }) => isControlPlane,
  );
}
