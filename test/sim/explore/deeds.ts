import { CONFIRM, FENCED_BY, NHC_TIMED_OUT, NODE_NAME, QUARANTINED_BY } from "../../../src/api/names/annotations.ts";
import { BARE_METAL_REMEDIATIONS } from "../../../src/api/ironfence/bare-metal-remediation.ts";
import { NODES, PODS } from "../../../src/api/kubernetes/core-types.ts";
import type { Taint } from "../../../src/api/kubernetes/core.ts";
import { FENCING_TARGETS } from "../../../src/api/ironfence/fencing-target.ts";
import { RESTORED_BY_VELERO } from "../../../src/api/names/labels.ts";
import { FENCED, OUT_OF_SERVICE, QUARANTINE, sameTaint } from "../../../src/api/kubernetes/taints.ts";
import { NAMESPACE } from "../cluster.ts";
import { isFinal } from "../invariants/facts.ts";
import { machineOf } from "../okd-machines.ts";
import { toTime } from "../../../src/runtime/time.ts";
import type { Arena } from "./arena.ts";
import type { Deed } from "./run.ts";

/** Short times, so that their end is part of a run. */
export const QUICK = {
  retryLimit: 0,
  powerOffTimeout: "60s",
  powerOnTimeout: "60s",
  drainTimeout: "20s",
  timeout: "60s",
};

/** The pod of the StatefulSet, which writes to its own volume. */
export const DB_POD = { namespace: "default", name: "db-0" };

/**
 * Performs a deed. A deed that is not possible now, for example because an object is missing, has no effect, because
 * scripts are random and may be shortened.
 */
