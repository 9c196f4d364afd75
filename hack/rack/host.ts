import type { Taint } from "../../src/api/kubernetes/core.ts";
import type { Clock, Timer } from "../../src/runtime/clock.ts";
import type { Random } from "../../src/runtime/random.ts";
import type { SimulatedPower, OrderOutcome, OsState, PowerOrder, PowerOrderType, RackEventDetail } from "./events.ts";

/** The properties of a host, and how long its changes take. Times are in milliseconds of the injected clock. */
export interface HostSpec {
  /** Name of the host and of its node. */
  name: string;
  /** SMBIOS UUID; drawn at random by default. */
  systemUUID?: string;
  serialNumber?: string;
  manufacturer?: string;
  model?: string;
  /** Labels with which its kubelet registers a new Node. */
  labels?: Readonly<Record<string, string>>;
  /** Taints with which its kubelet registers a new Node. */
  taints?: readonly Taint[];
  /** `spec.providerID` with which its kubelet registers a new Node; none by default. */
  providerID?: string;
  /** `On` by default: the host is up and running from the start. */
  power?: "On" | "Off";
  /** Time from the order until the host is really off: 2,000 by default. */
  powerOffDelayMs?: number;
  /** Time from the order until the power is on: 1,000 by default. */
  powerOnDelayMs?: number;
  /** Time from power-on to a running OS: 5,000 by default. */
  bootMs?: number;
  /** Time in which a network boot writes the disk, before the boot from the disk: 10,000 by default. */
  reprovisionMs?: number;
  /**
   * The effect of an NMI. dump: the crash kernel writes a dump, then the host restarts. hang: the host freezes. ignore:
   * the OS ignores it. `dump` by default.
   */
  onNmi?: "dump" | "hang" | "ignore";
  /** Duration of a dump: 20,000 by default. */
  dumpMs?: number;
  /** What the host does when mains power comes back: `LastState` by default. */
  restorePolicy?: "AlwaysOn" | "AlwaysOff" | "LastState";
}

/** The firmware's one-time boot setting, by the names of Redfish's `Boot` object. */
export interface BootSetting {
  enabled: "Disabled" | "Once";
  target: "None" | "Pxe" | "Hdd";
  mode: "UEFI" | "Legacy";
}

/** A pod that was started on a host. It writes to its volumes until it is stopped or the power is really off. */
export interface Workload {
  /** `namespace/name` */
  pod: string;
  /** `namespace/name` of the volume claims that it writes to. */
  claims: readonly string[];
}

/** A host keeps at most this many orders, and drops the oldest. */
const ORDERS_MAX = 10_000;

/**
 * One simulated host: its power, disk, firmware and OS. This is the real state; its BMC (`Bmc`) may report another one.
 * Everything happens on the injected clock, one transition at a time.
 */
export class Host {
  readonly name: string;
  readonly spec: Required<HostSpec>;
  /** Pods that run here, by UID. The kubelet maintains this map; a restart or a real power-off empties it. */
  readonly workloads = new Map<string, Workload>();
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #emit: (detail: RackEventDetail) => void;
  readonly #orders: PowerOrder[] = [];
  #power: SimulatedPower;
  #os: OsState;
  #bootID: string;
  #machineID: string;
  #diskFailed = false;
  #mains = true;
  #wantedByPolicy: boolean;
  #lastResetMs: number;
  #startedByMains = false;
  #boot: BootSetting = { enabled: "Disabled", target: "None", mode: "UEFI" };
  /** The transition in progress, if any. */
  #transition: Timer | undefined;

