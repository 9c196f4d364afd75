import { TRUST_POWER_STATUS } from "../../../api/names/annotations.ts";
import type { Node } from "../../../api/kubernetes/core.ts";
import type { BareMetalHost } from "../../../api/metal3/metal3.ts";
import type { OpenDevice } from "../../../bmc/interface/device-config.ts";
import { Topology } from "../../../bmc/topology/topology.ts";
import type { KubeRuntime } from "../../../kube/runtime.ts";
import type { Subject } from "../../../nodes/subject.ts";
import { clusterKey } from "../../../nodes/subject.ts";
import type { FencedHost, HostDirectory, HostPower } from "../model/host.ts";
import { HostRefusal } from "../model/host.ts";
import { meaningfulSerial, meaningfulUuid } from "../model/identity.ts";
import { openHostDevice } from "./power/host-device.ts";
import type { Located } from "./lookup/host-search.ts";
import { HostIndex } from "./lookup/host-index.ts";
import { disputeOf } from "./lookup/node-claims.ts";
import { DirectPower, judgeFirst, OperatorPower } from "./power/host-power.ts";
import { BARE_METAL_HOSTS, claimBareMetalHost, readHost, recordHostReboot, releaseHost } from "./store/host-store.ts";
import { storedOwner, storedReboot } from "./store/host-annotations.ts";
import { hostText, maintenanceOf, powerPathOf, powerOffRefusal } from "./store/power-path.ts";
import { disputeWithConsumer } from "./lookup/consumer-node.ts";
import type { Unreadable } from "./store/watch-hosts.ts";
import { watchHosts } from "./store/watch-hosts.ts";
import { BmcPowerReader, StatusPowerReader } from "./power/power-reader.ts";
import type { HostOwner } from "../../machine/model/facts/host-facts.ts";

export interface BareMetalHostDirectoryDeps {
  /** The cluster with the BareMetalHosts, their Metal3Machines and their Secrets. */
  runtime: KubeRuntime;
  /** The nodes of the same cluster. */
  nodes: { get(key: { name: string }): Node | undefined };
  openDevice: OpenDevice;
}

/** The hosts that BareMetalHosts describe. */
export interface BareMetalHostDirectory extends HostDirectory {
  /** The host of a subject, whether it may be fenced or not. */
  locate(subject: Subject): Located;
  /** Read it only. */
  readonly index: HostIndex;
  /** Why a host that is not found may exist nevertheless; undefined when all hosts have been read. */
  readonly problem: string | undefined;
  /** The same as `problem`, but undefined if there can be no hosts because their kind is not served. */
  readonly unread: string | undefined;
  /** Why it is not known yet which Machines use the hosts; undefined when it is known, or if there can be none. */
  readonly consumersUnread: string | undefined;
  /** Which of the two kinds the API server refuses or fails to list; also undefined until it has answered. */
  readonly unreadable: Unreadable | undefined;
  /** Calls `listener` with the UID of each host that has changed; undefined if the change may affect any host. */
  subscribe(listener: (uid: string | undefined) => void): () => void;
  /** Calls `listener` when the agent learns that there are hosts, or has read all of them. */
  subscribeKnown(listener: () => void): () => void;
  /** Resolves when the background tasks have ended. Abort the signal first. */
  settled(): Promise<void>;
}

