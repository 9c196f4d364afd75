import { fieldAt } from "../../src/api/schema/read-fields.ts";
import type { BareMetalHost } from "../../src/api/metal3/metal3.ts";
import {
  METAL3_GROUP,
  METAL3_VERSIONS,
  readBareMetalHost,
  REBOOT_ANNOTATION_PREFIX,
} from "../../src/api/metal3/metal3.ts";
import type { KubeClient } from "../../src/kube/client.ts";
import { pointer } from "../../src/kube/objects/json-pointer.ts";
import type { KubeObject, ResourceType } from "../../src/kube/resource.ts";
import { sleep } from "../../src/runtime/clock.ts";
import type { Clock } from "../../src/runtime/clock.ts";
import { toTime } from "../../src/runtime/time.ts";
import type { Logger } from "../../src/telemetry/logger.ts";
import type { Bmc } from "./bmc.ts";
import type { PowerOrderType } from "./events.ts";
import type { Rack } from "./rack.ts";

const BARE_METAL_HOSTS: ResourceType = {
  group: METAL3_GROUP,
  version: METAL3_VERSIONS[0],
  kind: "BareMetalHost",
  plural: "baremetalhosts",
  namespaced: true,
};

export interface OperatorDeps {
  client: Pick<KubeClient, "list" | "mergePatch" | "patch">;
  clock: Clock;
  logger: Logger;
  rack: Rack;
}

/** Delays of the simulated operator; those of a real one by default. */
export interface OperatorOptions {
  /** Delay until it notices a change of an object: 500. */
  lookMs?: number;
  /** Period in which it also checks and corrects hosts without changes: 60,000. */
  reconcileMs?: number;
  /** Time from the decision until the BMC gets the order, which is sent even if it is no longer wanted: 2,000. */
  orderDelayMs?: number;
  /** Delay of status.poweredOn behind the real power: 5,000. */
  mirrorDelayMs?: number;
  /** How long a soft power-off may take before a hard one follows: 180,000. */
  softTimeoutMs?: number;
  /** Time from the annotation until the operator has detached or attached a host: 3,000. */
  detachMs?: number;
  /** Time to wipe a host that is deprovisioned: 10,000. */
  deprovisionMs?: number;
  /** The host of the rack that a BareMetalHost describes; by default the one with the same name. */
  hostOf?: (host: BareMetalHost) => string;
}

/** A running operator. */
export interface BareMetalHostOperator {
  /** Resolves when the operator has ended. */
  settled: Promise<void>;
  /** While it is away, it does nothing, but pending orders are still sent. */
  setAway(isAway: boolean): void;
  /** Drops all its state in memory, as a restart does. */
  restart(): void;
}

/** What the operator remembers about one host between two reconciles. */
interface Memory {
  /** Resource version that the operator has acted on. */
  version: string;
  reconciledAtMs: number;
  order: { wanted: "On" | "Off"; type: PowerOrderType; dueAtMs: number; isSent: boolean } | undefined;
  softSinceMs: number | undefined;
  /** The power state that status.poweredOn is to show, and when. */
  mirror: { poweredOn: boolean; dueAtMs: number } | undefined;
  /** The end of a step of provisioning or detaching that is in progress. */
  untilMs: number | undefined;
  machineID: string | undefined;
}

/**
 * Simulates the operator of BareMetalHosts on the rack. It enforces spec.online, keeps hosts off that have reboot
 * annotations, reports power with a delay, provisions and wipes hosts, and detaches them. If another client changes the
 * power of a host, it reverts that. It logs errors of the API and continues.
 */
export function startBareMetalHostOperator(
  deps: OperatorDeps,
  options: OperatorOptions,
  signal: AbortSignal,
): BareMetalHostOperator {
  const operator = new Operator(deps, options);
  return {
    settled: operator.run(signal),
    setAway: (isAway) => {
      operator.isAway = isAway;
    },
    restart: () => operator.forget(),
  };
}

class Operator {
  isAway = false;
  readonly #deps: OperatorDeps;
  readonly #options: Required<Omit<OperatorOptions, "hostOf">> & Pick<OperatorOptions, "hostOf">;
  readonly #memories = new Map<string, Memory>();

