import { createSecretKey } from "node:crypto";
import { fruImage } from "../ipmi-mock/fru-image.ts";
import { must } from "./target.ts";
import type { FuzzTarget } from "./target.ts";
import { parseBootFlags, parseChassisStatus } from "../../src/bmc/ipmi/commands/chassis.ts";
import { CIPHER_SUITES, keyedHash } from "../../src/bmc/ipmi/packets/cipher-suite.ts";
import type { CipherSuite } from "../../src/bmc/ipmi/packets/cipher-suite.ts";
import {
  areaBytes,
  AREA_BYTES_MAX,
  parseChassisArea,
  parseFruData,
  parseFruHeader,
  parseFruInfo,
  parseProductArea,
} from "../../src/bmc/ipmi/commands/fru.ts";
import { parseSystemGuid } from "../../src/bmc/ipmi/commands/guid.ts";
import { encodeRequest, encodeResponse, parseRequest, parseResponse } from "../../src/bmc/ipmi/packets/message.ts";
import { parseOpenResponse, PRIVILEGE } from "../../src/bmc/ipmi/packets/open-session.ts";
import {
  parseRakp2,
  parseRakp4,
  provesPassword,
  provesSessionKey,
  userKeyOf,
} from "../../src/bmc/ipmi/packets/rakp.ts";
import type { Console } from "../../src/bmc/ipmi/packets/rakp.ts";
import {
  DATAGRAM_BYTES_MAX,
  encodePlus,
  encodeSessionless,
  parsePacket,
  PAYLOAD,
} from "../../src/bmc/ipmi/packets/rmcp.ts";
import { deriveKeys, seal, unseal } from "../../src/bmc/ipmi/packets/sealed.ts";
import type { SessionKeys } from "../../src/bmc/ipmi/packets/sealed.ts";
import { Secret } from "../../src/runtime/secret.ts";

// Fuzzes every parser of the IPMI driver: those of plain datagrams, which any machine on the network can send, and
// those of sealed datagrams, which only a BMC that knows the password can send.

const STATUS_REQUEST = { netFn: 0x00, command: 0x01, data: [] };
const SEQUENCE = 5;
const STATUS_OFF = encodeResponse({ ...STATUS_REQUEST, sequence: SEQUENCE }, 0, [0x60, 0, 0]);
const TAG = 7;
const CONSOLE_SESSION_ID = 0x11223344;
const SOME_KEY = createSecretKey(Buffer.alloc(20, 8));
/** Session keys of the cipher suites that authenticate messages. */
const KEYS: readonly SessionKeys[] = Object.values(CIPHER_SUITES)
  .filter(({ authenticates }) => authenticates)
  .map((suite) => deriveKeys(suite, createSecretKey(Buffer.alloc(20, 9))));

function consoleOf(suite: CipherSuite): Console {
  return {
    suite,
    privilege: PRIVILEGE.administrator,
    username: Buffer.from("fence"),
    userKey: userKeyOf(new Secret("fuzzed")),
    consoleSessionId: CONSOLE_SESSION_ID,
    bmcSessionId: 0x55667788,
    random: Buffer.alloc(16, 1),
  };
}

/** The first bytes of an answer in the handshake: message tag, status, and the session id of the client. */
const HANDSHAKE_HEAD = Buffer.from([TAG, 0, 4, 0, 0x44, 0x33, 0x22, 0x11]);
const OPENED = [17, 3].map((id) => {
  const { algorithms } = CIPHER_SUITES[id as 3 | 17];
  const blocks = algorithms.flatMap((algorithm, type) => [type, 0, 0, 8, algorithm, 0, 0, 0]);
  return Buffer.concat([HANDSHAKE_HEAD, Buffer.from([1, 2, 3, 4, ...blocks])]);
});

const datagrams: FuzzTarget = {
  name: "ipmi datagram",
  seeds: [
    encodeSessionless(encodeRequest({ netFn: 6, command: 0x38, data: [0x8e, 4] }, 1)),
    ...KEYS.map((keys) => seal(keys, { sessionId: CONSOLE_SESSION_ID, sequence: 1 }, STATUS_OFF)),
  ],
  run: (input) => {
    const packet = parsePacket(input);
    if (packet === undefined) return;
    must(input.length <= DATAGRAM_BYTES_MAX, "a datagram above the bound is not looked at");
    must(packet.payload.length < input.length, "a payload is smaller than its datagram");
    parseRequest(packet.payload);
    parseResponse(packet.payload, STATUS_REQUEST, SEQUENCE);
  },
};

/** The offset from which a sealed datagram is authenticated: after the RMCP header. */
const SEALED_FROM = 4;
const sealed: FuzzTarget = {
  name: "ipmi sealed message",
  seeds: datagrams.seeds,
  run: (input) => {
    const packet = parsePacket(input);
    if (packet?.version !== "2.0") return;
    for (const [index, keys] of KEYS.entries()) {
      const opened = unseal(keys, input, packet);
      if ("rejected" in opened) continue;
      const sent = sealed.seeds[index + 1] ?? Buffer.alloc(0);
      must(input.subarray(SEALED_FROM).equals(sent.subarray(SEALED_FROM)), "what was not sealed is not opened");
    }
  },
};

