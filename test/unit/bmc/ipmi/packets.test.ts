import assert from "node:assert/strict";
import { createSecretKey, randomBytes } from "node:crypto";
import { test } from "node:test";
import * as fc from "fast-check";
import { CIPHER_SUITES } from "../../../../src/bmc/ipmi/packets/cipher-suite.ts";
import {
  encodeRequest,
  encodeResponse,
  parseRequest,
  parseResponse,
} from "../../../../src/bmc/ipmi/packets/message.ts";
import { DATAGRAM_BYTES_MAX, encodeSessionless, parsePacket } from "../../../../src/bmc/ipmi/packets/rmcp.ts";
import { deriveKeys, seal, unseal } from "../../../../src/bmc/ipmi/packets/sealed.ts";
import type { SessionKeys } from "../../../../src/bmc/ipmi/packets/sealed.ts";
import { SequenceWindow } from "../../../../src/bmc/ipmi/session/sequence-window.ts";

const suites = fc.constantFrom(...Object.values(CIPHER_SUITES).filter(({ authenticates }) => authenticates));
const bytes = (maxLength: number): fc.Arbitrary<Buffer> => fc.uint8Array({ maxLength }).map((it) => Buffer.from(it));
const hex = (text: string): Buffer => Buffer.from(text.replaceAll(/\s/g, ""), "hex");

function open(keys: SessionKeys, datagram: Buffer): ReturnType<typeof unseal> {
  const packet = parsePacket(datagram);
  return packet?.version === "2.0" ? unseal(keys, datagram, packet) : { rejected: "no RMCP+" };
}

test("a request is laid out as the specification has it, with both checksums", () => {
  const request = { netFn: 0x06, command: 0x38, data: [0x8e, 0x04] };
  const wrapped = encodeSessionless(encodeRequest(request, 0));
  assert.deepEqual(wrapped, hex("0600ff07 00 00000000 00000000 09 20 18 c8 81 00 38 8e 04 b5"));
});

test("an RMCP+ datagram is laid out as the specification has it", () => {
  const keys = deriveKeys(CIPHER_SUITES[2], createSecretKey(Buffer.alloc(20, 7)));
  const datagram = seal(
    keys,
    { sessionId: 0x04030201, sequence: 9 },
    encodeRequest({ netFn: 0, command: 1, data: [] }, 5),
  );
  const head = hex("0600ff07 06 40 01020304 09000000 0700 20 00 e0 81 14 01 6a");
  assert.deepEqual(datagram.subarray(0, head.length), head);
  // The part from byte 4 to the next header has a length that is a multiple of 4.
  assert.deepEqual(datagram.subarray(head.length, -12), hex("ffff ff 03 07").subarray(0, 5));
  assert.equal((datagram.length - 12 - 4) % 4, 0);
});

test("a sealed packet is opened again, by the same keys only", () => {
  fc.assert(
    fc.property(suites, bytes(200), fc.nat(), fc.nat(), (suite, message, sessionId, sequence) => {
      const keys = deriveKeys(suite, createSecretKey(randomBytes(20)));
      const datagram = seal(keys, { sessionId, sequence }, message);
      assert.deepEqual(open(keys, datagram), { message });
      assert.ok("rejected" in open(deriveKeys(suite, createSecretKey(randomBytes(20))), datagram));
    }),
  );
});

test("a datagram with any bit changed, or of any other length, is rejected", () => {
  fc.assert(
    fc.property(suites, bytes(40), fc.nat(), fc.nat(7), bytes(20), (suite, message, at, bit, more) => {
      const keys = deriveKeys(suite, createSecretKey(Buffer.alloc(20, 3)));
      const datagram = seal(keys, { sessionId: 1, sequence: 1 }, message);
      const changed = Buffer.from(datagram);
      // The first four bytes are not part of the session.
      const offset = 4 + (at % (datagram.length - 4));
      changed[offset] = changed.readUInt8(offset) ^ (1 << bit);
      assert.ok("rejected" in open(keys, changed));
      assert.ok("rejected" in open(keys, datagram.subarray(0, at % datagram.length)));
      if (more.length > 0) assert.ok("rejected" in open(keys, Buffer.concat([datagram, more])));
    }),
  );
});

