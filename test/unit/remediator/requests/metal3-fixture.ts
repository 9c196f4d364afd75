import { createApiServer } from "../../../../hack/kube-mock/api-server.ts";
import type { ApiServer } from "../../../../hack/kube-mock/api-server.ts";
import { NAMESPACES } from "../../../../hack/kube-mock/controllers/cluster-types.ts";
import { readCrds, readForeignCrds } from "../../../../hack/lib/crds.ts";
import type {
  BareMetalRemediation,
  BareMetalRemediationStatus,
} from "../../../../src/api/ironfence/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../../../../src/api/ironfence/bare-metal-remediation.ts";
import { createKubeRuntime } from "../../../../src/kube/connection/create-runtime.ts";
import type { EventNote } from "../../../../src/kube/events.ts";
import type { KubeObject, ResourceType } from "../../../../src/kube/resource.ts";
import { serveMetal3Remediations } from "../../../../src/remediator/requests/metal3-remediation.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { seededRandom } from "../../../lib/seeded-random.ts";
import { VirtualClock } from "../../../lib/virtual-clock.ts";

// Metal3Remediations on an in-memory API server with the CRDs of Cluster API and Metal3, in virtual time. The test
// writes the status of the child remediation and checks how the request reacts.

export const NAMESPACE = "metal3";
const INFRASTRUCTURE = "infrastructure.cluster.x-k8s.io";

function namespaced(group: string, version: string, kind: string): ResourceType {
  return { group, version, kind, plural: `${kind.toLowerCase()}s`, namespaced: true };
}

export const MACHINES = namespaced("cluster.x-k8s.io", "v1beta2", "Machine");
export const HOSTS = namespaced("metal3.io", "v1alpha1", "BareMetalHost");

interface Request extends KubeObject {
  spec: unknown;
  status?: Record<string, unknown>;
}

export class Metal3World {
  readonly clock = new VirtualClock(Date.UTC(2026, 0, 1));
  readonly server: ApiServer = createApiServer({ clock: this.clock, random: seededRandom(1) });
  readonly notes: EventNote[] = [];
  readonly requests: ResourceType;
  #version: string;
  #stop = new AbortController();
  #running: Promise<unknown> = Promise.resolve();

  private constructor(version: string) {
    this.#version = version;
    this.requests = namespaced(INFRASTRUCTURE, version, "Metal3Remediation");
  }

  /** Starts ironfence with a Machine on a BareMetalHost. Metal3's kinds are served in `version`. */
  static async create(version: "v1beta1" | "v1beta2" = "v1beta2"): Promise<Metal3World> {
    const world = new Metal3World(version);
    const ours = (await readCrds()).filter((text) => text.includes("kind: BareMetalRemediation\n"));
    const theirs = (await readForeignCrds([version, "v1alpha1"])).filter((text) => !text.includes("openshift.io"));
    for (const text of [...ours, ...theirs]) world.server.load(text);
    world.server.collection(NAMESPACES).create({ metadata: { name: NAMESPACE } });
    const machines = { ...MACHINES, version };
    const bound = { [`metal3.io/BareMetalHost`]: `${NAMESPACE}/host-0` };
    world.server
      .collection(namespaced(INFRASTRUCTURE, version, "Metal3Machine"))
      .create({ metadata: { namespace: NAMESPACE, name: "infra-0", annotations: bound }, spec: {} });
    world.server.collection(machines).create({
      metadata: { namespace: NAMESPACE, name: "machine-0" },
      spec: {
        clusterName: "c",
        bootstrap: { dataSecretName: "bootstrap" },
        infrastructureRef: {
          ...(version === "v1beta2" ? { apiGroup: INFRASTRUCTURE } : { apiVersion: `${INFRASTRUCTURE}/${version}` }),
          kind: "Metal3Machine",
          name: "infra-0",
        },
      },
    });
    world.server
      .collection(HOSTS)
      .create({ metadata: { namespace: NAMESPACE, name: "host-0" }, spec: { online: true } });
    world.start();
    return world;
  }