  constructor(deps: { clock: Clock; random: Random; emit: (detail: RackEventDetail) => void }, spec: HostSpec) {
    this.#clock = deps.clock;
    this.#random = deps.random;
    this.#emit = deps.emit;
    this.name = spec.name;
    this.spec = {
      systemUUID: deps.random.uuid(),
      serialNumber: `SN-${spec.name.toUpperCase()}`,
      manufacturer: "ironfence",
      model: "simulated host",
      labels: {},
      taints: [],
      providerID: "",
      power: "On",
      powerOffDelayMs: 2_000,
      powerOnDelayMs: 1_000,
      bootMs: 5_000,
      reprovisionMs: 10_000,
      onNmi: "dump",
      dumpMs: 20_000,
      restorePolicy: "LastState",
      ...spec,
    };
    this.#power = this.spec.power;
    this.#wantedByPolicy = this.#power === "On";
    this.#os = this.#power === "On" ? "running" : "down";
    this.#lastResetMs = deps.clock.nowMs();
    this.#bootID = deps.random.uuid();
    this.#machineID = this.#newMachineID();
  }

  get power(): SimulatedPower {
    return this.#power;
  }

  get os(): OsState {
    return this.#os;
  }

  /** Identifies the present boot (or the last one while nothing runs); new at each boot. */
  get bootID(): string {
    return this.#bootID;
  }

  /** Identifies the installed OS; new after each installation. */
  get machineID(): string {
    return this.#machineID;
  }

  get diskFailed(): boolean {
    return this.#diskFailed;
  }

  /** Whether the host has mains power. Without it, the BMC does not work. */
  get mains(): boolean {
    return this.#mains;
  }

  /** Wall-clock time at which the host was last powered on or restarted, milliseconds since the epoch. */
  get lastResetMs(): number {
    return this.#lastResetMs;
  }

  /** Whether the return of mains power, and nothing later, has started the host. */
  get startedByMains(): boolean {
    return this.#startedByMains;
  }

  get bootSetting(): BootSetting {
    return this.#boot;
  }

  /** Power orders received, oldest first. */
  get orders(): readonly PowerOrder[] {
    return this.#orders;
  }

  /** Whether the OS may really still write to volumes. A frozen OS may, until the power is off. */
  get canWrite(): boolean {
    return this.#os === "running" || this.#os === "hung";
  }

  setBoot(setting: BootSetting): void {
    this.#boot = setting;
  }

