import { encodeResponse } from "../../src/bmc/ipmi/packets/message.ts";
import type { Request } from "../../src/bmc/ipmi/packets/message.ts";
import { encodePlus, encodeSessionless, PAYLOAD } from "../../src/bmc/ipmi/packets/rmcp.ts";
import { seal } from "../../src/bmc/ipmi/packets/sealed.ts";
import type { Random } from "../../src/runtime/random.ts";
import type { CommandAnswer } from "./commands.ts";
import type { FaultAction } from "./faults.ts";
import type { MockSession } from "./sessions.ts";

type Sequenced = Request & { sequence: number };

/** An answer of a BMC before it is encoded. */
export type Reply =
  | ({ kind: "sessionless"; version: "1.5" | "2.0"; request: Sequenced } & CommandAnswer)
  | { kind: "handshake"; type: number; payload: Buffer }
  | ({ kind: "message"; session: MockSession; request: Sequenced } & CommandAnswer);

const OUTSIDE = { encrypted: false, authenticated: false, sessionId: 0, sequence: 0 };

/** Encodes an answer as a datagram, damaged if a fault says so. */
export function toDatagram(reply: Reply, fault: FaultAction | undefined, random: Random): Buffer {
  const datagram = reply.kind === "handshake" ? handshake(reply.type, reply.payload, fault) : message(reply, fault);
  if (fault?.type === "truncate") return datagram.subarray(0, -fault.bytes);
  if (fault?.type === "pad") return Buffer.concat([datagram, random.bytes(fault.bytes)]);
  if (fault?.type === "garbage") return Buffer.from(random.bytes(fault.bytes));
  return datagram;
}

function handshake(type: number, payload: Buffer, fault: FaultAction | undefined): Buffer {
  const spoilt = Buffer.from(payload);
  switch (fault?.type) {
    case "wrongTag":
      flip(spoilt, 0);
      break;
    case "wrongSessionId":
      flip(spoilt, 4);
      break;
    case "badAuthCode":
      flip(spoilt, spoilt.length - 1);
      break;
    case "otherAlgorithms":
      if (type === PAYLOAD.openResponse && spoilt.length === 36) {
        for (const [index, algorithm] of fault.algorithms.entries()) spoilt[16 + 8 * index] = algorithm;
      }
      break;
    case "status": {
      const status = Buffer.from([spoilt.readUInt8(0), fault.status, 0, 0, ...spoilt.subarray(4, 8)]);
      return encodePlus({ payloadType: type, ...OUTSIDE }, fault.short ? status.subarray(1, 2) : status);
    }
    default:
  }
  return encodePlus({ payloadType: type, ...OUTSIDE }, spoilt);
}

function message(reply: Exclude<Reply, { kind: "handshake" }>, fault: FaultAction | undefined): Buffer {
  const { netFn, command, sequence } = reply.request;
  const named = fault?.type === "wrongTag" ? sequence ^ 1 : sequence;
  const bytes = encodeResponse({ netFn, command, sequence: named }, reply.completionCode, reply.data);
  if (fault?.type === "badChecksum") flip(bytes, bytes.length - 1);
  if (reply.kind === "sessionless") {
    return reply.version === "1.5"
      ? encodeSessionless(bytes)
      : encodePlus({ payloadType: PAYLOAD.ipmi, ...OUTSIDE }, bytes);
  }
  const { session } = reply;
  if (session.keys === undefined) throw new Error("an answer within a session that is not active");
  if (fault?.type !== "staleSequence") session.sent += 1;
  const sessionId = fault?.type === "wrongSessionId" ? (session.consoleId ^ 1) >>> 0 : session.consoleId;
  const at = { sessionId, sequence: session.sent };
  if (fault?.type === "unprotected") {
    return encodePlus({ payloadType: PAYLOAD.ipmi, encrypted: false, authenticated: false, ...at }, bytes);
  }
  const datagram = seal(session.keys, at, bytes);
  if (fault?.type === "badAuthCode") flip(datagram, datagram.length - 1);
  return datagram;
}

function flip(bytes: Buffer, offset: number): void {
  bytes[offset] = bytes.readUInt8(offset) ^ 0x01;
}