  /** Starts ironfence, also after `stop`. */
  start(): void {
    this.#stop = new AbortController();
    const runtime = createKubeRuntime({
      transport: this.server.transport({ client: "agent" }),
      clock: this.clock,
      random: seededRandom(2),
      logger: createLogger("silent"),
      controllerName: "ironfence.io/agent",
      instance: "test",
    });
    const events = { record: (note: EventNote) => void this.notes.push(note) };
    this.#running = serveMetal3Remediations({ ...runtime, events }, this.#stop.signal).catch((error: unknown) => {
      if (!this.#stop.signal.aborted) throw error;
    });
  }

  async stop(): Promise<void> {
    this.#stop.abort(new Error("the test has ended"));
    await this.clock.advance(1_000);
    await this.#running;
  }

  machine(): KubeObject & { status?: Record<string, unknown> } {
    const found = this.server
      .collection({ ...MACHINES, version: this.#version })
      .get({ namespace: NAMESPACE, name: "machine-0" });
    if (found === undefined) throw new Error("there is no Machine");
    return found;
  }

  /** Creates a request, as a health check of Cluster API does. */
  ask(spec: unknown = { strategy: { type: "Reboot" } }, options: { owned?: boolean; name?: string } = {}): Request {
    const { uid, name } = this.machine().metadata;
    const owner = { apiVersion: `cluster.x-k8s.io/${this.#version}`, kind: "Machine", name, uid };
    const ownerReferences = options.owned === false ? [] : [owner];
    return this.server.collection<Request>(this.requests).create({
      metadata: { namespace: NAMESPACE, name: options.name ?? "machine-0", ownerReferences },
      spec: spec ?? {},
    });
  }

  request(): Request | undefined {
    return this.server.collection<Request>(this.requests).get({ namespace: NAMESPACE, name: "machine-0" });
  }

  phase(): unknown {
    return this.request()?.status?.["phase"];
  }

  change(patch: Record<string, unknown>, subresource?: "status"): void {
    const key = { namespace: NAMESPACE, name: "machine-0" };
    this.server.collection(this.requests).mergePatch(key, patch, subresource);
  }

  withdraw(): void {
    this.server.collection(this.requests).delete({ namespace: NAMESPACE, name: "machine-0" });
  }

  host(): KubeObject {
    const found = this.server.collection(HOSTS).get({ namespace: NAMESPACE, name: "host-0" });
    if (found === undefined) throw new Error("there is no host");
    return found;
  }

  /** Makes the Machine name a Metal3Machine of another namespace, which uses the host. */
  nameForeignInfrastructure(namespace: string): void {
    const bound = { [`metal3.io/BareMetalHost`]: `${NAMESPACE}/host-0` };
    this.server.collection(NAMESPACES).create({ metadata: { name: namespace } });
    this.server
      .collection(namespaced(INFRASTRUCTURE, this.#version, "Metal3Machine"))
      .create({ metadata: { namespace, name: "infra-0", annotations: bound }, spec: {} });
    this.changeHost({ spec: { consumerRef: { kind: "Metal3Machine", namespace, name: "infra-0" } } });
    this.server
      .collection({ ...MACHINES, version: this.#version })
      .mergePatch({ namespace: NAMESPACE, name: "machine-0" }, { spec: { infrastructureRef: { namespace } } });
  }

  changeHost(patch: Record<string, unknown>): void {
    this.server.collection(HOSTS).mergePatch({ namespace: NAMESPACE, name: "host-0" }, patch);
  }

  children(): BareMetalRemediation[] {
    return [...this.server.collection<BareMetalRemediation>(BARE_METAL_REMEDIATIONS).values()];
  }

  /** The only child remediation. */
  child(): BareMetalRemediation {
    const [child, ...more] = this.children();
    if (child === undefined || more.length > 0) throw new Error(`${this.children().length} children, not one`);
    return child;
  }

  /** Acts as the state machine: gives the child its finalizer and a status. */
  async play(status: BareMetalRemediationStatus): Promise<void> {
    const { namespace = "", name } = this.child().metadata;
    const children = this.server.collection(BARE_METAL_REMEDIATIONS);
    children.mergePatch({ namespace, name }, { metadata: { finalizers: ["ironfence.io/remediation"] } });
    children.mergePatch({ namespace, name }, { status }, "status");
    await this.clock.advance(1_000);
  }

  /** Removes the child's finalizer, as the state machine does after an undo. */
  async letChildGo(): Promise<void> {
    const { namespace = "", name } = this.child().metadata;
    const children = this.server.collection(BARE_METAL_REMEDIATIONS);
    children.mergePatch({ namespace, name }, { metadata: { finalizers: null } });
    await this.clock.advance(1_000);
  }

  reasons(): string[] {
    return this.notes.map(({ reason }) => reason);
  }
}