  /** Gives the host a power order, as its BMC does. Returns at once; the change happens later. */
  order(type: PowerOrderType): OrderOutcome {
    const outcome = this.#mains ? this.#obey[type]() : "Refused";
    this.#orders.push({ atMs: this.#clock.nowMs(), type, outcome });
    if (this.#orders.length > ORDERS_MAX) this.#orders.shift();
    this.#emit({ type: "ordered", order: type, outcome });
    return outcome;
  }

  /** Freezes the OS: heartbeats stop, although power is on and disks may be written to. */
  hang(): void {
    if (this.#os !== "running") return;
    this.#os = "hung";
    this.#emit({ type: "hung" });
  }

  /** Resumes a frozen OS with the same boot and the same pods. */
  resume(): void {
    if (this.#os !== "hung" || this.#diskFailed) return;
    this.#os = "running";
    this.#emit({ type: "resumed" });
  }

  /** Breaks the disk: the OS freezes, and the host does not boot until a network boot has written the disk again. */
  failDisk(): void {
    this.#diskFailed = true;
    this.#emit({ type: "diskFailed" });
    this.hang();
  }

  /** Inserts a new disk with the same OS, so that the next boot from disk succeeds. */
  replaceDisk(): void {
    this.#diskFailed = false;
  }

  /** Cuts mains power: the host is off at once, and its BMC does not work. */
  cutMains(): void {
    if (!this.#mains) return;
    this.#mains = false;
    this.#wantedByPolicy = this.#power === "On" || this.#power === "PoweringOn";
    this.#becomeOff();
  }

  /** Restores mains power. The host then follows its restore policy. */
  restoreMains(): void {
    if (this.#mains) return;
    this.#mains = true;
    const policy = this.spec.restorePolicy;
    if (policy === "AlwaysOn" || (policy === "LastState" && this.#wantedByPolicy)) this.#startOn(true);
  }

  /** Ends the simulation: cancels the transition in progress. */
  stop(): void {
    this.#transition?.cancel();
  }

  readonly #obey: Readonly<Record<PowerOrderType, () => OrderOutcome>> = {
    On: () => {
      // Like a real machine, a host cannot be powered on in the middle of a power-off.
      if (this.#power === "PoweringOff") return "Refused";
      if (this.#power !== "Off") return "NoChange";
      this.#startOn();
      return "Started";
    },
    ForceOff: () => {
      if (this.#power === "Off" || this.#power === "PoweringOff") return "NoChange";
      this.#startOff();
      return "Started";
    },
    GracefulShutdown: () => {
      if (this.#power === "Off" || this.#power === "PoweringOff") return "NoChange";
      // A graceful shutdown needs a running OS. A frozen or starting OS does not receive it.
      if (this.#os === "running") this.#startOff();
      return "Started";
    },
    ForceRestart: () => {
      if (this.#power !== "On") return "Refused";
      this.workloads.clear();
      this.#startBoot();
      this.#emit({ type: "restarting" });
      return "Started";
    },
    PowerCycle: () => {
      if (this.#power !== "On") return "Refused";
      this.#startOff(() => this.#startOn());
      return "Started";
    },
    Nmi: () => this.#interrupt(),
  };

  /** A second NMI aborts the dump, and the host freezes. */
  #interrupt(): OrderOutcome {
    if (this.#power !== "On") return "Refused";
    const hasKernel = this.#os === "running" || this.#os === "hung" || this.#os === "dumping";
    if (!hasKernel || this.spec.onNmi === "ignore") return "NoChange";
    const isAgain = this.#os === "dumping";
    this.workloads.clear();
    this.#transition?.cancel();
    this.#os = "dumping";
    this.#emit({ type: "crashed" });
    if (isAgain || this.spec.onNmi === "hang") return "Started";
    this.#after(this.spec.dumpMs, () => {
      this.#startBoot();
      this.#emit({ type: "restarting" });
    });
    return "Started";
  }

  #startOff(then?: () => void): void {
    this.#changePower("PoweringOff");
    this.#after(this.spec.powerOffDelayMs, () => {
      this.#becomeOff();
      then?.();
    });
  }

  #becomeOff(): void {
    this.#transition?.cancel();
    this.#os = "down";
    this.workloads.clear();
    this.#changePower("Off");
  }

  #startOn(byMains = false): void {
    this.#changePower("PoweringOn");
    this.#after(this.spec.powerOnDelayMs, () => {
      this.#changePower("On");
      this.#startBoot(byMains);
    });
  }

  #startBoot(byMains = false): void {
    this.#startedByMains = byMains;
    this.#lastResetMs = this.#clock.nowMs();
    const fromNetwork = this.#boot.enabled === "Once" && this.#boot.target === "Pxe";
    // A one-time setting is cleared when its boot begins, even if that boot does not finish.
    this.#boot = { ...this.#boot, enabled: "Disabled", target: "None" };
    if (!fromNetwork) {
      this.#startBootFromDisk();
      return;
    }
    this.#os = "installing";
    this.#after(this.spec.reprovisionMs, () => {
      this.#diskFailed = false;
      this.#machineID = this.#newMachineID();
      this.#emit({ type: "reinstalled", machineID: this.#machineID });
      this.#startBootFromDisk();
    });
  }

  #startBootFromDisk(): void {
    this.#os = "booting";
    this.#after(this.spec.bootMs, () => {
      if (this.#diskFailed) {
        this.#os = "noBootDevice";
        this.#emit({ type: "bootFailed" });
        return;
      }
      this.#os = "running";
      this.#bootID = this.#random.uuid();
      this.#emit({ type: "booted", bootID: this.#bootID });
    });
  }

  #changePower(power: SimulatedPower): void {
    if (this.#power === power) return;
    this.#power = power;
    this.#emit({ type: "powerChanged", power });
  }

  #after(delayMs: number, step: () => void): void {
    this.#transition?.cancel();
    this.#transition = this.#clock.schedule(delayMs, step);
  }

  #newMachineID(): string {
    return this.#random.uuid().replaceAll("-", "");
  }
}
