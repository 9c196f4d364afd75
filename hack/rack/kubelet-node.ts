import type { Lease, Node, NodeCondition, VolumeAttachment } from "../../src/api/kubernetes/core.ts";
import { LEASES, NODES, VOLUME_ATTACHMENTS } from "../../src/api/kubernetes/core-types.ts";
import { isKubeError } from "../../src/kube/errors.ts";
import type { KubeObject } from "../../src/kube/resource.ts";
import { sleep } from "../../src/runtime/clock.ts";
import type { Clock } from "../../src/runtime/clock.ts";
import { parseTimeMs, toMicroTime, toTime } from "../../src/runtime/time.ts";
import type { Host } from "./host.ts";
import type { KubeletClient } from "./kubelet.ts";

// What a kubelet does for its Node: registration, status, Lease.

const LEASE_NAMESPACE = "kube-node-lease";
/** Attempts of one renewal, one immediately after the other. */
const RENEW_TRIES_MAX = 5;
/** Pauses between reads of a lease that could not be renewed. They double from the minimum to the maximum. */
const ENSURE_PAUSE_MIN_MS = 200;
const ENSURE_PAUSE_MAX_MS = 7_000;
const CAPACITY = { cpu: "8", memory: "32Gi", pods: "110", "ephemeral-storage": "200Gi" };

/**
 * Creates the Node if it does not exist. An existing Node keeps its labels, taints and `unschedulable`, as with a real
 * kubelet.
 */
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
        // Without this annotation, the attach-detach controller expects the kubelet to attach volumes.
        annotations: { "volumes.kubernetes.io/controller-managed-attach-detach": "true" },
      },
      spec: { ...(taints.length > 0 && { taints: [...taints] }), ...(providerID !== "" && { providerID }) },
      status: {},
    },
    {},
    signal,
  );
}

/** Posts the status of the Node if it is wrong, or if the last post was at least `reportMs` ago. */
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

/** A Node as it may be stored before the first post of its kubelet. */
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

/** Volumes of running pods, by their names in the attach-detach controller. */
async function listVolumesInUse(client: KubeletClient, host: Host, signal: AbortSignal): Promise<string[]> {
  if (![...host.workloads.values()].some(({ claims }) => claims.length > 0)) return [];
  const { items } = await client.list<VolumeAttachment>(VOLUME_ATTACHMENTS, {}, signal);
  return items
    .filter(({ spec, status }) => spec.nodeName === host.name && status?.attached === true)
    .map(({ spec }) => `kubernetes.io/csi/${spec.attacher}^${spec.source.persistentVolumeName ?? ""}`)
    .sort();
}

/**
 * Renews the Lease of the node, which is its heartbeat. Retries like a real kubelet (component-helpers,
 * lease/controller.go).
 */
export class LeaseRenewer {
  readonly #client: KubeletClient;
  readonly #clock: Clock;
  readonly #host: Host;
  readonly #durationSeconds: number;
  readonly #aheadMs: number;
  #lease: Lease | undefined;

  /** @param options `aheadMs`: how far the host's clock is ahead. */
  constructor(client: KubeletClient, clock: Clock, host: Host, options: { durationSeconds: number; aheadMs?: number }) {
    this.#client = client;
    this.#clock = clock;
    this.#host = host;
    this.#durationSeconds = options.durationSeconds;
    this.#aheadMs = options.aheadMs ?? 0;
  }

  /**
   * Renews or creates the Lease, and retries until the API server answers. @throws KubeError if the Lease can be read
   * but not renewed.
   */
  async renew(signal: AbortSignal): Promise<void> {
    if (this.#lease !== undefined && (await this.#tryOften(this.#lease, signal)) === undefined) return;
    const lease = await this.#ensure(signal);
    const failure = lease === undefined ? undefined : await this.#tryOften(lease, signal);
    if (failure !== undefined) throw failure;
  }

  /** @returns the error of the last attempt; undefined after a success. */
  async #tryOften(lease: Lease, signal: AbortSignal): Promise<unknown> {
    let base: Lease | undefined = lease;
    let failure: unknown;
    for (let tries = 1; tries <= RENEW_TRIES_MAX && base !== undefined; tries += 1) {
      try {
        this.#lease = await this.#write(base, signal);
        return undefined;
      } catch (error) {
        if (signal.aborted) throw error;
        failure = error;
        // Another client has changed or replaced the Lease, so it must be read again.
        if (isKubeError(error, "Conflict", "NotFound", "Invalid")) base = await this.#ensure(signal);
      }
    }
    return base === undefined ? undefined : failure;
  }

  /** Reads the Lease, and retries until that works; undefined if it had to create the Lease, which also renews it. */
  async #ensure(signal: AbortSignal): Promise<Lease | undefined> {
    for (let pauseMs = ENSURE_PAUSE_MIN_MS; ; pauseMs = Math.min(2 * pauseMs, ENSURE_PAUSE_MAX_MS)) {
      try {
        const known = await this.#read(signal);
        this.#lease = known ?? (await this.#create(signal));
        return known;
      } catch (error) {
        if (signal.aborted) throw error;
        await sleep(this.#clock, pauseMs, signal);
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
      leaseDurationSeconds: this.#durationSeconds,
      renewTime: toMicroTime(this.#clock.nowMs() + this.#aheadMs),
    };
  }
}