export function perform(arena: Arena, deed: Deed): void {
  const { server, rack } = arena;
  const named = ["host" in deed ? deed.host : undefined, "to" in deed ? deed.to : undefined];
  if (named.some((name) => name !== undefined && !arena.observer.facts.hosts.has(name))) return undefined;
  switch (deed.do) {
    case "hang":
    case "resume":
    case "failDisk":
    case "replaceDisk":
    case "cutMains":
      return rack.host(deed.host)[deed.do]();
    case "restoreMains":
      return arena.restoreMains(deed.host);
    case "outlets":
      return arena.devices.pdus.disturb(deed.host, deed.is);
    case "order":
      return arena.otherClientOrders(deed.host, deed.order);
    case "bmc":
      return rack.bmc(deed.host).setReachability(deed.is);
    case "restartBmc":
      return rack.bmc(deed.host).restart(deed.forMs);
    case "flapPower":
      return rack.bmc(deed.host).flapPower(deed.forMs);
    case "freezePower":
      // An agent cannot detect that a reading of Off stays Off, so this is skipped.
      return rack.host(deed.host).power === "Off" ? undefined : rack.bmc(deed.host).freezePower(deed.forMs);
    case "delayOrders":
      rack.bmc(deed.host).orderDelayMs = deed.forMs;
      return undefined;
    case "rewire":
      rack.bmc(deed.host).rewire(rack.host(deed.to));
      if (deed.lies === true) rack.bmc(deed.host).pretendIdentity({ systemUUID: rack.host(deed.host).spec.systemUUID });
      return undefined;
    case "remediate": {
      const name = deed.name ?? deed.node;
      if (arena.remediation(name) === undefined) arena.remediate(deed.node, { ...QUICK, ...deed.strategy }, name);
      return undefined;
    }
    case "delete": {
      const key = { namespace: NAMESPACE, name: deed.name };
      const { metadata, status } = arena.remediation(deed.name) ?? {};
      // Without any finalizer, the remediation would be deleted before an agent has added its own again, which
      // `test/sim/orphans.test.ts` covers.
      const isBare = status?.target !== undefined && metadata?.finalizers === undefined;
      if (metadata !== undefined && !isBare) server.collection(BARE_METAL_REMEDIATIONS).delete(key);
      return undefined;
    }
    case "timeOut": {
      const key = { namespace: NAMESPACE, name: deed.name };
      const annotations = { [NHC_TIMED_OUT]: "2026-01-01T00:00:00Z" };
      if (arena.remediation(deed.name) === undefined) return undefined;
      server.collection(BARE_METAL_REMEDIATIONS).mergePatch(key, { metadata: { annotations } });
      return undefined;
    }
    case "ask":
      return arena.machines?.ask(machineOf(deed.node));
    case "withdraw":
      return arena.machines?.withdraw(machineOf(deed.node));
    case "holdPod":
    case "freePod": {
      const finalizers = deed.do === "holdPod" ? ["test/held"] : null;
      const pod = server.collection(PODS).get(DB_POD);
      const mayHold = deed.do === "freePod" || pod?.metadata.deletionTimestamp === undefined;
      if (pod !== undefined && mayHold) server.collection(PODS).mergePatch(DB_POD, { metadata: { finalizers } });
      return undefined;
    }
    case "tidy":
      for (const { metadata } of arena.remediations().filter(isFinal)) {
        const { namespace = "", name } = metadata;
        server.collection(BARE_METAL_REMEDIATIONS).delete({ namespace, name });
      }
      return undefined;
    case "operator":
      if (deed.is === "restarted") return arena.operator?.restart();
      return arena.operator?.setAway(deed.is === "away");
    case "pause":
      return arena.pause(deed.on);
    case "maintain": {
      const key = { namespace: NAMESPACE, name: deed.host };
      if (arena.target(deed.host) === undefined) return undefined;
      server.collection(FENCING_TARGETS).mergePatch(key, { spec: { maintenance: deed.on } });
      return undefined;
    }
    case "dropTarget": {
      const key = { namespace: NAMESPACE, name: deed.host };
      if (arena.target(deed.host) !== undefined) server.collection(FENCING_TARGETS).delete(key);
      return undefined;
    }
    case "remakeTarget":
      if (arena.target(deed.host) !== undefined) return undefined;
      return arena.remakeTarget(deed.host);
    case "deleteNode":
      if (arena.node(deed.node) !== undefined) server.collection(NODES).delete({ name: deed.node });
      return undefined;
    case "label":
    case "annotate":
    case "taint":
    case "cordon":
    case "outOfService":
      return editNode(arena, deed.do, deed.node);
    case "crash":
      return arena.crash(deed.agent);
    case "suspend":
      return arena.suspend(deed.agent, deed.forMs, { machine: deed.machine === true });
    case "jumpClock":
      return arena.jumpClock(deed.agent, deed.byMs);
    case "cutWatches":
      arena.observer.disturb();
      server.faults.cutWatches({ client: "agent" });
      return undefined;
    case "compact":
      arena.observer.disturb();
      server.compact();
      server.faults.cutWatches({ client: "agent" });
      return undefined;
    case "lagWatches":
      return arena.lagWatches(deed.forMs, deed.plural);
    case "hamper":
      return arena.hamper(deed, deed.action, deed.forMs);
    case "brownout":
      return arena.slowDown(deed.delayMs, deed.forMs);
    case "jumpServerClock":
      return arena.jumpServerClock(deed.byMs);
    case "pauseFor":
      return arena.pause(true, toTime(arena.server.nowMs() + deed.forMs));
    case "deleteLease":
      return arena.deleteLease();
    case "silenceWatches":
      return arena.lagWatches(Infinity, deed.plural);
    case "mend":
      return mend(arena, deed.host);
    case "restore":
      return restore(arena, deed.host);
    case "confirm":
      for (const { metadata, status } of arena.remediations()) {
        const { namespace = "", name, uid } = metadata;
        if (!status?.conditions?.some(({ reason }) => reason === "StaleRequest")) continue;
        const annotations = { [CONFIRM]: uid };
        server.collection(BARE_METAL_REMEDIATIONS).mergePatch({ namespace, name }, { metadata: { annotations } });
      }
      return undefined;
    case "finalizers":
      return setFinalizers(arena, deed.name, deed.how);
    case "otherVersion":
      arena.crashAll();
      arena.clock.schedule(DEAD_MS, () => storeUnknown(arena, deed.name, deed.forMs));
      return undefined;
    case "knownAgain":
      for (const { metadata, status } of arena.remediations()) {
        if (status?.phase?.startsWith(FOREIGN_PHASE) !== true) continue;
        storeStatus(arena, metadata.name, { phase: status.phase.slice(FOREIGN_PHASE.length) });
      }
      return undefined;
    case "holdUnseen":
      arena.lagWatches(deed.forMs, deed.what === "pause" ? "configmaps" : "ironfence");
      if (deed.what === "pause") return arena.pause(true);
      return perform(arena, { do: "maintain", host: deed.host, on: true });
  }
}

/** A finalizer of another client, which reads remediations after their end. */
export const FOREIGN_FINALIZER = "example.com/audit";
/** After this time, the last calls of a dead agent have arrived, and the next process has not started yet. */
const DEAD_MS = 900;
/** Prefix of states of another version that this version does not know. */
const FOREIGN_PHASE = "Of9.9.9-";

