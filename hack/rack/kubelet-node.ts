import type { Lease, Node, NodeCondition, VolumeAttachment } from "../../src/api/core.ts";
import { LEASES, NODES, VOLUME_ATTACHMENTS } from "../../src/api/core-types.ts";
import { isKubeError } from "../../src/kube/errors.ts";
import type { KubeObject } from "../../src/kube/resource.ts";
import type { Clock } from "../../src/runtime/clock.ts";
import { parseTimeMs, toMicroTime, toTime } from "../../src/runtime/time.ts";
import type { Host } from "./host.ts";
import type { KubeletClient } from "./kubelet.ts";

// What a kubelet does for its Node: registration, status, Lease.

const LEASE_NAMESPACE = "kube-node-lease";
/** Tries at one renewal: the second one after a fresh read. */
const RENEW_TRIES_MAX = 2;
const CAPACITY = { cpu: "8", memory: "32Gi", pods: "110", "ephemeral-storage": "200Gi" };

/** Makes the Node where there is none. One that exists keeps its labels, taints and `unschedulable`, as with a real kubelet. */
export async function registerNode(client: KubeletClient, host: Host, signal: AbortSignal): Promise<void> {
  try {
    await client.get<Node>(NODES, { name: host.name }, signal);
    return;
  } catch (error) {
    if (!isKubeError(error, "NotFound")) throw error;
  }
  const { taints, providerID } = host.spec;
  await client.create<Node>(
    NODES,
    {
      apiVersion: "v1",
      kind: "Node",
      metadata: {
        name: host.name,
        labels: {
          "kubernetes.io/arch": "amd64",
          "kubernetes.io/hostname": host.name,
          "kubernetes.io/os": "linux",
          ...host.spec.labels,
        },
      },
      spec: { ...(taints.length > 0 && { taints: [...taints] }), ...(providerID !== "" && { providerID }) },
      status: {},
    },
    {},
    signal,
  );
}

/** Posts the Node's status where it is not what it must be, or has not been posted for `reportMs`. */
export async function postStatus(
  client: KubeletClient,
  clock: Clock,
  host: Host,
  reportMs: number,
  signal: AbortSignal,
): Promise<void> {
  const node = await client.get<PostedNode>(NODES, { name: host.name }, signal);
  const volumesInUse = await listVolumesInUse(client, host, signal);
  const posted = node.status?.conditions ?? [];
  const conditions = ownConditions(posted, clock.nowMs());
  const ready = posted.find((condition) => condition.type === "Ready");
  const lastPostMs = parseTimeMs(ready?.lastHeartbeatTime) ?? 0;
  const upToDate =
    conditions.every((own) => posted.some(({ type, status }) => type === own.type && status === own.status)) &&
    node.status?.nodeInfo?.bootID === host.bootID &&
    node.status.nodeInfo.machineID === host.machineID &&
    (node.status.volumesInUse ?? []).join() === volumesInUse.join() &&
    clock.nowMs() - lastPostMs < reportMs;
  if (upToDate) return;

  const foreign = posted.filter((condition) => !conditions.some(({ type }) => type === condition.type));
  const { uid, resourceVersion } = node.metadata;
  const status = {
    conditions: [...foreign, ...conditions],
    nodeInfo: {
      bootID: host.bootID,
      systemUUID: host.spec.systemUUID,
      machineID: host.machineID,
      architecture: "amd64",
      operatingSystem: "linux",
      osImage: "Simulated Linux",
      kernelVersion: "6.12.0",
      containerRuntimeVersion: "simulated://1.0.0",
      kubeletVersion: "v1.36.3",
      kubeProxyVersion: "",
    },
    capacity: CAPACITY,
    allocatable: CAPACITY,
    addresses: [{ type: "Hostname", address: host.name }],
    volumesInUse,
  };
  await client.mergePatch(
    NODES,
    { name: host.name },
    { uid, resourceVersion },
    { status },
    { subresource: "status" },
    signal,
  );
}