  constructor(deps: OperatorDeps, options: OperatorOptions) {
    this.#deps = deps;
    this.#options = {
      lookMs: 500,
      reconcileMs: 60_000,
      orderDelayMs: 2_000,
      mirrorDelayMs: 5_000,
      softTimeoutMs: 180_000,
      detachMs: 3_000,
      deprovisionMs: 10_000,
      ...options,
    };
  }

  forget(): void {
    this.#memories.clear();
  }

  async run(signal: AbortSignal): Promise<void> {
    const { client, clock, logger } = this.#deps;
    while (!signal.aborted) {
      try {
        if (!this.isAway) {
          const { items } = await client.list<KubeObject>(BARE_METAL_HOSTS, {}, signal);
          for (const raw of items) await this.#tend(raw, signal);
          const present = new Set(items.map(({ metadata }) => metadata.uid));
          for (const uid of this.#memories.keys()) if (!present.has(uid)) this.#memories.delete(uid);
        }
      } catch (error) {
        if (!signal.aborted) logger.debug({ err: error }, "a step of the BareMetalHost operator failed");
      }
      await sleep(clock, this.#options.lookMs, signal).catch(() => undefined);
    }
  }

  async #tend(raw: KubeObject, signal: AbortSignal): Promise<void> {
    const host = readBareMetalHost(raw);
    if (host.paused) return;
    const memory = this.#memoryOf(host);
    const name = this.#options.hostOf?.(host) ?? host.metadata.name;
    const bmc = this.#deps.rack.bmc(name);
    const status =
      this.#detach(host, memory) ??
      (host.operationalStatus === "detached"
        ? {}
        : (this.#provision(raw, host, memory, bmc) ?? this.#power(host, memory, bmc)));
    if (Object.keys(status).length > 0) await this.#write(host, status, signal);
    else memory.version = host.metadata.resourceVersion;
    if (this.#isRebootDone(host, memory, bmc)) {
      const remove = { op: "remove" as const, path: pointer("metadata", "annotations", PLAIN_REBOOT) };
      await this.#deps.client.patch(BARE_METAL_HOSTS, keyOf(host), guardOf(host), [remove], {}, signal);
    }
  }

  /** Detaches or attaches a host; undefined if neither is requested. */
  #detach(host: BareMetalHost, memory: Memory): Status | undefined {
    const isDetached = host.operationalStatus === "detached";
    if (host.detached === isDetached) return undefined;
    if (!this.#hasPassed(memory, this.#options.detachMs)) return {};
    memory.order = undefined;
    return { operationalStatus: host.detached ? "detached" : "OK" };
  }

  /** Advances a host through the provisioning states; undefined if it is in the state that its spec requests. */
  #provision(raw: KubeObject, host: BareMetalHost, memory: Memory, bmc: Bmc): Status | undefined {
    const wantsImage =
      fieldAt(raw, "spec", "image") !== undefined || fieldAt(raw, "spec", "customDeploy") !== undefined;
    const truth = bmc.host;
    switch (host.provisioningState) {
      case undefined:
        return {
          ...EMPTY_STATUS,
          provisioning: provisioning(host.externallyProvisioned ? "externally provisioned" : "available"),
        };
      case "available":
        if (!wantsImage || !host.online) return undefined;
        truth.setBoot({ enabled: "Once", target: "Pxe", mode: "UEFI" });
        // An available host is also on if its spec says so.
        if (truth.power === "On") bmc.order("ForceRestart");
        memory.machineID = truth.machineID;
        return { provisioning: provisioning("provisioning") };
      case "provisioning":
        if (truth.power === "Off") bmc.order("On");
        if (truth.os !== "running" || truth.machineID === memory.machineID) return {};
        return { provisioning: provisioning("provisioned"), ...this.#mirrored(true) };
      case "provisioned":
        return wantsImage ? undefined : { provisioning: provisioning("deprovisioning") };
      case "deprovisioning":
        if (truth.power !== "Off") {
          bmc.order("ForceOff");
          return {};
        }
        if (!this.#hasPassed(memory, this.#options.deprovisionMs)) return {};
        // The disk is wiped, so the host boots nothing until it is provisioned again.
        truth.failDisk();
        return { provisioning: provisioning("available"), ...this.#mirrored(false) };
      default:
        return undefined;
    }
  }

  /** Powers the host as requested, and updates status.poweredOn. */
  #power(host: BareMetalHost, memory: Memory, bmc: Bmc): Status {
    const nowMs = this.#deps.clock.monotonicMs();
    this.#sendDue(memory, bmc, nowMs);
    const isDue =
      memory.order !== undefined ||
      memory.version !== host.metadata.resourceVersion ||
      nowMs - memory.reconciledAtMs >= this.#options.reconcileMs;
    if (!isDue) return this.#mirror(host, memory, bmc, nowMs);
    memory.reconciledAtMs = nowMs;
    if (bmc.reachability !== "up") {
      memory.order = undefined;
      return host.errorType === undefined ? POWER_ERROR : {};
    }
    const wanted = wantedPower(host);
    const power = bmc.readPower();
    if (power === wanted) memory.softSinceMs = undefined;
    if (memory.order?.isSent === true && (power === "On" || power === "Off")) memory.order = undefined;
    if (memory.order === undefined && power !== wanted && (power === "On" || power === "Off")) {
      const type = wanted === "On" ? "On" : this.#offOrder(host, memory, nowMs);
      memory.order = { wanted, type, dueAtMs: nowMs + this.#options.orderDelayMs, isSent: false };
    }
    return { ...(host.errorType !== undefined && NO_ERROR), ...this.#mirror(host, memory, bmc, nowMs) };
  }

  #sendDue({ order }: Memory, bmc: Bmc, nowMs: number): void {
    if (order === undefined || order.isSent || nowMs < order.dueAtMs) return;
    order.isSent = true;
    if (bmc.reachability === "up") bmc.order(order.type);
  }

  #offOrder(host: BareMetalHost, memory: Memory, nowMs: number): PowerOrderType {
    if (!host.online || rebootKeys(host).some(([, mode]) => mode === "hard")) return "ForceOff";
    memory.softSinceMs ??= nowMs;
    return nowMs - memory.softSinceMs >= this.#options.softTimeoutMs ? "ForceOff" : "GracefulShutdown";
  }

  #mirror(host: BareMetalHost, memory: Memory, bmc: Bmc, nowMs: number): Status {
    const power = bmc.readPower();
    const poweredOn = power === "Off" ? false : power === "On" ? true : host.poweredOn;
    if (bmc.reachability !== "up" || poweredOn === undefined || poweredOn === host.poweredOn) {
      memory.mirror = undefined;
      return {};
    }
    if (memory.mirror?.poweredOn !== poweredOn) {
      memory.mirror = { poweredOn, dueAtMs: nowMs + this.#options.mirrorDelayMs };
    }
    return nowMs < memory.mirror.dueAtMs ? {} : this.#mirrored(poweredOn);
  }

  #mirrored(poweredOn: boolean): Status {
    return { poweredOn, lastUpdated: toTime(this.#deps.clock.nowMs()) };
  }

  /** A reboot annotation without a key is done when the host is off. */
  #isRebootDone(host: BareMetalHost, memory: Memory, bmc: Bmc): boolean {
    const isAsked = PLAIN_REBOOT in (host.metadata.annotations ?? {});
    return isAsked && bmc.readPower() === "Off" && memory.order?.isSent !== false;
  }

  #hasPassed(memory: Memory, delayMs: number): boolean {
    const nowMs = this.#deps.clock.monotonicMs();
    memory.untilMs ??= nowMs + delayMs;
    if (nowMs < memory.untilMs) return false;
    memory.untilMs = undefined;
    return true;
  }

  #memoryOf({ metadata }: BareMetalHost): Memory {
    const known = this.#memories.get(metadata.uid);
    if (known !== undefined) return known;
    const memory: Memory = {
      version: "",
      reconciledAtMs: -Infinity,
      order: undefined,
      softSinceMs: undefined,
      mirror: undefined,
      untilMs: undefined,
      machineID: undefined,
    };
    this.#memories.set(metadata.uid, memory);
    return memory;
  }

  async #write(host: BareMetalHost, status: Status, signal: AbortSignal): Promise<void> {
    const options = { subresource: "status" };
    await this.#deps.client.mergePatch(BARE_METAL_HOSTS, keyOf(host), guardOf(host), { status }, options, signal);
  }
}

