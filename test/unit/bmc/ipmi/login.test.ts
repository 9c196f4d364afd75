import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { CIPHER_SUITES } from "../../../../src/bmc/ipmi/packets/cipher-suite.ts";
import { LoginBreaker } from "../../../../src/bmc/gate/limits/login-breaker.ts";
import { encodeOpenRequest, parseOpenResponse, PRIVILEGE } from "../../../../src/bmc/ipmi/packets/open-session.ts";
import {
  encodeRakp1,
  parseRakp2,
  parseRakp4,
  provesPassword,
  userKeyOf,
} from "../../../../src/bmc/ipmi/packets/rakp.ts";
import type { Console } from "../../../../src/bmc/ipmi/packets/rakp.ts";
import { Mutex } from "../../../../src/bmc/gate/limits/mutex.ts";
import { BmcError } from "../../../../src/bmc/interface/errors.ts";
import { Secret } from "../../../../src/runtime/secret.ts";
import { VirtualClock } from "../../../lib/virtual-clock.ts";

// The pure parts of a login, and how concurrent logins are kept apart.

const suite = CIPHER_SUITES[3];
const asked = { tag: 7, consoleSessionId: 0x11223344, suite };
const console3: Console = {
  suite,
  privilege: PRIVILEGE.administrator,
  username: Buffer.from("fence"),
  userKey: userKeyOf(new Secret("secret")),
  consoleSessionId: 0x11223344,
  bmcSessionId: 0x55667788,
  random: Buffer.alloc(16, 1),
};
const bytes = (maxLength: number): fc.Arbitrary<Buffer> => fc.uint8Array({ maxLength }).map((it) => Buffer.from(it));

/** A correct answer. */
function opened(): Buffer {
  const algorithms = [0, 0, 0, 8, 1, 0, 0, 0, 1, 0, 0, 8, 1, 0, 0, 0, 2, 0, 0, 8, 1, 0, 0, 0];
  return Buffer.from([7, 0, 4, 0, 0x44, 0x33, 0x22, 0x11, 1, 0, 0, 0, ...algorithms]);
}

test("an Open Session request offers one suite, and names the privilege", () => {
  const request = encodeOpenRequest({ tag: 7, privilege: PRIVILEGE.operator, consoleSessionId: 0x11223344, suite });
  assert.equal(request.toString("hex"), "0703000044332211000000080100000001000008010000000200000801000000");
});

test("an Open Session answer is accepted as a whole, or not at all", () => {
  assert.deepEqual(parseOpenResponse(opened(), asked), { kind: "Opened", bmcSessionId: 1 });
  assert.equal(parseOpenResponse(opened(), { ...asked, tag: 8 }), undefined);
  assert.equal(parseOpenResponse(opened(), { ...asked, consoleSessionId: 1 }), undefined);
  assert.equal(parseOpenResponse(opened().subarray(0, 35), asked), undefined);
  for (const offset of [12, 16, 20, 24, 28, 32]) {
    const other = opened();
    other[offset] = other.readUInt8(offset) ^ 2;
    assert.deepEqual(parseOpenResponse(other, asked), { kind: "OtherAlgorithms" });
  }
  const withoutId = opened();
  withoutId[8] = 0;
  assert.equal(parseOpenResponse(withoutId, asked), undefined);
});

test("refusals are understood in all the lengths that BMCs send", () => {
  assert.deepEqual(parseOpenResponse(Buffer.from([0x11]), asked), { kind: "Refused", status: 0x11 });
  assert.deepEqual(parseOpenResponse(Buffer.from([7, 0x11]), asked), { kind: "Refused", status: 0x11 });
  const whole = Buffer.from([7, 0x01, 0, 0, 0x44, 0x33, 0x22, 0x11]);
  assert.deepEqual(parseOpenResponse(whole, asked), { kind: "Refused", status: 0x01 });
  assert.equal(parseOpenResponse(Buffer.from([8, 0x11]), asked), undefined);
  assert.equal(parseOpenResponse(Buffer.from([7, 1, 0, 0, 9, 9, 9, 9]), asked), undefined);
  assert.equal(parseOpenResponse(Buffer.from([0]), asked), undefined);
  assert.deepEqual(parseRakp2(Buffer.from([7, 0x0d]), 7, console3), { kind: "Refused", status: 0x0d });
  assert.deepEqual(parseRakp4(Buffer.from([7, 0x0f, 0, 0, 0, 0, 0, 0]), 7, console3), {
    kind: "Refused",
    status: 0x0f,
  });
});

