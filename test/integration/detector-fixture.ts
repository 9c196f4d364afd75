import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { Registry } from "prom-client";
import { createApiServer } from "../../hack/kube-mock/api-server.ts";
import type { ApiServer, RequestRecord } from "../../hack/kube-mock/api-server.ts";
import { NAMESPACES } from "../../hack/kube-mock/controllers/cluster-types.ts";
import { LEASES, NODES } from "../../src/api/kubernetes/core-types.ts";
import type { Lease, Node } from "../../src/api/kubernetes/core.ts";
import { NODE_HEALTH_CHECKS } from "../../src/api/ironfence/node-health-check.ts";
import type { NodeHealthCheck } from "../../src/api/ironfence/node-health-check.ts";
import { trimNode } from "../../src/api/kubernetes/trim.ts";
import { runNodeHealthChecks } from "../../src/detector/nodes/run.ts";
import { createKubeRuntime } from "../../src/kube/connection/create-runtime.ts";
import type { EventNote } from "../../src/kube/events.ts";
import type { KubeTransport, TransportRequest } from "../../src/kube/transport.ts";
import type { KubeObject, ResourceType } from "../../src/kube/resource.ts";
import { toTime } from "../../src/runtime/time.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { seededRandom } from "../lib/seeded-random.ts";
import { ReplayedLog } from "../lib/replayed-log.ts";
import { VirtualClock } from "../lib/virtual-clock.ts";

// Runs the detector on an in-memory API server in virtual time, with remediation kinds of a vendor that it does not
// know.

const CLIENT = "detector";

export interface Fence extends KubeObject {
  spec: Record<string, unknown>;
  status?: { conditions?: { type: string; status: string }[] };
}

/** A kind of the vendor. */
export function vendorType(kind: string): ResourceType {
  return { group: "fence.example", version: "v1", kind, plural: `${kind.toLowerCase()}s`, namespaced: true };
}

/** The CRD of a kind of the vendor. It keeps unknown fields. */
export function vendorCrd(kind: string): string {
  return crdOf(vendorType(kind));
}

/** A CRD that keeps unknown fields. */
export function crdOf({ group, version, kind, plural, namespaced }: ResourceType): string {
  return JSON.stringify({
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: namespaced ? "Namespaced" : "Cluster",
      names: { kind, listKind: `${kind}List`, plural, singular: kind.toLowerCase() },
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          subresources: { status: {} },
          schema: {
            openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
          },
        },
      ],
    },
  });
}

export class DetectorWorld {
  readonly clock = new VirtualClock(Date.UTC(2026, 0, 1));
  readonly server: ApiServer = createApiServer({ clock: this.clock, random: seededRandom(1) });
  readonly registry = new Registry();
  readonly notes: EventNote[] = [];
  readonly requests: RequestRecord[] = [];
  /** By how many milliseconds the agent's wall clock is ahead of all other clocks. */
  aheadMs = 0;
  /** Whether answers contain the API server's time. A proxy may remove it. */
  tellsTime = false;
  /** Called while a request of the agent is in transit. */
  beforeSend: (request: TransportRequest) => Promise<void> = async () => undefined;
  /** Replays every decision of every test from the log. The results must be the same. */
  readonly #log = new ReplayedLog();
  #stop = new AbortController();
  #running: Promise<unknown> = Promise.resolve();

  constructor(options: { kinds?: string[]; installed?: boolean } = {}) {
    if (options.installed !== false) this.install();
    for (const kind of options.kinds ?? ["Fence"]) {
      this.server.load(vendorCrd(kind));
      this.server.load(vendorCrd(`${kind}Template`));
    }
    for (const name of ["fencing", "medik8s-leases"]) {
      this.server.collection(NAMESPACES).create({ metadata: { name } });
    }
    this.server.onRequest((record) => {
      if (record.client.startsWith(CLIENT)) this.requests.push(record);
    });
  }