/** Serves the hosts of BareMetalHosts, as they are watched until `signal` aborts. */
export function createBareMetalHostDirectory(
  deps: BareMetalHostDirectoryDeps,
  signal: AbortSignal,
): BareMetalHostDirectory {
  const index = new HostIndex();
  const listeners = new Set<(uid: string | undefined) => void>();
  const notify = (uid: string | undefined): void => {
    for (const listener of listeners) listener(uid);
  };
  const onKnown = new Set<() => void>();
  const watch = watchHosts(
    deps.runtime,
    {
      host: (change) => {
        index.applyHost(change);
        notify(change.object.metadata.uid);
      },
      machine: (change) => {
        index.applyMachine(change);
        notify(undefined);
      },
      known: () => {
        notify(undefined);
        for (const listener of onKnown) listener();
      },
    },
    signal,
  );
  const nodeOf = ({ nodeName, cluster }: Subject): Node | undefined =>
    nodeName === undefined || clusterKey(cluster) !== "" ? undefined : deps.nodes.get({ name: nodeName });
  const locate = (subject: Subject): Located => {
    const located = index.locate(subject, nodeOf(subject));
    if (located.found || watch.problem === undefined) return located;
    return { ...located, message: `${watch.problem}: ${located.message}` };
  };
  const fenced = (host: BareMetalHost): FencedHost => fencedHost(deps, index, nodeOf, host);
  return {
    index,
    locate,
    get problem() {
      return watch.problem;
    },
    get unread() {
      return watch.unread;
    },
    get consumersUnread() {
      return watch.consumersUnread;
    },
    get unreadable() {
      return watch.unreadable;
    },
    settled: () => watch.settled(),
    subscribeKnown(listener) {
      onKnown.add(listener);
      return () => onKnown.delete(listener);
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    find(subject) {
      const located = locate(subject);
      if (!located.found) return located;
      // The host may have a consumer that was not read yet.
      const unread = watch.unread ?? watch.consumersUnread;
      if (unread !== undefined) return { found: false, reason: "Ambiguous", message: unread };
      const refusal = powerOffRefusal(located.host);
      if (refusal !== undefined) return { found: false, reason: refusal.reason, message: refusal.message };
      return { found: true, host: fenced(located.host) };
    },
    byUid(uid) {
      const host = index.byUid(uid);
      return host === undefined ? undefined : fenced(host);
    },
  };
}

function fencedHost(
  deps: BareMetalHostDirectoryDeps,
  index: HostIndex,
  nodeOf: (subject: Subject) => Node | undefined,
  host: BareMetalHost,
): FencedHost {
  const { runtime } = deps;
  const { uid, namespace, name } = host.metadata;
  const ref = { kind: BARE_METAL_HOSTS.kind, namespace, name, uid };
  return {
    ref,
    version: versionOf(host),
    mismatchWith: (subject) => index.mismatchOf(host, subject, nodeOf(subject)),
    // Each order uses the way that applies at that time, so it does not matter which operator powers the host.
    takenBack: () => undefined,
    isInUse: host.consumerRef !== undefined,
    ensureOurs: () => Promise.resolve(),
    isPoweredByMark: powerPathOf(host) === "Operator",
    disputeOf: async (subject, node, nodes, signal) =>
      disputeOf(host, subject.nodeName, node, nodes) ??
      (await disputeWithConsumer(deps.runtime, host, index.consumingMachine(host), subject, signal)),
    identity: identityOf(host),
    maintenance: maintenanceOf(host),
    readMaintenance: async (signal) => maintenanceOf(await readHost(runtime, ref, signal)),
    owner: ownerOf(host),
    lastReboot: storedReboot(host),
    claim: (owner, signal) => claimBareMetalHost(runtime, ref, owner, signal),
    release: (owner, options, signal) => releaseHost(runtime, ref, owner, options, signal),
    recordReboot: (reboot, signal) => recordHostReboot(runtime, ref, reboot, signal),
    open: (owner, signal) => openHost(deps, index, host, owner, signal),
  };
}

/**
 * Everything that an order depends on, except what the operator reports and our own annotations: they change with each
 * order.
 */
function versionOf(host: BareMetalHost): string {
  const { metadata, bmc, disablePowerOff, consumerRef, serialNumber } = host;
  const consumer = [consumerRef?.kind, consumerRef?.namespace, consumerRef?.name];
  return JSON.stringify([
    metadata.uid,
    bmc,
    disablePowerOff,
    powerPathOf(host),
    trustsStatus(host),
    consumer,
    serialNumber,
  ]);
}

function trustsStatus({ metadata }: BareMetalHost): boolean {
  return metadata.annotations?.[TRUST_POWER_STATUS] === "true";
}

function identityOf(host: BareMetalHost): FencedHost["identity"] {
  const systemUUID = meaningfulUuid(storedOwner(host)?.systemUUID);
  const serialNumber = meaningfulSerial(host.serialNumber);
  if (systemUUID === undefined && serialNumber === undefined) return undefined;
  return { ...(systemUUID !== undefined && { systemUUID }), ...(serialNumber !== undefined && { serialNumber }) };
}

function ownerOf(host: BareMetalHost): HostOwner | undefined {
  const stored = storedOwner(host);
  if (stored === undefined) return undefined;
  const { uid, kind, namespace, name } = stored;
  return { uid, kind, namespace, name };
}

async function openHost(
  deps: BareMetalHostDirectoryDeps,
  index: HostIndex,
  host: BareMetalHost,
  owner: HostOwner | undefined,
  signal: AbortSignal,
): Promise<HostPower> {
  const { runtime } = deps;
  const { uid, namespace, name } = host.metadata;
  const ref = { kind: BARE_METAL_HOSTS.kind, namespace, name, uid };
  const watched = (): BareMetalHost | undefined => index.byUid(uid);
  const sameSerial = (): BareMetalHost | undefined => index.otherWithSerial(watched() ?? host);
  const powerDeps = { runtime, ref, owner, watched, sameSerial };
  const path = powerPathOf(host);
  if (path === "Changing") {
    const message = `${hostText(host)} is being detached from its operator, or attached to it: it is not known yet who powers it`;
    throw powerOffRefusal(host) ?? new HostRefusal("HostDetaching", message);
  }
  if (path === "Operator" && trustsStatus(host)) {
    const sense = new StatusPowerReader(runtime.clock, owner, (signal) => readHost(runtime, ref, signal));
    return new OperatorPower(powerDeps, sense, host);
  }
  const driver = await openHostDevice(deps, host, signal);
  if (path === "Operator")
    return new OperatorPower(powerDeps, new BmcPowerReader(driver, () => watched() ?? host, sameSerial), host);
  const judge = (answers: Parameters<typeof judgeFirst>[2]): ReturnType<typeof judgeFirst> =>
    judgeFirst(watched() ?? host, undefined, answers, sameSerial());
  return new DirectPower(powerDeps, new Topology([{ level: 1, driver }], judge), host);
}
