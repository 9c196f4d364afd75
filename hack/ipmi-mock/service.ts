import type { KeyObject } from "node:crypto";
import { CIPHER_SUITES } from "../../src/bmc/ipmi/packets/cipher-suite.ts";
import type { CipherSuiteId } from "../../src/bmc/interface/cipher-suites.ts";
import { parseRequest } from "../../src/bmc/ipmi/packets/message.ts";
import type { Request } from "../../src/bmc/ipmi/packets/message.ts";
import { parsePacket, PAYLOAD } from "../../src/bmc/ipmi/packets/rmcp.ts";
import type { Packet } from "../../src/bmc/ipmi/packets/rmcp.ts";
import { unseal } from "../../src/bmc/ipmi/packets/sealed.ts";
import type { Clock } from "../../src/runtime/clock.ts";
import type { Random } from "../../src/runtime/random.ts";
import type { Secret } from "../../src/runtime/secret.ts";
import type { Bmc } from "../rack/bmc.ts";
import { runCommand, stepOf, systemGuid } from "./commands.ts";
import type { CommandAnswer } from "./commands.ts";
import type { FaultAction, Step } from "./faults.ts";
import type { Reply } from "./reply.ts";
import { activate, isRakp3Code, padded, rakp2Code, SessionTable } from "./sessions.ts";
import type { MockSession } from "./sessions.ts";

const STATUS_NO_SESSION_FREE = 0x01;
const STATUS_INVALID_SESSION_ID = 0x02;
const STATUS_UNAUTHORIZED_ROLE = 0x0a;
const STATUS_UNAUTHORIZED_NAME = 0x0d;
const STATUS_WRONG_INTEGRITY_CODE = 0x0f;
const STATUS_NO_SUCH_SUITE = 0x11;
const LEVEL_TOO_HIGH = 0x81;
const INVALID_SESSION_ID = 0x87;

export interface IpmiServiceOptions {
  clock: Clock;
  random: Random;
  bmc: Bmc;
  username: string;
  password: Secret;
  /** The BMC key K_G, if it has one. */
  bmcKey: Secret | undefined;
  /** Highest privilege level of the user. */
  privilegeMax: number;
  suites: readonly CipherSuiteId[];
  sessionsMax: number;
}

/** A parsed request that has not taken effect yet. */
export interface Task {
  step: Step;
  /** The command's data, or the payload of a handshake step. */
  data: readonly number[];
  /** Accepts the request. Returns false if its session sequence number was received before. */
  accept(): boolean;
  /** Runs the request. @param fault may replace the effect. @returns undefined if the BMC does not answer. */
  run(fault: FaultAction | undefined): Reply | undefined;
}

type PlusPacket = Extract<Packet, { version: "2.0" }>;

/** Handles received datagrams as IPMI 2.0 specifies. */
export class IpmiService {
  readonly sessions: SessionTable;
  readonly #options: IpmiServiceOptions;
  readonly #userKey: KeyObject;
  /** The key from which session keys are derived. */
  readonly #sessionsKey: KeyObject;

  constructor(options: IpmiServiceOptions) {
    this.#options = options;
    this.#userKey = padded(options.password);
    this.#sessionsKey = options.bmcKey === undefined ? this.#userKey : padded(options.bmcKey);
    this.sessions = new SessionTable(options, options.sessionsMax);
  }