test("the parser of the login does not fail on any payload, and random bytes prove nothing", () => {
  fc.assert(
    fc.property(bytes(80), fc.boolean(), (payload, isAddressed) => {
      if (isAddressed && payload.length >= 8) {
        payload[0] = 7;
        payload[1] = 0;
        payload.writeUInt32LE(console3.consoleSessionId, 4);
      }
      parseOpenResponse(payload, asked);
      const rakp2 = parseRakp2(payload, 7, console3);
      if (rakp2?.kind === "Answered") assert.ok(!provesPassword(console3, rakp2, rakp2.code));
      parseRakp4(payload, 7, console3);
    }),
    { numRuns: 2_000 },
  );
});

test("RAKP 2 is of one length, and names tag and session", () => {
  const answer = Buffer.alloc(60);
  answer[0] = 7;
  answer.writeUInt32LE(console3.consoleSessionId, 4);
  assert.equal(parseRakp2(answer, 7, console3)?.kind, "Answered");
  assert.equal(parseRakp2(answer, 8, console3), undefined);
  assert.equal(parseRakp2(answer.subarray(0, 59), 7, console3), undefined);
  assert.equal(parseRakp2(Buffer.concat([answer, Buffer.alloc(1)]), 7, console3), undefined);
  assert.equal(parseRakp2(answer, 7, { ...console3, consoleSessionId: 1 }), undefined);
});

test("RAKP 1 carries the role for a look-up by name, and the name", () => {
  const message = encodeRakp1(9, console3);
  assert.equal(message[24], 0x14);
  assert.equal(message[27], 5);
  assert.equal(message.subarray(28).toString(), "fence");
});

const login = (password: string) => ({ username: "fence", password: new Secret(password) });
const codeOf = (call: () => void): string => {
  try {
    call();
    return "ok";
  } catch (error) {
    assert.ok(error instanceof BmcError);
    return error.code;
  }
};

test("a refused login pauses longer each time; another BMC is not concerned", async () => {
  const clock = new VirtualClock();
  const breaker = new LoginBreaker(clock);
  for (const pauseMs of [30_000, 120_000, 480_000, 900_000, 900_000]) {
    breaker.recordRefused("bmc-1", login("wrong"));
    assert.equal(
      codeOf(() => breaker.check("bmc-1", login("wrong"), "bmc-1")),
      "AuthFailed",
    );
    assert.equal(
      codeOf(() => breaker.check("bmc-2", login("wrong"), "bmc-2")),
      "ok",
    );
    await clock.advance(pauseMs - 1);
    assert.equal(
      codeOf(() => breaker.check("bmc-1", login("wrong"), "bmc-1")),
      "AuthFailed",
    );
    await clock.advance(1);
    assert.equal(
      codeOf(() => breaker.check("bmc-1", login("wrong"), "bmc-1")),
      "ok",
    );
  }
  await clock.advance(30 * 60_000);
  breaker.recordRefused("bmc-1", login("wrong"));
  await clock.advance(30_000);
  assert.equal(
    codeOf(() => breaker.check("bmc-1", login("wrong"), "bmc-1")),
    "ok",
    "the past is forgotten",
  );
});

test("an accepted login clears the refusals of its own credentials, and of no other", () => {
  const breaker = new LoginBreaker(new VirtualClock());
  breaker.recordRefused("bmc", login("old"));
  breaker.recordRefused("bmc", login("new"));
  breaker.recordAccepted("bmc", login("new"));
  assert.equal(
    codeOf(() => breaker.check("bmc", login("new"), "bmc")),
    "ok",
  );
  assert.equal(
    codeOf(() => breaker.check("bmc", login("old"), "bmc")),
    "AuthFailed",
  );
});

test("three refused logins close the BMC to all others; the message names no secret", () => {
  const breaker = new LoginBreaker(new VirtualClock());
  for (const password of ["a-secret", "b-secret", "c-secret"]) breaker.recordRefused("bmc", login(password));
  assert.throws(
    () => breaker.check("bmc", login("d-secret"), "bmc"),
    (error) => error instanceof BmcError && error.code === "Busy" && !error.message.includes("secret"),
  );
});

test("a mutex runs work in the order of arrival, one piece at a time, past failures and aborts", async () => {
  const mutex = new Mutex();
  const log: string[] = [];
  const work = (name: string) => async (): Promise<void> => {
    log.push(`${name} begins`);
    await new Promise((resolve) => setImmediate(resolve));
    log.push(`${name} ends`);
    if (name === "b") throw new Error("b failed");
  };
  const stop = new AbortController();
  const forever = new AbortController().signal;
  const all = [
    mutex.run(forever, work("a")),
    mutex.run(forever, work("b")),
    mutex.run(stop.signal, work("c")),
    mutex.run(forever, work("d")),
  ];
  stop.abort(new Error("c aborted"));
  const outcomes = await Promise.allSettled(all);
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ["fulfilled", "rejected", "rejected", "fulfilled"],
  );
  assert.deepEqual(log, ["a begins", "a ends", "b begins", "b ends", "d begins", "d ends"]);
});
