import type { Node } from "../../../../api/kubernetes/core.ts";
import type { BareMetalHost } from "../../../../api/metal3/metal3.ts";
import type { BootOverride, PowerReading } from "../../../../bmc/interface/driver.ts";
import { BmcError } from "../../../../bmc/interface/errors.ts";
import type { BmcErrorCode } from "../../../../bmc/interface/errors.ts";
import type { OnceAnswer } from "../../../../bmc/topology/send-once.ts";
import type { BmcEvidence } from "../../../../bmc/evidence/model.ts";
import type { IdentityCheck } from "../../../../bmc/identity/identity-check.ts";
import type { OnOptions, Topology } from "../../../../bmc/topology/topology.ts";
import type { WholeReading } from "../../../../bmc/topology/whole-power.ts";
import type { KubeErrorCode } from "../../../../kube/errors.ts";
import { isKubeError } from "../../../../kube/errors.ts";
import { isLaterVersion } from "../../../../kube/watch/resource-version.ts";
import type { KubeRuntime } from "../../../../kube/runtime.ts";
import { abortReason } from "../../../../runtime/clock.ts";
import { DeadlineError, withDeadline } from "../../../../runtime/deadline.ts";
import { ON_CHECK_MAX_MS } from "../../../machine/model/decision/timings.ts";
import type { FencedHost, HostPower, OrderCheck } from "../../model/host.ts";
import { HostRefusal, OrderNotDueError } from "../../model/host.ts";
import { requestOff, withdrawOffRequests, readHost } from "../store/host-store.ts";
import { foreignOffRequests, isOffRequested, isOwnedWithoutOffRequest } from "../store/host-annotations.ts";
import { judgeHost } from "./judge-host.ts";
import { hostText, powerPathOf, powerOffRefusal } from "../store/power-path.ts";
import type { PowerReader } from "./power-reader.ts";
import type { HostOwner } from "../../../machine/model/facts/host-facts.ts";

export interface HostPowerDeps {
  runtime: KubeRuntime;
  ref: FencedHost["ref"];
  /** The remediation that gives the orders; undefined for a caller that only reads. */
  owner: HostOwner | undefined;
  /** The watched host; undefined if it is gone. */
  watched: () => BareMetalHost | undefined;
  /** Another host that was inspected with the same serial number, if there is one now. */
  sameSerial: () => BareMetalHost | undefined;
}

/** How much of an error message of the operator is repeated. */
const ERROR_LENGTH_MAX = 200;

/**
 * A host that its operator powers. ironfence asks the operator by an annotation, and sends no order to the BMC:
 * `forceOff` adds the annotation, `on` removes it, and `readPower` shows the result. Off counts only while our
 * annotation is present, because the operator powers the host on as soon as it is not.
 */
export class OperatorPower implements HostPower {
  readonly #deps: HostPowerDeps;
  readonly #reader: PowerReader;
  /** The newest state of the host that this process knows: its own writes may not have been watched yet. */
  #known: BareMetalHost;

  constructor(deps: HostPowerDeps, reader: PowerReader, host: BareMetalHost) {
    this.#deps = deps;
    this.#reader = reader;
    this.#known = host;
  }