function storeStatus(arena: Arena, name: string, status: object): void {
  arena.server.collection(BARE_METAL_REMEDIATIONS).mergePatch({ namespace: NAMESPACE, name }, { status }, "status");
}

/**
 * Another version stores a state that this version does not know. After `forMs` the state is known again, as after a
 * rollback or an upgrade.
 */
function storeUnknown(arena: Arena, name: string, forMs: number): void {
  const remediation = arena.remediation(name);
  const { phase = "", attempt } = remediation?.status ?? {};
  const isKnown = !phase.startsWith(FOREIGN_PHASE);
  if (remediation === undefined || isFinal(remediation) || attempt === undefined || !isKnown) return;
  storeStatus(arena, name, { phase: `${FOREIGN_PHASE}${phase}` });
  if (arena.isHealed) perform(arena, { do: "knownAgain" });
  else arena.clock.schedule(forMs, () => perform(arena, { do: "knownAgain" }));
}

/** Changes finalizers of a remediation in progress. One that is being deleted would be removed at once. */
function setFinalizers(arena: Arena, name: string, how: "strip" | "replace" | "add"): void {
  const { metadata } = arena.remediation(name) ?? {};
  if (metadata === undefined || metadata.deletionTimestamp !== undefined) return;
  const ours = metadata.finalizers ?? [];
  const finalizers = { strip: null, replace: [FOREIGN_FINALIZER], add: [...ours, FOREIGN_FINALIZER] }[how];
  arena.server
    .collection(BARE_METAL_REMEDIATIONS)
    .mergePatch({ namespace: NAMESPACE, name }, { metadata: { finalizers } });
}

/** An operator repairs a node: fixes the damage, removes our marks, and powers the host on. */
function mend(arena: Arena, name: string): void {
  const host = arena.rack.host(name);
  host.replaceDisk();
  arena.devices.pdus.supply(name);
  arena.restoreMains(name);
  const node = arena.node(name);
  if (node !== undefined) {
    const ours = [OUT_OF_SERVICE, QUARANTINE, FENCED];
    const taints = (node.spec.taints ?? []).filter((taint) => !ours.some((mark) => sameTaint(taint, mark)));
    const annotations = { [FENCED_BY]: null, [QUARANTINED_BY]: null };
    arena.server.collection(NODES).mergePatch({ name }, { spec: { taints }, metadata: { annotations } });
  }
  arena.otherClientOrders(name, "On");
}

/** A restore creates a remediation again without status, with the annotations of the saved object. */
function restore(arena: Arena, host: string): void {
  const name = `${host}-restored`;
  const labels = { [RESTORED_BY_VELERO]: "a-restore" };
  const annotations = { [NODE_NAME]: host, [CONFIRM]: "00000000-0000-4000-8000-000000000000" };
  if (arena.remediation(name) !== undefined) return;
  arena.create(
    BARE_METAL_REMEDIATIONS,
    { namespace: NAMESPACE, name, labels, annotations },
    { spec: { strategy: QUICK } },
  );
}

/** Edits a node, as a user or another controller may do at any time. */
function editNode(arena: Arena, what: "label" | "annotate" | "taint" | "cordon" | "outOfService", name: string): void {
  const node = arena.node(name);
  if (node === undefined) return;
  const taints = node.spec.taints ?? [];
  const withTaint = (taint: Taint): Record<string, unknown> =>
    taints.some((present) => sameTaint(present, taint)) ? {} : { spec: { taints: [...taints, taint] } };
  const patches: Record<typeof what, Record<string, unknown>> = {
    label: { metadata: { labels: { "example.com/rack": "r7" } } },
    annotate: { metadata: { annotations: { "example.com/note": "x" } } },
    taint: withTaint({ key: "example.com/db", value: "yes", effect: "NoSchedule" }),
    cordon: { spec: { unschedulable: true } },
    outOfService: withTaint(OUT_OF_SERVICE),
  };
  arena.server.collection(NODES).mergePatch({ name }, patches[what]);
}