/** A Node as the API may hold it before its kubelet's first post. */
interface PostedNode extends KubeObject {
  status?: Node["status"] & { volumesInUse?: string[] };
}

function ownConditions(posted: readonly NodeCondition[], nowMs: number): NodeCondition[] {
  const now = toTime(nowMs);
  const condition = (type: string, status: string, reason: string, message: string): NodeCondition => {
    const before = posted.find((other) => other.type === type && other.status === status);
    return {
      type,
      status,
      reason,
      message,
      lastHeartbeatTime: now,
      lastTransitionTime: before?.lastTransitionTime ?? now,
    };
  };
  return [
    condition("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    condition("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    condition("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
  ];
}

/** Volumes of running pods, by the names that the attach-detach controller knows them by. */
async function listVolumesInUse(client: KubeletClient, host: Host, signal: AbortSignal): Promise<string[]> {
  if (![...host.workloads.values()].some(({ claims }) => claims.length > 0)) return [];
  const { items } = await client.list<VolumeAttachment>(VOLUME_ATTACHMENTS, {}, signal);
  return items
    .filter(({ spec, status }) => spec.nodeName === host.name && status?.attached === true)
    .map(({ spec }) => `kubernetes.io/csi/${spec.attacher}^${spec.source.persistentVolumeName ?? ""}`)
    .sort();
}

/** Keeps the node's Lease fresh: its heartbeat. */
export class LeaseRenewer {
  readonly #client: KubeletClient;
  readonly #clock: Clock;
  readonly #host: Host;
  readonly #leaseDurationSeconds: number;
  #lease: Lease | undefined;

  constructor(client: KubeletClient, clock: Clock, host: Host, leaseDurationSeconds: number) {
    this.#client = client;
    this.#clock = clock;
    this.#host = host;
    this.#leaseDurationSeconds = leaseDurationSeconds;
  }

  /** Renews the Lease, or creates it. @throws KubeError when neither works. */
  async renew(signal: AbortSignal): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      try {
        this.#lease ??= await this.#read(signal);
        this.#lease = this.#lease === undefined ? await this.#create(signal) : await this.#write(this.#lease, signal);
        return;
      } catch (error) {
        // Somebody else has changed, deleted or made it: what we know of it is old.
        this.#lease = undefined;
        const outdated = isKubeError(error, "Conflict", "NotFound", "AlreadyExists", "Invalid");
        if (!outdated || tries >= RENEW_TRIES_MAX) throw error;
      }
    }
  }

  async #read(signal: AbortSignal): Promise<Lease | undefined> {
    try {
      return await this.#client.get<Lease>(LEASES, this.#key(), signal);
    } catch (error) {
      if (isKubeError(error, "NotFound")) return undefined;
      throw error;
    }
  }

  async #create(signal: AbortSignal): Promise<Lease> {
    const { name } = this.#host;
    const node = await this.#client.get<Node>(NODES, { name }, signal);
    return await this.#client.create<Lease>(
      LEASES,
      {
        apiVersion: "coordination.k8s.io/v1",
        kind: "Lease",
        metadata: {
          ...this.#key(),
          ownerReferences: [{ apiVersion: "v1", kind: "Node", name, uid: node.metadata.uid }],
        },
        spec: this.#spec(),
      },
      {},
      signal,
    );
  }

  async #write(lease: Lease, signal: AbortSignal): Promise<Lease> {
    const { uid, resourceVersion } = lease.metadata;
    const guard = { uid, resourceVersion };
    return await this.#client.mergePatch<Lease>(LEASES, this.#key(), guard, { spec: this.#spec() }, {}, signal);
  }

  #key(): { namespace: string; name: string } {
    return { namespace: LEASE_NAMESPACE, name: this.#host.name };
  }

  #spec(): Lease["spec"] {
    return {
      holderIdentity: this.#host.name,
      leaseDurationSeconds: this.#leaseDurationSeconds,
      renewTime: toMicroTime(this.#clock.nowMs()),
    };
  }
}
