import type { TestContext } from "node:test";
import { pino } from "pino";
import { ALLOWED_ADDRESSES } from "../../../../src/api/names/annotations.ts";
import { BARE_METAL_REMEDIATIONS } from "../../../../src/api/ironfence/bare-metal-remediation.ts";
import { LEASES, NODES, SECRETS } from "../../../../src/api/kubernetes/core-types.ts";
import type { Lease, Node } from "../../../../src/api/kubernetes/core.ts";
import type { SecretObject } from "../../../../src/kube/objects/secret-reader.ts";
import type { FencingTarget } from "../../../../src/api/ironfence/fencing-target.ts";
import { FENCING_TARGETS } from "../../../../src/api/ironfence/fencing-target.ts";
import { NODE_HEALTH_CHECKS } from "../../../../src/api/ironfence/node-health-check.ts";
import type { BootOverride, OffObstacle, PowerDriver, PowerReading } from "../../../../src/bmc/interface/driver.ts";
import type { HostIdentity } from "../../../../src/bmc/identity/host-identity.ts";
import { BmcError } from "../../../../src/bmc/interface/errors.ts";
import type { DeviceConfig, OpenDevice } from "../../../../src/bmc/interface/device-config.ts";
import type { Guard, KubeClient, ObjectKey } from "../../../../src/kube/client.ts";
import { KubeError } from "../../../../src/kube/errors.ts";
import type { EventNote } from "../../../../src/kube/events.ts";
import type { KubeObject, ResourceType } from "../../../../src/kube/resource.ts";
import { apiVersionOf } from "../../../../src/kube/resource.ts";
import type { WorkloadClusters } from "../../../../src/clusters/workload-clusters.ts";
import type { KubeRuntime, WatchOptions } from "../../../../src/kube/runtime.ts";
import type { Change, Watched } from "../../../../src/kube/watched.ts";
import { keyOf, keyText } from "../../../../src/kube/watched.ts";
import { NodeClusters } from "../../../../src/remediator/clusters/node-clusters.ts";
import { NO_WORKLOAD_CLUSTERS } from "../../../lib/workload-clusters.ts";
import { createFencingTargetDirectory } from "../../../../src/remediator/hosts/fencing-target/directory.ts";
import { ProbeRecords } from "../../../../src/remediator/probes/schedule/probe-records.ts";
import { startTargetController } from "../../../../src/remediator/probes/target-controller.ts";
import type { Random } from "../../../../src/runtime/random.ts";
import { toMicroTime } from "../../../../src/runtime/time.ts";
import { settle, VirtualClock } from "../../../lib/virtual-clock.ts";
import { IN_CONTACT } from "../../../lib/contact.ts";

// A small world for tests of targets: in-memory collections of an API server, BMCs at the PowerDriver interface, and a
// manual clock.

export const NAMESPACE = "ironfence";

const steady: Random = {
  next: () => 0.5,
  uuid: () => "00000000-0000-4000-8000-000000000000",
  bytes: (n) => new Uint8Array(n),
};