/** The deed as a sentence of the story. */
export function tell(deed: Deed): string {
  switch (deed.do) {
    case "hang":
      return `${deed.host} freezes`;
    case "resume":
      return `${deed.host} goes on as if nothing had been`;
    case "failDisk":
      return `the disk of ${deed.host} fails`;
    case "replaceDisk":
      return `${deed.host} gets a disk that works`;
    case "cutMains":
      return `${deed.host} loses mains power`;
    case "restoreMains":
      return `${deed.host} has mains power again`;
    case "order":
      return `a user orders ${deed.host} ${deed.order}`;
    case "bmc":
      return `the BMC of ${deed.host} is ${deed.is}`;
    case "outlets":
      return `the outlets of ${deed.host} are ${deed.is}`;
    case "restartBmc":
      return `the BMC of ${deed.host} restarts for ${deed.forMs} ms`;
    case "flapPower":
      return `every other reading of ${deed.host} is Off for ${deed.forMs} ms`;
    case "freezePower":
      return `the BMC of ${deed.host} goes on saying what it says now for ${deed.forMs} ms`;
    case "delayOrders":
      return `orders reach ${deed.host} ${deed.forMs} ms late`;
    case "rewire":
      return `the BMC of ${deed.host} is wired to ${deed.to}${deed.lies === true ? `, and says that it is ${deed.host}` : ""}`;
    case "remediate":
      return `remediation ${deed.name ?? deed.node} of ${deed.node} is ordered${deed.strategy === undefined ? "" : ` with ${JSON.stringify(deed.strategy)}`}`;
    case "delete":
      return `remediation ${deed.name} is deleted`;
    case "timeOut":
      return `the health check gives remediation ${deed.name} up`;
    case "ask":
      return `the remediation of ${deed.node}'s Machine is asked for`;
    case "withdraw":
      return `the remediation of ${deed.node}'s Machine is asked for no more`;
    case "holdPod":
      return "a finalizer holds pod db-0";
    case "freePod":
      return "nothing holds pod db-0 any more";
    case "tidy":
      return "remediations that have their verdict are deleted";
    case "operator":
      return `the operator of BareMetalHosts is ${deed.is}`;
    case "pause":
      return `the stop switch is turned ${deed.on ? "on" : "off"}`;
    case "maintain":
      return `maintenance of ${deed.host} ${deed.on ? "begins" : "ends"}`;
    case "dropTarget":
      return `the FencingTarget of ${deed.host} is deleted`;
    case "remakeTarget":
      return `the FencingTarget of ${deed.host} is created again`;
    case "label":
    case "annotate":
    case "taint":
    case "cordon":
      return `a user sets a ${deed.do === "annotate" ? "annotation" : deed.do} on node ${deed.node}`;
    case "outOfService":
      return `another client puts the out-of-service taint on ${deed.node}`;
    case "crash":
      return `agent ${deed.agent + 1} is killed`;
    case "suspend":
      return `${deed.machine === true ? "the machine of " : ""}agent ${deed.agent + 1} is stopped for ${deed.forMs} ms`;
    case "jumpClock":
      return `the clock of agent ${deed.agent + 1} jumps by ${deed.byMs} ms`;
    case "mend":
      return `a user fixes ${deed.host}, removes our marks from its node and powers it on`;
    case "restore":
      return `a restore brings remediation ${deed.host}-restored back without status`;
    case "confirm":
      return "a user confirms every remediation that waits for it";
    case "finalizers":
      return `the finalizers of remediation ${deed.name} are changed: ${deed.how}`;
    case "otherVersion":
      return `an agent of another version takes over, and stores a state of remediation ${deed.name} that this one does not know, for ${deed.forMs} ms`;
    case "knownAgain":
      return "every state is known again";
    case "holdUnseen":
      return `${deed.what} of ${deed.host} begins, and watches show it ${deed.forMs} ms late`;
    case "cutWatches":
      return "the agents' watches are cut";
    case "compact":
      return "history is compacted, and the agents' watches are cut";
    case "hamper": {
      const until = deed.forMs === undefined ? "until all faults end" : `for ${deed.forMs} ms`;
      const whose = deed.agent === undefined ? "agents" : `agent ${deed.agent + 1}`;
      return `calls of ${whose} to ${deed.verbs.join(", ")} ${deed.resource} meet ${JSON.stringify(deed.action)} ${until}`;
    }
    case "brownout":
      return `every call of agents takes ${deed.delayMs} ms, for ${deed.forMs} ms`;
    case "jumpServerClock":
      return `the clock of the API server jumps by ${deed.byMs} ms`;
    case "pauseFor":
      return `the stop switch is turned on for ${deed.forMs} ms`;
    case "silenceWatches":
      return `the agents' watches of ${deed.plural} are silent until all faults end`;
    case "deleteNode":
      return `a user deletes Node ${deed.node}`;
    case "deleteLease":
      return "a user deletes the agents' Lease";
    default:
      return `the agents' watches of ${deed.plural ?? "everything"} lag by ${deed.forMs} ms`;
  }
}