/** Answers of a BMC that knows the keys and encrypts wrongly. */
const ciphertexts: FuzzTarget = {
  name: "ipmi ciphertext",
  seeds: KEYS.map((keys) => {
    const packet = parsePacket(seal(keys, { sessionId: 1, sequence: 1 }, STATUS_OFF));
    return packet?.payload ?? Buffer.alloc(0);
  }),
  run: (input) => {
    for (const keys of KEYS) {
      const encrypted = keys.suite.encrypts;
      const header = { payloadType: PAYLOAD.ipmi, encrypted, authenticated: true, sessionId: 1, sequence: 1 };
      const covered = Buffer.concat([encodePlus(header, input.subarray(0, 900)), Buffer.from([0, 7])]);
      const code = keyedHash(keys.suite, keys.integrity, covered.subarray(SEALED_FROM));
      const datagram = Buffer.concat([covered, code.subarray(0, keys.suite.integrityCodeBytes)]);
      const packet = parsePacket(datagram);
      if (packet?.version !== "2.0") throw new Error("it must be true that our own datagram can be taken apart");
      const opened = unseal(keys, datagram, packet);
      if ("message" in opened) parseResponse(opened.message, STATUS_REQUEST, SEQUENCE);
    }
  },
};

/** Answers of a BMC that knows the keys and sends arbitrary messages. */
const messages: FuzzTarget = {
  name: "ipmi message",
  seeds: [STATUS_OFF, encodeRequest(STATUS_REQUEST, SEQUENCE)],
  run: (input) => {
    parseRequest(input);
    const response = parseResponse(input, STATUS_REQUEST, SEQUENCE);
    if (response === undefined) return;
    const reading = parseChassisStatus(response.data);
    if (reading?.state === "Off") must((response.data.readUInt8(0) & 1) === 0, "only the power bit makes an Off");
  },
};

const openResponses: FuzzTarget = {
  name: "ipmi open session response",
  seeds: [...OPENED, Buffer.from([0x11]), Buffer.from([TAG, 0x11]), HANDSHAKE_HEAD],
  run: (input) => {
    for (const id of [17, 3] as const) {
      const asked = { tag: TAG, consoleSessionId: CONSOLE_SESSION_ID, suite: CIPHER_SUITES[id] };
      const answer = parseOpenResponse(input, asked);
      if (answer?.kind === "Opened") must(answer.bmcSessionId !== 0, "a session has an id");
      if (answer?.kind === "Refused") must(answer.status !== 0, "a refusal has a status");
    }
  },
};

const rakp: FuzzTarget = {
  name: "ipmi rakp 2 and 4",
  seeds: [20, 32, 12, 16].flatMap((codeBytes) => [
    Buffer.concat([HANDSHAKE_HEAD, Buffer.alloc(32, 3), Buffer.alloc(codeBytes, 4)]),
    Buffer.concat([HANDSHAKE_HEAD, Buffer.alloc(codeBytes, 4)]),
  ]),
  run: (input) => {
    for (const suite of Object.values(CIPHER_SUITES)) {
      const console = consoleOf(suite);
      const bmc = parseRakp2(input, TAG, console);
      if (bmc?.kind === "Answered")
        must(!provesPassword(console, bmc, bmc.code), "no client proves a password by chance");
      const end = parseRakp4(input, TAG, console);
      if (end?.kind !== "Answered") continue;
      const other = { random: Buffer.alloc(16, 5), guid: Buffer.alloc(16, 6) };
      must(!provesSessionKey(console, other, SOME_KEY, end.code), "no client proves a key by chance");
    }
  },
};

const inventory = fruImage({ systemUUID: "", manufacturer: "Maker", model: "R1", serialNumber: "SN-42" });
const host: FuzzTarget = {
  name: "ipmi host data",
  seeds: [
    inventory,
    inventory.subarray(8),
    inventory.subarray(inventory.readUInt8(4) * 8),
    inventory.subarray(0, 8),
    Buffer.from([1, 5, 0xa0, 4, 0, 0, 0]),
    Buffer.from("44454c4c420010358051b4c04f4e3732", "hex"),
  ],
  run: (input) => {
    const info = parseFruInfo(input);
    if (info !== undefined) {
      const data = parseFruData(info, input.subarray(2), 32);
      must((data?.length ?? 0) <= 32, "no more of an inventory is taken than was asked for");
    }
    parseFruHeader(input);
    must(areaBytes(input) <= AREA_BYTES_MAX, "an area is bounded");
    for (const text of Object.values({ ...parseChassisArea(input), ...parseProductArea(input) })) {
      must(/^[\x20-\x7e]{1,256}$/.test(text), "a field of the inventory is short and printable");
    }
    parseBootFlags(input);
    parseChassisStatus(input);
    const uuid = parseSystemGuid(input);
    if (uuid !== undefined) must(/^[0-9a-f-]{36}$/.test(uuid), "a GUID is written as a UUID");
  },
};

export const IPMI_TARGETS: readonly FuzzTarget[] = [
  datagrams,
  sealed,
  ciphertexts,
  messages,
  openResponses,
  rakp,
  host,
];