class Collection implements Watched<KubeObject> {
  readonly objects = new Map<string, KubeObject>();
  readonly #listeners = new Set<(change: Change<KubeObject>) => void>();
  synced = true;
  lastContactMs = 0;
  problem: string | undefined;
  get size(): number {
    return this.objects.size;
  }
  get(key: ObjectKey): KubeObject | undefined {
    return this.objects.get(keyText(key));
  }
  values(): IterableIterator<KubeObject> {
    return this.objects.values();
  }
  subscribe(listener: (change: Change<KubeObject>) => void): () => void {
    this.#listeners.add(listener);
    for (const object of this.objects.values()) listener({ type: "added", object });
    return () => this.#listeners.delete(listener);
  }
  get listenerCount(): number {
    return this.#listeners.size;
  }
  readonly #waiting = Promise.withResolvers<void>();
  sync(): void {
    this.synced = true;
    this.#waiting.resolve();
  }
  whenSynced(): Promise<void> {
    return this.synced ? Promise.resolve() : this.#waiting.promise;
  }
  put(object: KubeObject): void {
    const key = keyText(keyOf(object));
    const previous = this.objects.get(key);
    this.objects.set(key, object);
    const change: Change<KubeObject> =
      previous === undefined ? { type: "added", object } : { type: "updated", object, previous };
    for (const listener of this.#listeners) listener(change);
  }
  delete(key: ObjectKey): void {
    const object = this.get(key);
    this.objects.delete(keyText(key));
    if (object !== undefined) for (const listener of this.#listeners) listener({ type: "deleted", object });
  }
}

/** One simulated BMC. */
export class FakeBmc {
  power: PowerReading = { state: "On", raw: "On" };
  identity: Omit<HostIdentity, "device">;
  failure: BmcError | undefined;
  obstacle: OffObstacle | undefined;
  password = "secret-1";
  readonly orders: string[] = [];
  logins = 0;
  override: BootOverride = "None";
  /** `LastResetTime`. */
  lastReset: string | undefined;
  certificateUntilMs: number | undefined;
  /** Orders are accepted, but nothing happens. */
  deaf = false;
  /** The error of power-off orders, if any. */
  offFailure: BmcError | undefined;
  constructor(identity: Omit<HostIdentity, "device">) {
    this.identity = identity;
  }
}

export class World {
  readonly clock = new VirtualClock();
  readonly events: EventNote[] = [];
  readonly calls: string[] = [];
  readonly bmcs = new Map<string, FakeBmc>();
  openDrivers = 0;
  /** Called before each read is answered and before each write takes effect, to simulate races. */
  beforeRead: ((key: ObjectKey) => void | Promise<void>) | undefined;
  beforeWrite: ((key: ObjectKey) => void | Promise<void>) | undefined;
  /** Errors of reads, by `plural/name`. */
  readonly readFailures = new Map<string, KubeError>();
  readonly #collections = new Map<string, Collection>();
  /** Nodes whose lease is renewed right before each read. */
  readonly #renewing = new Set<string>();
  #version = 1;
  #uid = 1;

  collection(type: ResourceType): Collection {
    const known = this.#collections.get(type.plural) ?? new Collection();
    this.#collections.set(type.plural, known);
    return known;
  }

  view<T extends KubeObject>(type: ResourceType): Watched<T> {
    return this.collection(type) as unknown as Watched<T>;
  }

  put<T extends KubeObject>(type: ResourceType, name: string, content: Partial<T>, namespace?: string): T {
    const key = namespace === undefined ? { name } : { namespace, name };
    const before = this.collection(type).get(key);
    const object = {
      apiVersion: apiVersionOf(type),
      kind: type.kind,
      ...content,
      metadata: {
        ...key,
        ...(content.metadata?.annotations !== undefined && { annotations: content.metadata.annotations }),
        uid: before?.metadata.uid ?? `uid-${this.#uid++}`,
        resourceVersion: String(this.#version++),
        generation: (before?.metadata.generation ?? 0) + 1,
      },
    } as unknown as T;
    this.collection(type).put(object);
    return object;
  }

  target(name: string, spec: Partial<FencingTarget["spec"]>, status?: FencingTarget["status"]): FencingTarget {
    const key = { namespace: NAMESPACE, name };
    const before = this.view<FencingTarget>(FENCING_TARGETS).get(key);
    const kept = status ?? before?.status;
    return this.put<FencingTarget>(
      FENCING_TARGETS,
      name,
      {
        spec: {
          nodeName: name,
          maintenance: false,
          identity: { verification: "Required" },
          devices: [device(name)],
          ...spec,
        },
        ...(kept !== undefined && { status: kept }),
      },
      NAMESPACE,
    );
  }

  liveTarget(name: string): FencingTarget {
    const target = this.view<FencingTarget>(FENCING_TARGETS).get({ namespace: NAMESPACE, name });
    if (target === undefined) throw new Error(`no target ${name}`);
    return target;
  }

  /** @param allowed the addresses to which the Secret may be sent; null for no annotation. */
  secret(
    name: string,
    data: Record<string, string>,
    allowed: string | null = "redfish://*.example, https://127.0.0.1:*",
  ): void {
    const encoded = Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString("base64")] as const);
    const annotations = allowed === null ? {} : { [ALLOWED_ADDRESSES]: allowed };
    const metadata = { annotations } as unknown as SecretObject["metadata"];
    this.put<SecretObject>(SECRETS, name, { metadata, data: Object.fromEntries(encoded) }, NAMESPACE);
  }

  /** Creates a Ready node that renews its lease, with BMC, Secret and target, all with the same name. */
  host(name: string, systemUUID: string, spec: Partial<FencingTarget["spec"]> = {}): FakeBmc {
    this.node(name, systemUUID);
    const bmc = this.bmc(name, systemUUID);
    this.target(name, spec);
    return bmc;
  }

  /** Creates a BMC and its Secret. */
  bmc(name: string, systemUUID: string): FakeBmc {
    this.secret(`${name}-bmc`, { username: "admin", password: "secret-1" });
    const bmc = new FakeBmc({ systemUUID });
    this.bmcs.set(address(name), bmc);
    return bmc;
  }

  node(name: string, systemUUID: string, ready = true): void {
    const conditions = [{ type: "Ready", status: ready ? "True" : "Unknown" }];
    this.put<Node>(NODES, name, { spec: {}, status: { conditions, nodeInfo: { systemUUID } } });
    const renewTime = toMicroTime(this.clock.nowMs() - 600_000);
    this.put<Lease>(LEASES, name, { spec: { renewTime, leaseDurationSeconds: 40 } }, "kube-node-lease");
    if (ready) this.#renewing.add(name);
    else this.#renewing.delete(name);
  }

  remediation(name: string, succeeded?: "True" | "False"): KubeObject {
    const conditions = succeeded === undefined ? [] : [{ type: "Succeeded", status: succeeded }];
    return this.put(BARE_METAL_REMEDIATIONS, name, { status: { conditions } } as object, "default");
  }

  readonly openDevice: OpenDevice = (config: DeviceConfig): PowerDriver => {
    if (config.address.startsWith("bad:"))
      throw new BmcError("Unsupported", `cannot use the BMC address ${config.address}`);
    const bmc = this.bmcs.get(config.address);
    this.openDrivers++;
    const call = <T>(work: (bmc: FakeBmc) => T): Promise<T> => {
      if (bmc === undefined) return Promise.reject(new BmcError("Unreachable", `${config.address}: no route`));
      if (bmc.failure !== undefined) return Promise.reject(bmc.failure);
      if (config.password.reveal() !== bmc.password) {
        bmc.logins++;
        return Promise.reject(new BmcError("AuthFailed", `${config.address}: 401`));
      }
      return Promise.resolve(work(bmc));
    };
    const order = (name: string, state: "On" | "Off"): Promise<void> =>
      call((bmc) => {
        bmc.orders.push(name);
        if (!bmc.deaf) bmc.power = { state, raw: state };
      });
    return {
      address: config.address,
      get lastReset() {
        return bmc?.lastReset;
      },
      get certificateUntilMs() {
        return bmc?.certificateUntilMs;
      },
      identify: () => call((bmc) => ({ ...bmc.identity, device: config.address })),
      readPower: () => call((bmc) => bmc.power),
      findOffObstacle: () => call((bmc) => bmc.obstacle),
      forceOff: () => (bmc?.offFailure === undefined ? order("ForceOff", "Off") : Promise.reject(bmc.offFailure)),
      on: () => order("On", "On"),
      setBootOverride: (override) =>
        call((bmc) => {
          bmc.orders.push(`boot ${override}`);
          bmc.override = override;
        }),
      readBootOverride: () => call((bmc) => bmc.override),
      close: () => {
        this.openDrivers--;
        return Promise.resolve();
      },
    };
  };

  readonly client: KubeClient = {
    get: async <T extends KubeObject>(type: ResourceType, key: ObjectKey): Promise<T> => {
      this.calls.push(`get ${type.plural}/${key.name}`);
      await this.beforeRead?.(key);
      const failure = this.readFailures.get(`${type.plural}/${key.name}`);
      if (failure !== undefined) throw failure;
      const object = this.collection(type).get(key);
      if (object === undefined) throw new KubeError("NotFound", `${type.plural} ${key.name} not found`);
      if (type.kind !== "Lease" || !this.#renewing.has(key.name)) return object as T;
      return merge(object, { spec: { renewTime: toMicroTime(this.clock.nowMs()) } }) as T;
    },
    mergePatch: async <T extends KubeObject>(
      type: ResourceType,
      key: ObjectKey,
      guard: Required<Guard>,
      content: Record<string, unknown>,
    ): Promise<T> => {
      this.calls.push(`patch ${type.plural}/${key.name}`);
      await this.beforeWrite?.(key);
      const object = this.collection(type).get(key);
      if (object === undefined) throw new KubeError("NotFound", `${key.name} not found`);
      const { uid, resourceVersion } = object.metadata;
      if (uid !== guard.uid || resourceVersion !== guard.resourceVersion) throw new KubeError("Conflict", "modified");
      const merged = merge(object, content) as T;
      const metadata = { ...object.metadata, resourceVersion: String(this.#version++) };
      const stored = { ...merged, metadata };
      this.collection(type).put(stored);
      return stored;
    },
    list: unused,
    create: unused,
    patch: unused,
    delete: unused,
    discover: (_apiVersion, kind) => Promise.resolve(kind === NODE_HEALTH_CHECKS.kind ? NODE_HEALTH_CHECKS : undefined),
  };

  workloadClusters: WorkloadClusters = NO_WORKLOAD_CLUSTERS;

  readonly runtime: KubeRuntime = {
    client: this.client,
    clock: this.clock,
    random: steady,
    logger: pino({ level: "silent" }),
    contact: () => IN_CONTACT,
    events: { record: (note) => this.events.push(note) },
    watch: <T extends KubeObject>(options: WatchOptions<T>) => this.view<T>(options.type),
  };
}

/** Runs the controller of FencingTargets over a world until the test ends. */
export async function startController(
  t: TestContext,
  world: World,
): Promise<{ stop: () => Promise<void>; records: ProbeRecords }> {
  const stopping = new AbortController();
  const { runtime, openDevice } = world;
  const targets = world.view<FencingTarget>(FENCING_TARGETS);
  const nodes = world.view<Node>(NODES);
  const clusters = new NodeClusters({ runtime, nodes, clusters: world.workloadClusters });
  const directory = createFencingTargetDirectory(
    { runtime, targets, namespace: NAMESPACE, openDevice, clusters },
    stopping.signal,
  );
  const records = new ProbeRecords();
  const running = startTargetController(
    { runtime, records, targets, clusters, directory, namespace: NAMESPACE, openDevice },
    stopping.signal,
  );
  const stop = async (): Promise<void> => {
    stopping.abort(new Error("stop"));
    await running;
  };
  t.after(stop);
  await settle();
  return { stop, records };
}

export function address(name: string): string {
  return `redfish://${name}.example/redfish/v1/Systems/1`;
}

export function device(name: string, level = 1): FencingTarget["spec"]["devices"][number] {
  return { address: address(name), credentialsSecretRef: { name: `${name}-bmc` }, level };
}

export const uuid = (n: number): string => `4c4c4544-0042-4a10-8054-${String(n).padStart(12, "0")}`;

function unused(): Promise<never> {
  return Promise.reject(new Error("not used by targets"));
}

/** RFC 7386. */
function merge(target: unknown, patch: unknown): unknown {
  if (typeof patch !== "object" || patch === null || Array.isArray(patch)) return patch;
  const base = typeof target === "object" && target !== null && !Array.isArray(target) ? target : {};
  const result: Record<string, unknown> = { ...base };
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = merge(result[key], value);
  }
  return result;
}
