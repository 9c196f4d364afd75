import { createSocket } from "node:dgram";
import type { RemoteInfo } from "node:dgram";
import { at, integer, octets, oid, readAll, readInteger, readOid, tlv, TAG } from "./ber.ts";
import type { Tlv } from "./ber.ts";
import { Faults } from "./faults.ts";
import type { FaultAction, Step } from "./faults.ts";
import { forgedOff, NO_SUCH_INSTANCE, order, valueOf } from "./objects.ts";
import type { SnmpUnit } from "./objects.ts";
import type { OutletStrip } from "./outlets.ts";
import { decrypt, encrypt, localizedKey, macBytes, macOf } from "./usm.ts";
import type { AuthProtocol, EngineTime } from "./usm.ts";
import type { Mib } from "../../src/bmc/interface/mibs.ts";
import type { Clock, Timer } from "../../src/runtime/clock.ts";
import type { Secret } from "../../src/runtime/secret.ts";

/** The mock keeps at most this many requests, and drops the oldest. */
const REQUESTS_MAX = 10_000;
const TIME_WINDOW_S = 150;
const UP_BEFORE_START_MS = 30 * 24 * 3_600_000;
const USM_STATS = "1.3.6.1.6.3.15.1.1";
const NOT_WRITABLE = 17;
const NO_ACCESS = 6;

export interface SnmpUser {
  name: string;
  authProtocol: AuthProtocol;
  password: Secret;
  privPassword?: Secret;
  /** Whether messages without encryption are accepted as well. */
  allowsNoPriv?: boolean;
  isReadOnly?: boolean;
}

export interface SnmpMockOptions {
  clock: Clock;
  mib: Mib;
  strip: OutletStrip;
  serial?: string;
  /** Units that are chained to the first one. */
  units?: readonly SnmpUnit[];
  user: SnmpUser;
  /** Accepts SNMPv2c with this community. */
  community?: Secret;
  /** 0, any free port, by default. */
  port?: number;
}

export interface SeenRequest {
  step: Step;
  version: 1 | 3;
  oids: readonly string[];
}

/** One PDU with an SNMP agent, on 127.0.0.1. */
export interface SnmpMock {
  /** `snmp://127.0.0.1:PORT` */
  readonly address: string;
  /** The serial number that the PDU reports. Tests may change it. */
  serial: string | undefined;
  units: readonly SnmpUnit[];
  readonly requests: readonly SeenRequest[];
  addFault(rule: unknown): unknown;
  clearFaults(): void;
  /**
   * Restarts the controller of the PDU. It does not answer for `downMs` and increments its boot counter. Relays keep
   * their state.
   */
  reboot(downMs: number): void;
  close(): Promise<void>;
}

interface Request {
  version: 1 | 3;
  step: Step;
  pduTag: number;
  requestId: number;
  varbinds: readonly { name: string; value: Tlv }[];
  /** Encodes the answer with the version and security of the request. */
  reply: (pdu: Buffer) => Buffer;
}

/** Starts a PDU. */
export async function startSnmpMock(options: SnmpMockOptions): Promise<SnmpMock> {
  const mock = new Mock(options);
  await mock.listen(options.port ?? 0);
  return mock;
}

class Mock implements SnmpMock {
  readonly #options: SnmpMockOptions;
  readonly #socket = createSocket("udp4");
  readonly #faults = new Faults();
  readonly #timers = new Set<Timer>();
  readonly #engineId: Buffer;
  readonly #authKey: Buffer;
  readonly #privKey: Buffer;
  #requests: SeenRequest[] = [];
  #boots = 7;
  #startedMs: number;
  #silentUntilMs = -Infinity;
  #salt = 0;
  serial: string | undefined;
  units: readonly SnmpUnit[];