type Status = Record<string, unknown>;

const PLAIN_REBOOT = REBOOT_ANNOTATION_PREFIX.slice(0, -1);
const POWER_ERROR: Status = {
  operationalStatus: "error",
  errorType: "power management error",
  errorMessage: "the BMC does not answer",
};
const NO_ERROR: Status = { operationalStatus: "OK", errorType: null, errorMessage: "" };
const EMPTY_STATUS: Status = {
  operationalStatus: "OK",
  poweredOn: false,
  errorCount: 0,
  errorMessage: "",
  hardwareProfile: "unknown",
};

function provisioning(state: string): Status {
  return { ID: "simulated", state };
}

/** On, unless a user wants the host off. A host that must not be powered off is always On. */
function wantedPower(host: BareMetalHost): "On" | "Off" {
  return host.disablePowerOff || (host.online && rebootKeys(host).length === 0) ? "On" : "Off";
}

/** Reboot annotations with their modes. */
function rebootKeys({ metadata }: BareMetalHost): [string, string][] {
  const entries = Object.entries(metadata.annotations ?? {});
  return entries
    .filter(([key]) => key === PLAIN_REBOOT || key.startsWith(REBOOT_ANNOTATION_PREFIX))
    .map(([key, value]) => [key, value.includes('"hard"') ? "hard" : "soft"]);
}

function keyOf({ metadata }: BareMetalHost): { namespace: string; name: string } {
  return { namespace: metadata.namespace, name: metadata.name };
}

function guardOf({ metadata }: BareMetalHost): { uid: string; resourceVersion: string } {
  return { uid: metadata.uid, resourceVersion: metadata.resourceVersion };
}
