import { readStatus, statusOids } from "./outlet-status.ts";
import type { OutletStatus } from "./outlet-status.ts";
import { requireUsable, SnmpSession } from "./session/session.ts";
import { oidOf, OUTLET_TABLES, requireIndex, tableOf } from "./tables/tables.ts";
import type { OutletTable } from "./tables/table.ts";
import { shown } from "./session/values.ts";
import type { BmcGate } from "../gate/bmc-gate.ts";
import { limitedCall } from "../gate/limits/limited-call.ts";
import type { HostIdentity } from "../identity/host-identity.ts";
import type { SnmpAddress } from "../interface/address.ts";
import type { BmcCredentials } from "../interface/credentials.ts";
import type { DeviceConfig, SnmpConfig } from "../interface/device-config.ts";
import type {
  BootOverride,
  DeviceDeps,
  OffObstacle,
  OutletIdentity,
  PowerDriver,
  PowerReading,
} from "../interface/driver.ts";
import { BmcError } from "../interface/errors.ts";

/** How many calls to the outlets of one PDU run at once: its controller is small. */
const CALLS_AT_ONCE_MAX = 2;

const SYS_OBJECT_ID = "1.3.6.1.2.1.1.2.0";

/**
 * Drives one outlet of a switched PDU over SNMP. Off is the state that the PDU shows together with a meter at 0, if the
 * outlet has one. Only a caller that knows which host the outlet feeds may use it.
 */
export class SnmpDriver implements PowerDriver {
  readonly address: string;
  readonly hasNoBootOverride = true;
  readonly #address: SnmpAddress;
  readonly #login: BmcCredentials;
  readonly #config: SnmpConfig;
  readonly #callTimeoutMs: number;
  readonly #gate: BmcGate;
  readonly #deps: DeviceDeps;
  #session: SnmpSession | undefined;
  #isClosed = false;
  #table: OutletTable | undefined;
  /** The outlet that the last `identify` or `identifyOutlet` found. */
  #own: Pick<OutletStatus, "pdu" | "outlet"> | undefined;