  constructor(options: SnmpMockOptions) {
    this.#options = options;
    this.serial = options.serial;
    this.units = options.units ?? [];
    this.#startedMs = options.clock.monotonicMs() - UP_BEFORE_START_MS;
    this.#engineId = Buffer.concat([Buffer.from("8000013e04", "hex"), Buffer.from(options.serial ?? "mock")]);
    const { authProtocol, password, privPassword = password } = options.user;
    this.#authKey = localizedKey(authProtocol, password.reveal(), this.#engineId);
    this.#privKey = localizedKey(authProtocol, privPassword.reveal(), this.#engineId);
  }

  get address(): string {
    return `snmp://127.0.0.1:${this.#socket.address().port}`;
  }

  get requests(): readonly SeenRequest[] {
    return this.#requests;
  }

  listen(port: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#socket.once("error", reject);
      this.#socket.on("message", (datagram, sender) => this.#receive(datagram, sender));
      this.#socket.bind(port, "127.0.0.1", () => resolve());
    });
  }

  addFault(rule: unknown): unknown {
    return this.#faults.add(rule);
  }

  clearFaults(): void {
    this.#faults.clear();
  }

  reboot(downMs: number): void {
    this.#boots += 1;
    this.#silentUntilMs = this.#nowMs() + downMs;
    this.#startedMs = this.#silentUntilMs;
  }

  close(): Promise<void> {
    for (const timer of this.#timers) timer.cancel();
    return new Promise((resolve) => this.#socket.close(() => resolve()));
  }

  #nowMs(): number {
    return this.#options.clock.monotonicMs();
  }

  get #time(): EngineTime {
    return { boots: this.#boots, time: Math.floor((this.#nowMs() - this.#startedMs) / 1_000) };
  }

  #receive(datagram: Buffer, sender: RemoteInfo): void {
    if (this.#nowMs() < this.#silentUntilMs) return;
    const read = readOrReport(() => this.#read(datagram));
    if (read === undefined) return;
    if (Buffer.isBuffer(read)) {
      if (this.#faults.take("discovery")?.type !== "loseRequest") this.#send(read, sender);
      return;
    }
    const { step, version, varbinds } = read;
    this.#requests = [...this.#requests, { step, version, oids: varbinds.map(({ name }) => name) }].slice(
      -REQUESTS_MAX,
    );
    this.#serve(read, this.#faults.take(step), sender);
  }

  #serve(request: Request, fault: FaultAction | undefined, sender: RemoteInfo): void {
    if (fault?.type === "loseRequest") return;
    if (fault?.type === "reboot") {
      this.reboot(fault.downMs);
      return;
    }
    if (fault?.type === "forge") this.#send(this.#forged(request, fault.as), sender);
    const answer = request.reply(this.#answer(request, fault));
    if (fault?.type === "loseAnswer") return;
    if (fault?.type === "delay") {
      const timer = this.#options.clock.schedule(fault.delayMs, () => {
        this.#timers.delete(timer);
        this.#send(answer, sender);
      });
      this.#timers.add(timer);
      return;
    }
    if (fault?.type === "garbage") this.#send(Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n"), sender);
    else if (fault?.type === "truncate") this.#send(answer.subarray(0, answer.length - 9), sender);
    else this.#send(answer, sender);
    if (fault?.type === "duplicate") this.#send(answer, sender);
  }

  #send(datagram: Buffer, { port, address }: RemoteInfo): void {
    this.#socket.send(datagram, port, address, () => undefined);
  }

  /** Executes the request, and returns the protocol data unit of the answer. */
  #answer({ pduTag, requestId, varbinds }: Request, fault: FaultAction | undefined): Buffer {
    const names = varbinds.map(({ name }) => name);
    const echo = varbinds.map(({ name, value }) => ({ name, value: tlv(value.tag, value.content) }));
    if (fault?.type === "errorStatus") return response(requestId, echo, fault.status);
    const facts = {
      ...this.#options,
      serial: this.serial,
      units: this.units,
      engineId: this.#engineId,
      upTimeMs: this.#nowMs() - this.#startedMs,
    };
    if (pduTag === TAG.set) {
      if (this.#options.user.isReadOnly === true) return response(requestId, echo, NO_ACCESS);
      const isDone = varbinds.every(({ name, value }) => order(facts, name, readInteger(value)));
      return response(requestId, echo, isDone ? 0 : NOT_WRITABLE);
    }
    const values = names.map((name) => ({ name, value: distorted(valueOf(facts, name) ?? NO_SUCH_INSTANCE, fault) }));
    if (fault?.type === "fewerValues") values.pop();
    if (fault?.type === "otherObjects") for (const value of values) value.name = `${value.name}.99`;
    return response(requestId, values, 0);
  }

  /** The answer of an attacker who sees the request and knows the format, but no key. */
  #forged(request: Request, as: "plain" | "signed" | "otherEngine" | "report"): Buffer {
    const { mib, strip } = this.#options;
    const { serial, units } = this;
    const facts = { ...this.#options, serial, units, engineId: this.#engineId, upTimeMs: UP_BEFORE_START_MS };
    const values = request.varbinds.map(({ name }) => {
      return { name, value: forgedOff(mib, strip, name) ?? valueOf(facts, name) ?? NO_SUCH_INSTANCE };
    });
    const pdu = response(request.requestId, values, 0);
    const messageId = this.#lastMessageId;
    if (as === "report") return this.#message(messageId, 0, reportPdu(request.requestId, `${USM_STATS}.5.0`));
    const engineId = as === "otherEngine" ? Buffer.from("8000013e04666f72676564", "hex") : this.#engineId;
    return this.#message(messageId, as === "signed" ? 1 : 0, pdu, { engineId, key: Buffer.alloc(32) });
  }

  #lastMessageId = 0;

  /** @returns a Report if the request has to be answered with one. */
  #read(datagram: Buffer): Request | Buffer | undefined {
    const fields = readAll(at(readAll(datagram), 0).content);
    const version = readInteger(at(fields, 0));
    if (version === 1) {
      const { community } = this.#options;
      const given = at(fields, 1).content;
      if (community === undefined || !given.equals(Buffer.from(community.reveal()))) return undefined;
      const reply = (pdu: Buffer): Buffer => tlv(TAG.sequence, integer(1), octets(given), pdu);
      return { version: 1, ...readPdu(at(fields, 2)), reply };
    }
    return version === 3 ? this.#readV3(datagram, fields) : undefined;
  }

  #readV3(datagram: Buffer, fields: readonly Tlv[]): Request | Buffer | undefined {
    const header = readAll(at(fields, 1).content);
    const messageId = readInteger(at(header, 0));
    const flags = at(header, 2).content.readUInt8(0);
    const security = readAll(at(readAll(at(fields, 2).content), 0).content);
    const [engineId, boots, time, name, mac, salt] = [0, 1, 2, 3, 4, 5].map((field) => at(security, field));
    if (engineId === undefined || boots === undefined || time === undefined) return undefined;
    if (name === undefined || mac === undefined || salt === undefined) return undefined;
    this.#lastMessageId = messageId;
    const { user } = this.#options;
    const report = (stat: number, reportFlags = 0): Buffer =>
      this.#message(messageId, reportFlags, reportPdu(0, `${USM_STATS}.${stat}.0`));
    if (!engineId.content.equals(this.#engineId)) return report(4);
    if (name.content.toString() !== user.name) return report(3);
    if ((flags & 1) === 0 || ((flags & 2) === 0 && user.allowsNoPriv !== true)) return report(1);
    const unsigned = Buffer.from(datagram);
    unsigned.fill(0, offsetIn(datagram, mac.content), offsetIn(datagram, mac.content) + mac.content.length);
    if (!macOf(user.authProtocol, this.#authKey, unsigned).equals(mac.content)) return report(5);
    const asked = { boots: readInteger(boots), time: readInteger(time) };
    const now = this.#time;
    if (asked.boots !== now.boots || Math.abs(asked.time - now.time) > TIME_WINDOW_S) return report(2, 1);
    const isEncrypted = (flags & 2) !== 0;
    const body = at(fields, 3);
    let scoped: readonly Tlv[];
    try {
      scoped = isEncrypted
        ? readAll(at(readAll(decrypt(this.#privKey, asked, salt.content, body.content)), 0).content)
        : readAll(body.content);
      const pdu = readPdu(at(scoped, 2));
      return { version: 3, ...pdu, reply: (answer) => this.#message(messageId, flags & 3, answer) };
    } catch (error) {
      if (error instanceof RangeError) return report(6);
      throw error;
    }
  }

  #message(
    messageId: number,
    flags: number,
    pdu: Buffer,
    { engineId, key }: { engineId: Buffer; key: Buffer } = { engineId: this.#engineId, key: this.#authKey },
  ): Buffer {
    const { authProtocol, name } = this.#options.user;
    const { boots, time } = this.#time;
    const scoped = tlv(TAG.sequence, octets(engineId), octets(""), pdu);
    const salt = Buffer.alloc(8);
    salt.writeUInt32BE((this.#salt += 1), 4);
    const isEncrypted = (flags & 2) !== 0;
    const data = isEncrypted ? octets(encrypt(this.#privKey, { boots, time }, salt, scoped)) : scoped;
    const build = (mac: Buffer): Buffer =>
      tlv(
        TAG.sequence,
        integer(3),
        tlv(TAG.sequence, integer(messageId), integer(65_507), octets(Buffer.from([flags])), integer(3)),
        octets(
          tlv(
            TAG.sequence,
            octets(engineId),
            integer(boots),
            integer(time),
            octets(flags === 0 ? "" : name),
            octets(mac),
            octets(isEncrypted ? salt : ""),
          ),
        ),
        data,
      );
    if ((flags & 1) === 0) return build(Buffer.alloc(0));
    return build(macOf(authProtocol, key, build(Buffer.alloc(macBytes(authProtocol)))));
  }
}

function offsetIn(datagram: Buffer, part: Buffer): number {
  return part.byteOffset - datagram.byteOffset;
}

function readOrReport<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

function readPdu(pdu: Tlv): Pick<Request, "step" | "pduTag" | "requestId" | "varbinds"> {
  const fields = readAll(pdu.content);
  const varbinds = readAll(at(fields, 3).content).map(({ content }) => {
    const [name, value] = readAll(content);
    if (name === undefined || value === undefined) throw new RangeError("a varbind of this form");
    return { name: readOid(name), value };
  });
  const step = pdu.tag === TAG.set ? "set" : "get";
  return { step, pduTag: pdu.tag, requestId: readInteger(at(fields, 0)), varbinds };
}

function response(requestId: number, values: readonly { name: string; value: Buffer }[], status: number): Buffer {
  const list = values.map(({ name, value }) => tlv(TAG.sequence, oid(name), value));
  return tlv(
    TAG.response,
    integer(requestId),
    integer(status),
    integer(status === 0 ? 0 : 1),
    tlv(TAG.sequence, ...list),
  );
}

function reportPdu(requestId: number, name: string): Buffer {
  const varbind = tlv(TAG.sequence, oid(name), integer(1, TAG.counter));
  return tlv(TAG.report, integer(requestId), integer(0), integer(0), tlv(TAG.sequence, varbind));
}

function distorted(value: Buffer, fault: FaultAction | undefined): Buffer {
  const tag = value[0] ?? 0;
  if (fault?.type === "noSuchInstance") return NO_SUCH_INSTANCE;
  if (fault?.type === "wrongTypes") return tag === TAG.octets ? integer(2) : octets("2");
  if (fault?.type === "unknownValues" && tag === TAG.integer) return integer(4_711);
  return value;
}