  /** Installs the CRD of health checks. */
  install(): void {
    this.server.load(
      readFileSync(
        new URL("../../deploy/node-health-check/remediation.medik8s.io_nodehealthchecks.yaml", import.meta.url),
        "utf8",
      ),
    );
  }

  /** Starts the detector, also after `stop`. */
  start(): void {
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    const { clock } = this;
    const runtime = createKubeRuntime({
      transport: this.#transport(),
      clock: {
        nowMs: () => clock.nowMs() + this.aheadMs,
        monotonicMs: () => clock.monotonicMs(),
        schedule: (delayMs, callback) => clock.schedule(delayMs, callback),
      },
      random: seededRandom(2),
      logger: createLogger(process.env["DETECTOR_LOG"] === undefined ? "silent" : "debug"),
      controllerName: "ironfence.io/agent",
      instance: "test",
    });
    const events = { record: (note: EventNote) => void this.notes.push(note) };
    const nodes = runtime.watch({ type: NODES, trim: trimNode }, signal);
    this.#running = runNodeHealthChecks(
      {
        runtime: { ...runtime, events },
        nodes,
        registry: this.registry,
        recorder: this.#log.recorder(),
        zoneLabel: "topology.kubernetes.io/zone",
        options: { leaseNamespace: "medik8s-leases", namespace: "fencing" },
      },
      signal,
    );
  }

  /** Creates a health check over Ready nodes, and starts the detector. */
  async enabled(options: { kinds?: string[]; nodes?: number; spec?: Record<string, unknown> } = {}): Promise<void> {
    for (const kind of options.kinds ?? ["Fence"]) this.template(kind);
    this.nodes(options.nodes ?? 3);
    this.check(options.spec ?? {});
    this.start();
    await this.until("enabled", () => this.status().phase !== undefined && this.status().phase !== "Disabled");
  }

  /** Lets a node fail, and waits until it has a recorded remediation. */
  async fenced(name = "n1", kind = "Fence"): Promise<Fence> {
    this.ready(name, "Unknown");
    await this.until(`a ${kind} for ${name}`, () => this.fenceOf(name, kind) !== undefined, 12_000);
    await this.until("recorded", () => this.entry(name)?.remediations !== undefined);
    const cr = this.fenceOf(name, kind);
    assert.ok(cr);
    return cr;
  }

  #transport(): KubeTransport {
    const transport = this.server.transport({ client: CLIENT });
    return {
      ...transport,
      send: async (request, signal) => {
        await this.beforeSend(request);
        const answer = await transport.send(request, signal);
        const { date, ...others } = answer.headers;
        return { ...answer, headers: { ...others, ...(this.tellsTime && date !== undefined && { date }) } };
      },
    };
  }

  async stop(): Promise<void> {
    this.#stop.abort(new Error("the test has ended"));
    await this.clock.advance(1_000);
    await this.#running;
    this.#log.assertSame();
  }

  /** Advances time in small steps until `done` returns true. @throws Error after `withinMs`. */
  async until(what: string, done: () => boolean, withinMs = 60_000): Promise<number> {
    const startMs = this.clock.nowMs();
    while (!done()) {
      if (this.clock.nowMs() - startMs > withinMs) {
        const status = JSON.stringify(
          this.checks().map((check) => check.status),
          undefined,
          1,
        );
        throw new Error(
          `not within ${withinMs} ms: ${what}; statuses: ${status}; events: ${JSON.stringify(this.reasons())}`,
        );
      }
      await this.clock.advance(20);
    }
    return this.clock.nowMs() - startMs;
  }

  node(name: string, labels: Record<string, string> = {}, annotations: Record<string, string> = {}): void {
    this.server.collection<Node>(NODES).create({
      metadata: { name, labels: { pool: "a", ...labels }, annotations },
      spec: {},
    });
    this.ready(name, "True");
  }

  nodes(count: number, prefix = "n"): string[] {
    const names = Array.from({ length: count }, (_, index) => `${prefix}${index}`);
    for (const name of names) this.node(name);
    return names;
  }

  /** Sets the condition Ready of the node with the present time. */
  ready(name: string, status: "True" | "False" | "Unknown"): void {
    const conditions = [{ type: "Ready", status, lastTransitionTime: toTime(this.clock.nowMs()) }];
    this.server.collection<Node>(NODES).mergePatch({ name }, { status: { conditions } }, "status");
  }

  label(name: string, labels: Record<string, string | null>): void {
    this.server.collection(NODES).mergePatch({ name }, { metadata: { labels } });
  }

  template(
    kind = "Fence",
    options: { name?: string; spec?: unknown; annotations?: Record<string, string> } = {},
  ): void {
    const {
      name = `${kind.toLowerCase()}-template`,
      spec = { template: { spec: { mode: "off" } } },
      annotations = {},
    } = options;
    this.server.collection(vendorType(`${kind}Template`)).create({
      metadata: { namespace: "fencing", name, annotations },
      spec,
    });
  }

  check(spec: Record<string, unknown> = {}, name = "check", annotations: Record<string, string> = {}): void {
    this.server.collection(NODE_HEALTH_CHECKS).create({
      metadata: { name, annotations },
      spec: {
        selector: { matchLabels: { pool: "a" } },
        unhealthyConditions: [
          { type: "Ready", status: "False", duration: "10s" },
          { type: "Ready", status: "Unknown", duration: "10s" },
        ],
        ...(spec["maxUnhealthy"] === undefined && { minHealthy: 0 }),
        ...(spec["escalatingRemediations"] === undefined && { remediationTemplate: reference("Fence") }),
        ...spec,
      },
    });
  }

  /** Annotates the health check. */
  annotate(annotations: Record<string, string>, name = "check"): void {
    this.server.collection(NODE_HEALTH_CHECKS).mergePatch({ name }, { metadata: { annotations } });
  }

  edit(spec: Record<string, unknown>, name = "check"): void {
    this.server.collection(NODE_HEALTH_CHECKS).mergePatch({ name }, { spec });
  }

  checks(): NodeHealthCheck[] {
    return [...this.server.collection<NodeHealthCheck>(NODE_HEALTH_CHECKS).values()];
  }

  status(name = "check") {
    return this.checks().find(({ metadata }) => metadata.name === name)?.status ?? {};
  }

  /** The entry of a node in the status. */
  entry(nodeName: string) {
    return this.status().unhealthyNodes?.find(({ name }) => name === nodeName);
  }

  condition(type: string, name = "check") {
    return this.status(name).conditions?.find((condition) => condition.type === type);
  }

  fences(kind = "Fence"): Fence[] {
    return [...this.server.collection<Fence>(vendorType(kind)).values()];
  }

  fenceOf(nodeName: string, kind = "Fence"): Fence | undefined {
    return this.fences(kind).find(
      ({ metadata }) => metadata.annotations?.["remediation.medik8s.io/node-name"] === nodeName,
    );
  }

  /** Sets a condition of the remediation, as its remediator would. */
  report(cr: Fence, type: string, status: string): void {
    const conditions = [...(cr.status?.conditions ?? []), { type, status }];
    const { name, namespace = "" } = cr.metadata;
    this.server.collection(vendorType(cr.kind)).mergePatch({ namespace, name }, { status: { conditions } }, "status");
  }

  leases(): Lease[] {
    return [...this.server.collection<Lease>(LEASES).values()];
  }

  reasons(): string[] {
    return this.notes.map(({ reason }) => reason);
  }

  /** Messages of the Kubernetes Events with one reason. */
  told(reason: string): string[] {
    return this.notes.filter((note) => note.reason === reason).map(({ note }) => note);
  }
}

export function reference(kind: string, name = `${kind.toLowerCase()}-template`) {
  return { apiVersion: "fence.example/v1", kind: `${kind}Template`, namespace: "fencing", name };
}

export function escalation(...kinds: string[]) {
  return {
    escalatingRemediations: kinds.map((kind, index) => ({
      remediationTemplate: reference(kind),
      order: index + 1,
      timeout: "60s",
    })),
  };
}
