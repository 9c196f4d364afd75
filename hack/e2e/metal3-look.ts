import type { NodeView } from "./chronicle.ts";
import { readyOf } from "./chronicle.ts";
import { eventually } from "./eventually.ts";
import type { ObjectView } from "./machines.ts";
import { machinePaths } from "./machines.ts";
import type { Metal3World } from "./metal3-world.ts";

/**
 * Reads the objects of a world of Cluster API and Metal3 by the name of a Machine. Its host and its node have the same
 * name.
 */
export class Metal3Look {
  readonly #world: () => Metal3World;
  readonly #timeoutMs: number;

  /** @param world called each time, since tests are declared before the world exists. */
  constructor(world: () => Metal3World, timeoutMs: number) {
    this.#world = world;
    this.#timeoutMs = timeoutMs;
  }

  /** `eventually`, whose error shows the requests, the remediations, the health checks and the logs of the agents. */
  explain<T>(what: string, ask: () => Promise<T | undefined | false>): Promise<T> {
    return eventually(what, this.#timeoutMs, ask, async () => {
      const { api, agents } = this.#world();
      const lists = [this.#paths.metal3Remediations, this.#paths.remediations, this.#paths.healthChecks];
      const objects = (await Promise.all(lists.map((path) => api.list(path)))).flat();
      return [...objects.map((object) => JSON.stringify(object)), ...agents.map((agent) => agent.log())].join("\n");
    });
  }

  requestOf(name: string): Promise<ObjectView | undefined> {
    return this.#world().api.find<ObjectView>(`${this.#paths.metal3Remediations}/${name}`);
  }

  /** Names of the BareMetalRemediations that serve requests of this name. */
  async childrenOf(name: string): Promise<string[]> {
    const found = await this.#world().api.list<ObjectView>(this.#paths.remediations);
    return found.map(({ metadata }) => metadata.name).filter((child) => child.startsWith(`${name}-`));
  }

  machineOf(name: string): Promise<ObjectView> {
    return this.#world().api.get<ObjectView>(`${this.#paths.machines}/${name}`);
  }

  hostOf(name: string): Promise<ObjectView> {
    return this.#world().api.get<ObjectView>(`${this.#paths.hosts}/${name}`);
  }

  nodeOf(name: string): Promise<NodeView> {
    return this.#world().workload.api.get<NodeView>(`/api/v1/nodes/${name}`);
  }

  checkOf(name: string): Promise<ObjectView> {
    return this.#world().api.get<ObjectView>(`${this.#paths.healthChecks}/${name}`);
  }

  /** Orders that have had an effect. */
  ordersOf(name: string): string[] {
    const started = this.#world()
      .rack.host(name)
      .orders.filter(({ outcome }) => outcome === "Started");
    return started.map(({ type }) => type);
  }

  /** Annotations that make Metal3's operator keep the host off. */
  async holdsOf(name: string): Promise<string[]> {
    const { metadata } = await this.hostOf(name);
    return Object.keys(metadata.annotations ?? {}).filter((key) => key.startsWith("reboot.metal3.io/"));
  }

  /** Pauses or resumes Metal3's operator for a host. While it is paused, a power-off waits. */
  pause(name: string, isPaused: boolean): Promise<unknown> {
    return this.#world().api.mergePatch(`${this.#paths.hosts}/${name}`, {
      metadata: { annotations: { "baremetalhost.metal3.io/paused": isPaused ? "" : null } },
    });
  }

  /** Waits until the node is Ready without taints, and its request and the off requests of the host are gone. */
  isBack(name: string): Promise<unknown> {
    return this.explain(`${name} is back, and nothing is left of its remediation`, async () => {
      const node = await this.nodeOf(name);
      if (readyOf(node) !== "True" || (node.spec.taints ?? []).length > 0) return false;
      return (await this.requestOf(name)) === undefined && (await this.holdsOf(name)).length === 0;
    });
  }

  get #paths() {
    return machinePaths(this.#world());
  }
}
