import { Registry } from "prom-client";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { NODES } from "../../src/api/kubernetes/core-types.ts";
import type { Node } from "../../src/api/kubernetes/core.ts";
import { trimNode } from "../../src/api/kubernetes/trim.ts";
import { runOkdHealthChecks } from "../../src/detector/machines/run-okd.ts";
import { createKubeRuntime } from "../../src/kube/connection/create-runtime.ts";
import type { EventNote } from "../../src/kube/events.ts";
import type { KubeObject } from "../../src/kube/resource.ts";
import type { KubeTransport } from "../../src/kube/transport.ts";
import { serveOkdMachines } from "../../src/remediator/requests/okd-machine.ts";
import type { Clock } from "../../src/runtime/clock.ts";
import { sleep } from "../../src/runtime/clock.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { BARE_METAL_HOSTS } from "../../src/remediator/hosts/bare-metal-host/store/host-store.ts";
import { seededRandom } from "../lib/seeded-random.ts";
import {
  HEALTH_CHECKS,
  MACHINES,
  OKD_NAMESPACE as NAMESPACE,
  OkdMachines,
  REQUEST,
  STARTUP_MS,
} from "./okd-machines.ts";
import { ZONE_LABEL } from "./cluster.ts";
import { World } from "./world.ts";
import type { WorldOptions } from "./world.ts";

// ironfence's two halves for OKD, with the whole remediator and a simulated rack.

export { REQUEST };
export const LABELS_BACKUP = "remediation.metal3.io/node-labels-backup";
export const ANNOTATIONS_BACKUP = "remediation.metal3.io/node-annotations-backup";

/** Which halves for OKD run. */
export interface Halves {
  /** The half of the remediator, which serves requests of Machines. It runs by default. */
  requests?: boolean;
  /** The half of the detector, which serves MachineHealthChecks. */
  healthChecks?: boolean;
  /** Called before each of their requests to the API, such as `GET machines/m1`. */
  onRequest?: (what: string) => void;
  /** The delay of their view of Machines. */
  lagMs?: number;
}

/** The fields of a health check that tests read. */
interface HealthCheck extends KubeObject {
  status?: {
    expectedMachines?: number;
    currentHealthy?: number;
    remediationsAllowed?: number;
    conditions?: { type: string; status: string; reason?: string; severity?: string }[];
  };
}

/** A cluster whose nodes n1, n2 and so on belong to the Machines m1, m2 and so on of one MachineSet. */
export class Okd extends OkdMachines {
  readonly world: World;
  readonly notes: EventNote[] = [];
  readonly registry = new Registry();
  readonly #halves: Halves;
  #end = (): Promise<void> => Promise.resolve();

  constructor(world: World, halves: Halves) {
    super(world);
    this.world = world;
    this.#halves = halves;
  }

  /** Creates a BareMetalHost that the Machine names, in addition to the FencingTarget that powers its host. */
  createHost(machine: string, name: string, spec: Record<string, unknown>): void {
    this.world.serve("metal3.io");
    this.world.create(BARE_METAL_HOSTS, { namespace: NAMESPACE, name }, { spec: { online: true, ...spec } });
    this.annotate(machine, { "metal3.io/BareMetalHost": `${NAMESPACE}/${name}` });
  }

  /** Reasons of the Kubernetes Events about Machines. */
  get reasons(): string[] {
    return this.notes.map(({ reason }) => reason);
  }

  deleteChild(name: string): void {
    const key = { namespace: NAMESPACE, name: this.child(name)?.metadata.name ?? "" };
    this.world.server.collection(BARE_METAL_REMEDIATIONS).delete(key);
  }

  /** Waits until both power cycles of a host that no longer boots have timed out. */
  async waitOut(host: string): Promise<void> {
    const { world } = this;
    const orders = () => world.powerLog.filter((entry) => entry === `${host} On`).length;
    for (let cycle = 1; cycle <= 2; cycle += 1) {
      await world.until(`cycle ${cycle} is waited for`, () => orders() === cycle);
      await world.clock.advance(STARTUP_MS);
    }
  }

  get healthCheck(): HealthCheck | undefined {
    return this.world.server.collection<HealthCheck>(HEALTH_CHECKS).get({ namespace: NAMESPACE, name: "check" });
  }

  annotateHealthCheck(annotations: Record<string, string>): void {
    const key = { namespace: NAMESPACE, name: "check" };
    this.world.server.collection(HEALTH_CHECKS).mergePatch(key, { metadata: { annotations } });
  }

  deleteHealthCheck(): void {
    this.world.server.collection(HEALTH_CHECKS).delete({ namespace: NAMESPACE, name: "check" });
  }

  /** The value of an OKD metric for the health check; undefined if there is none. */
  async metric(name: string): Promise<number | undefined> {
    const found = await this.registry.getSingleMetric(`mapi_machinehealthcheck_${name}`)?.get();
    return found?.values.find(({ labels }) => labels["name"] === "check" && labels["namespace"] === NAMESPACE)?.value;
  }

  /** Starts the halves, also after `stop`. */
  start(): void {
    const { clock, server } = this.world;
    const { requests = true, healthChecks = false, onRequest, lagMs = 0 } = this.#halves;
    const stop = new AbortController();
    const inner = server.transport({ client: "okd" });
    const transport: KubeTransport = {
      ...inner,
      send: (request, signal) => {
        onRequest?.(`${request.method} ${request.path.split("/").slice(-2).join("/")}`);
        return inner.send(request, signal);
      },
      stream: async (request, signal) => {
        const stream = await inner.stream(request, signal);
        if (lagMs === 0 || !request.path.includes(`/${MACHINES.plural}?`)) return stream;
        return { ...stream, body: lagging(stream.body, clock, lagMs, signal) };
      },
    };
    const created = createKubeRuntime({
      transport,
      clock,
      random: seededRandom(7),
      logger: createLogger(process.env["SIM_LOG"] === undefined ? "silent" : "debug"),
      controllerName: "ironfence.io/agent",
      instance: "okd",
    });
    const runtime = { ...created, events: { record: (note: EventNote) => void this.notes.push(note) } };
    const running: Promise<void>[] = [];
    if (requests) running.push(serveOkdMachines(runtime, ZONE_LABEL, stop.signal));
    if (healthChecks) {
      const nodes = runtime.watch<Node>({ type: NODES, trim: trimNode }, stop.signal);
      running.push(
        runOkdHealthChecks(
          { runtime, nodes, registry: this.registry, namespace: NAMESPACE, zoneLabel: ZONE_LABEL },
          stop.signal,
        ),
      );
    }
    const ended = Promise.allSettled(running);
    this.#end = async () => {
      stop.abort(new Error("the test has ended"));
      await clock.advance(0);
      await ended;
    };
  }

  async stop(): Promise<void> {
    await this.#end();
  }

  async restart(): Promise<void> {
    await this.stop();
    this.start();
  }

  /** Runs `test` with these halves. */
  static run(options: WorldOptions & Halves, test: (okd: Okd, world: World) => Promise<void>): Promise<void> {
    return World.run({ hosts: ["n1", "n2", "n3"], ...options }, async (world) => {
      const okd = new Okd(world, options);
      okd.start();
      try {
        await world.clock.advance(1_000);
        await test(okd, world);
      } finally {
        await okd.stop();
      }
    });
  }
}

async function* lagging(
  body: AsyncIterable<string>,
  clock: Clock,
  lagMs: number,
  signal: AbortSignal,
): AsyncGenerator<string> {
  for await (const chunk of body) {
    await sleep(clock, lagMs, signal);
    yield chunk;
  }
}
