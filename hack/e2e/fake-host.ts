import { randomUUID } from "node:crypto";
import type { ControlPlane, Kwok } from "../control-plane/control-plane.ts";
import { registerNode, reportBoot } from "../control-plane/fake-node.ts";
import type { KubeApi } from "../lib/kube-api.ts";
import type { SushyEmulator } from "./sushy-emulator.ts";

const POLL_MS = 50;

/** Labels in the configuration of the kubelets of fake hosts. A node that registers again has them. */
const KUBELET_LABELS = { "node.kubernetes.io/instance-type": "fake-metal" };

/**
 * One bare-metal host: a System of the emulator, and a kubelet (its own kwok process) that runs while the System is on.
 * Off ends the kubelet at once. On starts it after `bootMs` with a new boot id, and registers the node if its object is
 * gone.
 */
export class FakeHost {
  readonly name: string;
  readonly systemUuid: string;
  readonly #controlPlane: ControlPlane;
  readonly #bmc: SushyEmulator;
  readonly #bootMs: number;
  #kwok: Kwok | undefined;
  #ordersSeen = 0;
  /** The disk is broken: the host hangs on every boot until it is installed again from the network. */
  broken = false;

  constructor(
    name: string,
    systemUuid: string,
    deps: { controlPlane: ControlPlane; bmc: SushyEmulator; bootMs: number },
  ) {
    this.name = name;
    this.systemUuid = systemUuid;
    this.#controlPlane = deps.controlPlane;
    this.#bmc = deps.bmc;
    this.#bootMs = deps.bootMs;
  }

  get #api(): KubeApi {
    return this.#controlPlane.api;
  }

  /** Registers the node and starts its kubelet. */
  async join(labels: Readonly<Record<string, string>>): Promise<void> {
    await registerNode(this.#api, {
      name: this.name,
      labels: { ...KUBELET_LABELS, ...labels },
      systemUUID: this.systemUuid,
    });
    this.#kwok = await this.#controlPlane.startKwok(this.name);
  }

  /** Ends the kubelet abruptly; the host stays on. */
  async hang(): Promise<void> {
    const kwok = this.#kwok;
    this.#kwok = undefined;
    await kwok?.kill();
  }

  /** Starts the kubelet again in the same boot. */
  async recover(): Promise<void> {
    this.#kwok ??= await this.#controlPlane.startKwok(this.name);
  }

  /** How many power orders of one type the BMC has accepted. */
  async orderCount(resetType: "On" | "ForceOff"): Promise<number> {
    const records = await this.#bmc.records(this.systemUuid);
    return records.filter((record) => record.kind === "order" && record.value === resetType).length;
  }

  /**
   * Lets the host follow its power until `signal` aborts. If a call fails on a busy machine, the error goes to
   * `onError` and the order is followed again.
   */
  async live(onError: (error: unknown) => void, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const seen = this.#ordersSeen;
      try {
        const orders = (await this.#bmc.records(this.systemUuid)).filter((record) => record.kind === "order");
        if (orders.length > this.#ordersSeen) await this.#follow(orders.length, signal);
      } catch (error) {
        this.#ordersSeen = seen;
        if (!signal.aborted) onError(error);
      }
      await pause(POLL_MS);
    }
  }

  /** After an order, waits until the power has settled, and starts or ends the kubelet. */
  async #follow(orders: number, signal: AbortSignal): Promise<void> {
    this.#ordersSeen = orders;
    const last = (await this.#bmc.records(this.systemUuid)).findLast((record) => record.kind === "order");
    const wanted = last?.value === "ForceOff" ? "Off" : "On";
    while ((await this.#bmc.powerState(this.systemUuid)) !== wanted) {
      if (signal.aborted) return;
      await pause(POLL_MS);
      const now = (await this.#bmc.records(this.systemUuid)).filter((record) => record.kind === "order").length;
      // A newer order replaces this one.
      if (now > this.#ordersSeen) return;
    }
    if (wanted === "Off") await this.hang();
    else if (this.#kwok === undefined) await this.#boot();
  }

  async #boot(): Promise<void> {
    const target = await this.#bmc.takeBootTarget(this.systemUuid);
    await pause(this.#bootMs);
    if (target === "Pxe") this.broken = false;
    if (this.broken) return;
    const boot = { systemUUID: this.systemUuid, bootID: randomUUID() };
    const path = `/api/v1/nodes/${this.name}`;
    if ((await this.#api.find(path)) === undefined) {
      await registerNode(this.#api, { name: this.name, labels: KUBELET_LABELS, ...boot });
    } else {
      await this.#api.mergePatch(`${path}/status`, { status: { volumesInUse: null } });
      await reportBoot(this.#api, this.name, boot);
    }
    this.#kwok = await this.#controlPlane.startKwok(this.name);
  }
}

function pause(delayMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, delayMs));
}