test("a suite without message authentication has no trailer, and takes no message that has one, nor one that is encrypted", () => {
  const message = encodeRequest({ netFn: 0, command: 1, data: [] }, 5);
  for (const suite of [CIPHER_SUITES[1], CIPHER_SUITES[15]]) {
    const keys = deriveKeys(suite, createSecretKey(Buffer.alloc(20, 7)));
    const at = { sessionId: 0x04030201, sequence: 9 };
    const datagram = seal(keys, at, message);
    assert.deepEqual(datagram, hex("0600ff07 06 00 01020304 09000000 0700 20 00 e0 81 14 01 6a"));
    assert.deepEqual(open(keys, datagram), { message });
    for (const id of [2, 3, 16, 17] as const) {
      const others = deriveKeys(CIPHER_SUITES[id], createSecretKey(Buffer.alloc(20, 7)));
      assert.ok("rejected" in open(keys, seal(others, at, message)));
      assert.ok("rejected" in open(others, datagram));
    }
  }
});

test("messages of one session are never encrypted alike", () => {
  const keys = deriveKeys(CIPHER_SUITES[17], createSecretKey(Buffer.alloc(32, 1)));
  const at = { sessionId: 1, sequence: 1 };
  assert.notDeepEqual(seal(keys, at, Buffer.alloc(8)), seal(keys, at, Buffer.alloc(8)));
});

test("no datagram makes a parser fail, whatever is in it", () => {
  const header = fc.constantFrom(hex("0600ff0706c0"), hex("0600ff070600"), hex("0600ff0700"), Buffer.alloc(0));
  fc.assert(
    fc.property(header, bytes(1_200), suites, (head, rest, suite) => {
      const datagram = Buffer.concat([head, rest]);
      const packet = parsePacket(datagram);
      if (datagram.length > DATAGRAM_BYTES_MAX) assert.equal(packet, undefined);
      if (packet === undefined) return;
      assert.ok(packet.payload.length <= datagram.length);
      parseRequest(packet.payload);
      parseResponse(packet.payload, { netFn: 6, command: 1, data: [] }, 1);
      const opened = open(deriveKeys(suite, createSecretKey(Buffer.alloc(20))), datagram);
      assert.ok("rejected" in opened);
    }),
    { numRuns: 2_000 },
  );
});

test("an answer is not taken for the answer to another request", () => {
  const request = { netFn: 0x00, command: 0x01, data: [] };
  fc.assert(
    fc.property(
      fc.nat(63),
      fc.nat(255),
      bytes(60),
      fc.nat(10),
      fc.integer({ min: 1, max: 255 }),
      (n, code, data, at, bits) => {
        const answer = encodeResponse({ ...request, sequence: n }, code, [...data]);
        assert.deepEqual(parseResponse(answer, request, n), { completionCode: code, data, checksumsHold: true });
        assert.equal(parseResponse(answer, request, (n + 1) % 64), undefined);
        assert.equal(parseResponse(answer, { ...request, command: 2 }, n), undefined);
        assert.equal(parseResponse(answer, { ...request, netFn: 6 }, n), undefined);
        const changed = Buffer.from(answer);
        const offset = at % answer.length;
        changed[offset] = changed.readUInt8(offset) ^ bits;
        assert.notEqual(parseResponse(changed, request, n)?.checksumsHold, true);
      },
    ),
  );
});

test("a message number counts once, and not from far behind the newest", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 60 }), { maxLength: 200 }), (sequences) => {
      const window = new SequenceWindow();
      const seen = new Set<number>();
      let newest = 0;
      for (const sequence of sequences) {
        const isNew = sequence > 0 && sequence > newest - 16 && !seen.has(sequence);
        assert.equal(window.accept(sequence), isNew, `${sequence} after ${newest}`);
        if (!isNew) continue;
        seen.add(sequence);
        newest = Math.max(newest, sequence);
      }
    }),
    { numRuns: 500 },
  );
  const window = new SequenceWindow();
  assert.ok(window.accept(0xffffffff));
  assert.ok(window.accept(0xfffffff0));
  assert.ok(!window.accept(0xffffffef));
  assert.ok(!window.accept(1));
});