  /** @returns undefined if a BMC would silently drop the datagram, because it is damaged or belongs to no session. */
  understand(datagram: Buffer): Task | undefined {
    const packet = parsePacket(datagram);
    if (packet === undefined) return undefined;
    if (packet.version === "1.5") return this.#outsideSession(packet.payload, "1.5");
    const task = (step: Step, run: Task["run"]): Task => ({ step, data: [...packet.payload], accept: always, run });
    switch (packet.payloadType) {
      case PAYLOAD.openRequest:
        return packet.payload.length < 32 ? undefined : task("OpenSession", () => this.#open(packet.payload));
      case PAYLOAD.rakp1:
        return packet.payload.length < 28 ? undefined : task("RAKP1", () => this.#rakp1(packet.payload));
      case PAYLOAD.rakp3:
        return packet.payload.length < 8 ? undefined : task("RAKP3", () => this.#rakp3(packet.payload));
      case PAYLOAD.ipmi:
        if (packet.sessionId === 0) return this.#outsideSession(packet.payload, "2.0");
        return this.#inSession(datagram, packet);
      default:
        return undefined;
    }
  }

  #outsideSession(payload: Buffer, version: "1.5" | "2.0"): Task | undefined {
    const request = parseRequest(payload);
    if (request?.netFn !== 0x06) return undefined;
    const answer = (step: Step, data: readonly number[]): Task => ({
      step,
      data: request.data,
      accept: always,
      run: (fault) => ({
        kind: "sessionless",
        version,
        request,
        ...answerOf(fault, () => ({ completionCode: 0, data })),
      }),
    });
    // Channel 1; "IPMI 2.0 data follow"; K_G, per-message authentication, non-null user names; versions 1.5 and 2.0 are
    // known.
    if (request.command === 0x38) {
      const flags = 0x04 | (this.#options.bmcKey === undefined ? 0 : 0x20);
      return answer("GetChannelAuthenticationCapabilities", [1, 0x80, flags, 0x02, 0, 0, 0, 0]);
    }
    if (request.command !== 0x54) return undefined;
    const isFirst = ((request.data[2] ?? 0) & 0x3f) === 0;
    const records = this.#options.suites.flatMap((id) => {
      const [authentication, integrity, confidentiality] = CIPHER_SUITES[id].algorithms;
      return [0xc0, id, authentication, 0x40 | integrity, 0x80 | confidentiality];
    });
    return answer("GetChannelCipherSuites", [1, ...(isFirst ? records : [])]);
  }

  #open(payload: Buffer): Reply {
    const [tag = 0, privilege = 0] = payload;
    const consoleId = payload.readUInt32LE(4);
    const refuse = (status: number): Reply => refusal(PAYLOAD.openResponse, tag, status, consoleId);
    const asked = [12, 20, 28].map((offset) => payload.readUInt8(offset) & 0x3f);
    const suite = this.#options.suites
      .map((id) => CIPHER_SUITES[id])
      .find(({ algorithms }) => algorithms.every((algorithm, index) => algorithm === asked[index]));
    if (suite === undefined) return refuse(STATUS_NO_SUCH_SUITE);
    const privilegeMax = (privilege & 0x0f) === 0 ? 4 : privilege & 0x0f;
    const session = this.sessions.open({ consoleId, suite, privilegeMax });
    if (session === undefined) return refuse(STATUS_NO_SESSION_FREE);
    const head = Buffer.from([tag, 0, privilegeMax, 0, ...id(consoleId), ...id(session.bmcId)]);
    const algorithms = suite.algorithms.flatMap((algorithm, type) => [type, 0, 0, 8, algorithm, 0, 0, 0]);
    return { kind: "handshake", type: PAYLOAD.openResponse, payload: Buffer.concat([head, Buffer.from(algorithms)]) };
  }

