import type { Clock } from "../../src/runtime/clock.ts";
import type { Random } from "../../src/runtime/random.ts";
import { Bmc } from "./bmc.ts";
import type { RackEvent, RackEventDetail } from "./events.ts";
import { Host } from "./host.ts";
import type { HostSpec } from "./host.ts";

/** A rack of simulated hosts, each with its BMC. */
export interface Rack {
  readonly hosts: readonly Host[];
  /** @throws Error if there is no such host. */ host(name: string): Host;
  /** The BMC of the host of this name. @throws Error if there is no such host. */
  bmc(name: string): Bmc;
  /** Calls `listener` for everything that really happens from now on. @returns a function that ends this. */
  subscribe(listener: (event: RackEvent) => void): () => void;
  /** Ends every transition in progress, so that no timer is left. */
  stop(): void;
}

/** Creates a rack. Everything in it happens on `clock`. With a seeded `random`, each run is the same. */
export function createRack(options: { clock: Clock; random: Random; hosts: readonly HostSpec[] }): Rack {
  const { clock, random } = options;
  const listeners = new Set<(event: RackEvent) => void>();
  const hosts = new Map<string, Host>();
  const bmcs = new Map<string, Bmc>();

  for (const spec of options.hosts) {
    if (hosts.has(spec.name)) throw new Error(`two hosts are named ${spec.name}`);
    const emit = (detail: RackEventDetail): void => {
      const event: RackEvent = { atMs: clock.nowMs(), host: spec.name, ...detail };
      for (const listener of listeners) listener(event);
    };
    const host = new Host({ clock, random, emit }, spec);
    hosts.set(spec.name, host);
    bmcs.set(spec.name, new Bmc({ clock, onRestart: () => emit({ type: "bmcRestarted" }) }, host));
  }

  return {
    hosts: [...hosts.values()],
    host: (name) => named(hosts, name),
    bmc: (name) => named(bmcs, name),
    subscribe: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    stop: () => {
      for (const part of [...bmcs.values(), ...hosts.values()]) part.stop();
    },
  };
}

function named<T>(items: ReadonlyMap<string, T>, name: string): T {
  const item = items.get(name);
  if (item === undefined) throw new Error(`no host is named ${name}`);
  return item;
}