  verifyIdentity(node: Node | undefined, signal: AbortSignal): Promise<IdentityCheck> {
    return asDevice(this.#known, () => this.#reader.verify(node, signal));
  }

  async readPower(signal: AbortSignal): Promise<PowerReading> {
    const reading = await asDevice(this.#known, () => this.#reader.read(signal));
    const host = this.#newest();
    const { owner } = this.#deps;
    if (owner === undefined) return reading;
    const isRequested = isOffRequested(host, owner);
    if (reading.state === (isRequested ? "Off" : "On")) return reading;
    const state = reading.state === "Off" ? "Changing" : reading.state;
    return { state, raw: `${reading.raw}; ${operatorText(host, isRequested)}` };
  }

  /** There is one device: the operator. */
  async readWhole(signal: AbortSignal): Promise<WholeReading> {
    const reading = await this.readPower(signal);
    return { ...reading, runs: reading.state === "On" };
  }

  async forceOff(signal: AbortSignal, check?: OrderCheck): Promise<void> {
    const { runtime, ref } = this.#deps;
    const owner = requireOwner(this.#deps, this.#known);
    await this.#reader.requireVerified(signal);
    const uuid = this.#reader.systemUUID;
    const request = (bounded: AbortSignal): Promise<BareMetalHost> =>
      requestOff(runtime, ref, owner, uuid, bounded, check);
    // A write that is cut off may have been stored, so it ends like a timeout.
    this.#known = await asDevice(this.#known, () => inTime(runtime, this.#known, check, signal, request));
  }

  async on(signal: AbortSignal): Promise<void> {
    const { runtime, ref } = this.#deps;
    const owner = requireOwner(this.#deps, this.#known);
    this.#known = await asDevice(this.#known, () => withdrawOffRequests(runtime, ref, owner, signal));
  }

  /** @throws BmcError Unsupported for a network boot: the operator installs its hosts itself. */
  setBootOverride(override: BootOverride): Promise<void> {
    if (override === "None") return Promise.resolve();
    const message = `${hostText(this.#known)} is installed by its operator, not by a network boot: use via BareMetalHost or MachineDeletion, or detach it`;
    return Promise.reject(new BmcError("Unsupported", message));
  }

  readBootOverride(): Promise<BootOverride> {
    return Promise.resolve("None");
  }

  async readEvidence(signal: AbortSignal): Promise<BmcEvidence | undefined> {
    return this.#reader.readEvidence?.(signal);
  }

  /** The operator has no such request, and ironfence sends no order to a BMC that another operator drives. */
  async sendNmi(): Promise<OnceAnswer> {
    return { outcome: "NotSent", message: `${hostText(this.#known)} is powered by its operator, which sends no NMI` };
  }

  close(): Promise<void> {
    return this.#reader.close();
  }

  #newest(): BareMetalHost {
    const watched = this.#deps.watched();
    const isNewer =
      watched !== undefined && isLaterVersion(watched.metadata.resourceVersion, this.#known.metadata.resourceVersion);
    if (isNewer) this.#known = watched;
    return this.#known;
  }
}

/**
 * A host that its operator has detached: ironfence uses its BMC like the devices of a FencingTarget. An earlier request
 * to the operator is removed with the On. Otherwise the operator would keep the host off when it takes the host back.
 */
export class DirectPower implements HostPower {
  readonly #deps: HostPowerDeps;
  readonly #topology: Topology;
  readonly #host: BareMetalHost;

  constructor(deps: HostPowerDeps, topology: Topology, host: BareMetalHost) {
    this.#deps = deps;
    this.#topology = topology;
    this.#host = host;
  }

  verifyIdentity(node: Node | undefined, signal: AbortSignal): Promise<IdentityCheck> {
    return this.#topology.verify((answers) => judgeFirst(this.#host, node, answers, this.#deps.sameSerial()), signal);
  }

  readPower(signal: AbortSignal): Promise<PowerReading> {
    return this.#topology.readPower(signal);
  }

  readWhole(signal: AbortSignal): Promise<WholeReading> {
    return this.#topology.readWhole(signal);
  }

  async forceOff(signal: AbortSignal, check?: OrderCheck): Promise<void> {
    const { runtime, ref } = this.#deps;
    requireOwner(this.#deps, this.#host);
    const read = (bounded: AbortSignal): Promise<BareMetalHost> => readHost(runtime, ref, bounded);
    const current = await asDevice(this.#host, () => inTime(runtime, this.#host, check, signal, read)).catch(
      (error: unknown) => {
        // Nothing was sent yet.
        throw error instanceof DeadlineError ? new OrderNotDueError(error.message, true, { cause: error }) : error;
      },
    );
    const refusal = powerOffRefusal(current);
    if (refusal !== undefined) throw refusal;
    if (powerPathOf(current) !== "Direct") {
      throw new HostRefusal(
        "HostDetaching",
        `the operator has taken ${hostText(current)} back, and powers it from now on`,
      );
    }
    check?.ensureDue();
    await this.#topology.forceOff(signal, check?.obstacle);
  }

  async on(signal: AbortSignal, options?: OnOptions): Promise<void> {
    const { runtime, ref } = this.#deps;
    const owner = requireOwner(this.#deps, this.#host);
    const withdraw = (bounded: AbortSignal): Promise<unknown> => withdrawOffRequests(runtime, ref, owner, bounded);
    if (this.#hasNothingToWithdraw(owner)) await asDevice(this.#host, () => this.#tryTo(withdraw, signal));
    else await asDevice(this.#host, () => withdraw(signal));
    await this.#topology.on(signal, options);
  }

  /** Makes an API call that an On does not need. If there is no answer in time, the On continues without it. */
  async #tryTo(call: (signal: AbortSignal) => Promise<unknown>, signal: AbortSignal): Promise<void> {
    const { runtime } = this.#deps;
    try {
      await withDeadline(runtime.clock, `reading ${hostText(this.#host)}`, ON_CHECK_MAX_MS, signal, call);
    } catch (error) {
      if (signal.aborted) throw abortReason(signal);
      const isUnread = error instanceof DeadlineError || (isKubeError(error) && !isKubeError(error, "NotFound"));
      if (!isUnread) throw error;
      runtime.logger.warn({ host: hostText(this.#host), err: error }, "BareMetalHost not read before a power-on");
    }
  }

  /**
   * Whether the known state of the host shows that it is detached and has no off request of ironfence. An On then needs
   * no read.
   */
  #hasNothingToWithdraw(owner: HostOwner): boolean {
    const host = this.#deps.watched() ?? this.#host;
    return powerPathOf(host) === "Direct" && isOwnedWithoutOffRequest(host, owner);
  }

  setBootOverride(override: BootOverride, signal: AbortSignal): Promise<void> {
    return this.#topology.setBootOverride(override, signal);
  }

  readBootOverride(signal: AbortSignal): Promise<BootOverride> {
    return this.#topology.readBootOverride(signal);
  }

  close(): Promise<void> {
    return this.#topology.close();
  }
}

/** Bounds an API call by the time in which its power-off must be sent. */
function inTime<T>(
  runtime: KubeRuntime,
  host: BareMetalHost,
  check: OrderCheck | undefined,
  signal: AbortSignal,
  call: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  if (check === undefined) return call(signal);
  check.ensureDue();
  return withDeadline(runtime.clock, `the power-off of ${hostText(host)}`, check.leftMs(), signal, call);
}

/** The judge of a host with one device. */
export function judgeFirst(
  host: BareMetalHost,
  node: Node | undefined,
  answers: Parameters<Parameters<Topology["verify"]>[0]>[0],
  sameSerial: BareMetalHost | undefined,
): IdentityCheck {
  const [answer] = answers;
  return answer === undefined
    ? { verified: false, reason: "Unknown", message: `${hostText(host)} has no device` }
    : judgeHost(host, node, answer, sameSerial);
}

/** What the operator was asked for, what it reports, and what else keeps the host off. */
function operatorText(host: BareMetalHost, isRequested: boolean): string {
  const { poweredOn, errorType, errorMessage = "", online, paused } = host;
  const asked = isRequested ? "has been asked to keep it off" : "must power it on";
  const others = foreignOffRequests(host);
  return [
    `the operator of ${hostText(host)} ${asked}, and reports poweredOn ${poweredOn ?? "nothing"}`,
    ...(errorType === undefined ? [] : [`${errorType}: ${errorMessage.slice(0, ERROR_LENGTH_MAX)}`]),
    ...(paused ? ["it is paused"] : []),
    ...(isRequested || online ? [] : ["spec.online is false"]),
    ...(isRequested || others.length === 0
      ? []
      : [`${others.join(", ")}, which ironfence does not remove, keeps it off as well`]),
  ].join("; ");
}

function requireOwner({ owner }: HostPowerDeps, host: BareMetalHost): HostOwner {
  if (owner !== undefined) return owner;
  throw new HostRefusal("NotTheOwner", `${hostText(host)} is powered only for a remediation that owns it`);
}

/** What a failed API call means for an order. It depends on whether the call may have been carried out. */
const AS_DEVICE: Partial<Record<KubeErrorCode, BmcErrorCode>> = {
  Network: "Timeout",
  Timeout: "Timeout",
  NotFound: "Unreachable",
  Unauthorized: "PrivilegeTooLow",
  Forbidden: "PrivilegeTooLow",
  Conflict: "Busy",
  TooManyRequests: "Busy",
  Unavailable: "Busy",
};

/** Here the API server controls the power of the host, so its failures are those of a device. */
async function asDevice<T>(host: BareMetalHost, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (!isKubeError(error) || error.code === "Aborted") throw error;
    const code = AS_DEVICE[error.code] ?? "Refused";
    const message = `${hostText(host)} cannot be read or changed: ${error.message}`;
    throw new BmcError(code, message, { cause: error });
  }
}