  /** @throws BmcError AuthFailed for a login that no PDU accepts. */
  constructor(address: SnmpAddress, config: DeviceConfig, gate: BmcGate, deps: DeviceDeps) {
    this.address = address.text;
    this.#address = address;
    this.#login = { username: config.username, password: config.password };
    this.#config = config.snmp ?? {};
    this.#callTimeoutMs = config.timeouts.callTimeoutMs;
    this.#gate = gate;
    this.#deps = deps;
    requireUsable(this.#login, this.#config);
    const { mib } = this.#config;
    this.#table = mib && OUTLET_TABLES[mib];
  }

  identify(signal: AbortSignal): Promise<HostIdentity> {
    return this.#call("identify", signal, async (what, session, signal) => {
      const { table, status } = await this.#readOwn(what, session, signal, { isNew: true });
      return {
        device: this.address,
        manufacturer: table.vendor,
        model: `outlet ${status.outlet} of ${status.pdu}`,
      };
    });
  }

  identifyOutlet(signal: AbortSignal): Promise<OutletIdentity> {
    return this.#call("identify the outlet", signal, async (what, session, signal) => {
      const { status } = await this.#readOwn(what, session, signal, { isNew: true });
      const { pdu, outlet, label, meter } = status;
      const isMetered = meter.kind !== "none" || this.#wasMetered();
      return { pdu, outlet, ...(label !== undefined && { label }), ...(isMetered && { metered: true as const }) };
    });
  }

  readPower(signal: AbortSignal): Promise<PowerReading> {
    return this.#call("read of the power state", signal, async (what, session, signal) => {
      const { status } = await this.#readOwn(what, session, signal);
      if (this.#isOther(status)) return { state: "Unknown", raw: OTHER_OUTLET };
      const { meter, reading } = status;
      return meter.kind === "value" ? { ...reading, load: meter.value } : reading;
    });
  }

  forceOff(signal: AbortSignal): Promise<void> {
    return this.#order("off", signal);
  }

  on(signal: AbortSignal): Promise<void> {
    return this.#order("on", signal);
  }

  findOffObstacle(signal: AbortSignal): Promise<OffObstacle | undefined> {
    return this.#call("check of a power-off", signal, async (what, session, signal) => {
      const { status } = await this.#readOwn(what, session, signal);
      if (!status.isSwitchable) {
        return { reason: "OffNotOffered", message: `${this.address}: the PDU does not switch this outlet` };
      }
      if (status.meter.kind === "unreadable") {
        const message = `${this.address}: the meter of the outlet shows ${status.meter.raw}, so its Off could not be proven`;
        return { reason: "PowerUnreadable", message };
      }
      if (status.reading.state !== "Unknown") return undefined;
      return { reason: "PowerUnreadable", message: `${this.address}: the outlet shows ${status.reading.raw}` };
    });
  }

  setBootOverride(): Promise<void> {
    return Promise.reject(this.#noBootOverride());
  }

  readBootOverride(): Promise<BootOverride> {
    return Promise.reject(this.#noBootOverride());
  }

  close(): Promise<void> {
    this.#isClosed = true;
    this.#session?.close();
    this.#session = undefined;
    return Promise.resolve();
  }

  #noBootOverride(): BmcError {
    return new BmcError("Unsupported", `${this.address}: an outlet sets no boot override`);
  }

  /**
   * Reads before the order. The read also discovers the SNMP engine and its time, so that the order itself is one
   * datagram.
   */
  #order(order: "off" | "on", signal: AbortSignal): Promise<void> {
    return this.#call(`order ${order}`, signal, async (what, session, signal) => {
      const { table, status } = await this.#readOwn(what, session, signal);
      if (this.#isOther(status)) throw new BmcError("Refused", `${what}: not sent: ${OTHER_OUTLET}`);
      const { value, ...object } = table[order];
      const { isOrderAllowed = (): boolean => true } = this.#deps;
      await session.order(what, { oid: oidOf(object, this.#address.outlet), value }, isOrderAllowed, signal);
    });
  }

  async #readOwn(
    what: string,
    session: SnmpSession,
    signal: AbortSignal,
    { isNew = false } = {},
  ): Promise<{ table: OutletTable; status: OutletStatus }> {
    const { outlet } = this.#address;
    const table = (this.#table ??= await findTable(what, session, signal));
    requireIndex(table, outlet, what);
    const answers = await session.read(what, statusOids(table, outlet), signal);
    const status = readStatus(table, outlet, answers, { what, wasMetered: this.#wasMetered() });
    if (status.meter.kind === "value") this.#gate.memory.meteredOutlets.add(this.#address.key);
    if (isNew) this.#own = status;
    return { table, status };
  }

  #isOther({ pdu, outlet }: OutletStatus): boolean {
    return this.#own !== undefined && (pdu !== this.#own.pdu || outlet !== this.#own.outlet);
  }

  #wasMetered(): boolean {
    return this.#gate.memory.meteredOutlets.has(this.#address.key);
  }

  #call<T>(
    name: string,
    signal: AbortSignal,
    work: (what: string, session: SnmpSession, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const what = `${this.address}: ${name}`;
    const { hostname, port, key } = this.#address;
    const { clock } = this.#deps;
    const bounds = { clock, callLimits: this.#gate.callLimits, what, timeoutMs: this.#callTimeoutMs, key };
    return limitedCall(
      { ...bounds, device: `snmp ${hostname} ${port}`, deviceCallsMax: CALLS_AT_ONCE_MAX },
      signal,
      (signal) => this.#withSession(signal, (session) => work(what, session, signal)),
    );
  }

  /**
   * Calls `work` with the session. After a failure the session is closed, and the next call discovers the SNMP engine
   * again: its time may have changed, or another engine may answer.
   */
  async #withSession<T>(signal: AbortSignal, work: (session: SnmpSession) => Promise<T>): Promise<T> {
    if (this.#isClosed) throw new BmcError("Aborted", `${this.address}: the driver is closed`);
    const session = (this.#session ??= await SnmpSession.open(
      this.#address,
      this.#login,
      this.#config,
      this.#deps.clock,
      signal,
    ));
    try {
      if (this.#isClosed) throw new BmcError("Aborted", `${this.address}: the driver is closed`);
      return await work(session);
    } catch (error) {
      session.close();
      if (this.#session === session) this.#session = undefined;
      throw error;
    }
  }
}

const OTHER_OUTLET =
  "the outlet that answers is not the one that was identified: another outlet or another PDU answers";

async function findTable(what: string, session: SnmpSession, signal: AbortSignal): Promise<OutletTable> {
  const value = (await session.read(what, [SYS_OBJECT_ID], signal)).get(SYS_OBJECT_ID);
  const table = value?.type === "oid" ? tableOf(value.value) : undefined;
  if (table !== undefined) return table;
  const known = Object.values(OUTLET_TABLES).map(({ mib }) => mib);
  const message = `${what}: no table of outlets is known for sysObjectID ${shown(value)}: set snmp.mib to one of ${known.join(", ")}`;
  throw new BmcError("Unsupported", message);
}