  #rakp1(payload: Buffer): Reply {
    const tag = payload.readUInt8(0);
    const session = this.sessions.use(payload.readUInt32LE(4));
    if (session === undefined) return refusal(PAYLOAD.rakp2, tag, STATUS_INVALID_SESSION_ID, 0);
    const { random, username, privilegeMax, bmc } = this.#options;
    const shake = {
      consoleRandom: Buffer.from(payload.subarray(8, 24)),
      bmcRandom: Buffer.from(random.bytes(16)),
      guid: systemGuid(bmc),
      role: payload.readUInt8(24),
      username: Buffer.from(payload.subarray(28, 28 + payload.readUInt8(27))),
    };
    const refuse = (status: number): Reply => {
      this.sessions.close(session);
      return refusal(PAYLOAD.rakp2, tag, status, session.consoleId);
    };
    if (!shake.username.equals(Buffer.from(username))) return refuse(STATUS_UNAUTHORIZED_NAME);
    if ((shake.role & 0x0f) > privilegeMax) return refuse(STATUS_UNAUTHORIZED_ROLE);
    session.handshake = shake;
    const code = rakp2Code(session, shake, this.#userKey);
    const head = Buffer.from([tag, 0, 0, 0, ...id(session.consoleId)]);
    const answer = Buffer.concat([head, shake.bmcRandom, shake.guid, code]);
    return { kind: "handshake", type: PAYLOAD.rakp2, payload: answer };
  }

  #rakp3(payload: Buffer): Reply | undefined {
    const [tag = 0, status = 0] = payload;
    const session = this.sessions.use(payload.readUInt32LE(4));
    if (session === undefined) return refusal(PAYLOAD.rakp4, tag, STATUS_INVALID_SESSION_ID, 0);
    if (status !== 0) {
      this.sessions.close(session);
      return undefined;
    }
    const shake = session.handshake;
    if (shake === undefined || !isRakp3Code(payload.subarray(8), session, shake, this.#userKey)) {
      this.sessions.close(session);
      return refusal(PAYLOAD.rakp4, tag, STATUS_WRONG_INTEGRITY_CODE, session.consoleId);
    }
    const { keys, code } = activate(session, shake, this.#sessionsKey);
    session.keys = keys;
    const head = Buffer.from([tag, 0, 0, 0, ...id(session.consoleId)]);
    return { kind: "handshake", type: PAYLOAD.rakp4, payload: Buffer.concat([head, code]) };
  }

  #inSession(datagram: Buffer, packet: PlusPacket): Task | undefined {
    const session = this.sessions.use(packet.sessionId);
    if (session?.keys === undefined) return undefined;
    const opened = unseal(session.keys, datagram, packet);
    if ("rejected" in opened) return undefined;
    const request = parseRequest(opened.message);
    if (request === undefined) return undefined;
    return {
      step: stepOf(request),
      data: request.data,
      accept: () => session.received.accept(packet.sequence),
      run: (fault) => ({
        kind: "message",
        session,
        request,
        ...answerOf(fault, () => this.#command(session, request)),
      }),
    };
  }

  #command(session: MockSession, request: Request): CommandAnswer {
    const step = stepOf(request);
    if (step === "SetSessionPrivilegeLevel") {
      const [level = 0] = request.data;
      const highest = Math.min(session.privilegeMax, this.#options.privilegeMax);
      if (level > highest) return { completionCode: LEVEL_TOO_HIGH, data: [] };
      if (level !== 0) session.privilege = level;
      return { completionCode: 0, data: [session.privilege] };
    }
    if (step === "CloseSession") {
      const isOurs = Buffer.from(request.data).equals(Buffer.from(id(session.bmcId)));
      if (isOurs) this.sessions.close(session);
      return { completionCode: isOurs ? 0 : INVALID_SESSION_ID, data: [] };
    }
    return runCommand(this.#options.bmc, request, session.privilege);
  }
}

const always = (): boolean => true;

/** The answer to a command, unless a fault replaces its effect. */
function answerOf(fault: FaultAction | undefined, run: () => CommandAnswer): CommandAnswer {
  if (fault?.type === "completionCode") return { completionCode: fault.completionCode, data: [] };
  if (fault?.type === "data") return { completionCode: 0, data: fault.data };
  return run();
}

function refusal(type: number, tag: number, status: number, consoleId: number): Reply {
  return { kind: "handshake", type, payload: Buffer.from([tag, status, 0, 0, ...id(consoleId)]) };
}

function id(value: number): readonly number[] {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return [...bytes];
}
