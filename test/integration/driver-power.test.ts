import assert from "node:assert/strict";
import { test } from "node:test";
import { waitForPower } from "../../src/bmc/devices/wait-for-power.ts";
import { systemClock } from "../../src/runtime/system.ts";
import { forever, hasCode } from "./bmc-fixture.ts";
import { HOST, KEY, startFakeDriver } from "./driver-fixture.ts";
import type { Reply } from "./driver-fixture.ts";

// The driver for driver servers, over real sockets.

const wait = { clock: systemClock, pollMs: 330, timeoutMs: 60_000, freshReads: 2 };

test("a driver server identifies a host, powers it off, proves it off and powers it on", async () => {
  await using server = await startFakeDriver();
  const device = server.open();
  const { systemUUID, serialNumber } = server.host;
  assert.deepEqual(await device.identify(forever()), { systemUUID, serialNumber, device: server.address });
  assert.equal((await device.readPower(forever())).state, "On");
  await device.forceOff(forever());
  assert.ok((await waitForPower(device, "Off", wait, forever())).proven);
  assert.equal(server.host.power, "Off");
  await device.forceOff(forever());
  await device.on(forever());
  assert.ok((await waitForPower(device, "On", wait, forever())).proven);
  assert.deepEqual(server.orders, ["one off", "one off", "one on"]);
  assert.deepEqual(JSON.parse(server.requests.find(({ method }) => method === "POST")?.body ?? ""), {
    systemUUID,
    serialNumber,
  });
  await assert.rejects(device.readBootOverride(forever()), hasCode("Unsupported"));
});

test("a key is never sent, and no request repeats the nonce of another", async () => {
  await using server = await startFakeDriver();
  const device = server.open();
  for (let count = 0; count < 5; count += 1) await device.readPower(forever());
  const nonces = server.requests.map(({ headers }) => String(headers["ironfence-nonce"]));
  assert.equal(new Set(nonces).size, 5);
  for (const nonce of nonces) assert.match(nonce, /^[0-9a-f]{32}$/);
  assert.ok(!JSON.stringify(server.requests).includes(KEY));
});

test("an answer of Off to an earlier request proves nothing, and neither does one that is not signed", async () => {
  await using server = await startFakeDriver();
  const device = server.open();
  await device.identify(forever());
  server.host.power = "Off";
  assert.equal((await device.readPower(forever())).state, "Off");
  server.host.power = "On";
  const earlier = server.answers.at(-1);
  assert.ok(earlier?.headers["ironfence-signature"] !== undefined && earlier.body.includes('"Off"'));
  server.override = () => earlier;
  await assert.rejects(device.readPower(forever()), hasCode("BadResponse"));
  server.override = () => ({ ...earlier, headers: {} });
  await assert.rejects(device.readPower(forever()), hasCode("BadResponse"));
  server.override = () => undefined;
  server.bugs.add("signs without the nonce");
  await assert.rejects(device.readPower(forever()), hasCode("BadResponse"));
});

test("an Off of another host than the identified one counts as Unknown, and no order goes to it", async () => {
  await using server = await startFakeDriver();
  const device = server.open();
  await device.identify(forever());
  server.host.systemUUID = "11112222-3333-4444-5555-666677778888";
  server.host.power = "Off";
  const reading = await device.readPower(forever());
  assert.equal(reading.state, "Unknown");
  assert.match(reading.raw, /not the one that was identified/);
  await assert.rejects(device.forceOff(forever()), hasCode("Refused"));
  await assert.rejects(device.on(forever()), hasCode("Refused"));
  assert.deepEqual(server.orders, []);
});

test("an order names the host that was identified, so that the server refuses it for another one", async () => {
  await using server = await startFakeDriver();
  const device = server.open();
  await device.identify(forever());
  server.override = ({ method }) => {
    // The host is replaced between the status and the order.
    if (method === "POST") server.host.systemUUID = "11112222-3333-4444-5555-666677778888";
    return undefined;
  };
  await assert.rejects(device.forceOff(forever()), hasCode("Refused"));
  assert.deepEqual(server.orders, []);
});

test("an Off does not count shortly after the server gave no answer, unless it has shown the host On", async () => {
  let skippedMs = 0;
  const clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + skippedMs };
  await using server = await startFakeDriver();
  const device = server.open({ clock });
  await device.identify(forever());
  server.override = () => "reset";
  await assert.rejects(device.readPower(forever()), hasCode("Unreachable"));
  server.override = () => undefined;
  server.host.power = "Off";
  assert.equal((await device.readPower(forever())).state, "Unknown");
  // Other drivers in this process also know it.
  assert.equal((await server.open({ clock }).readPower(forever())).state, "Unknown");
  server.host.power = "On";
  assert.equal((await device.readPower(forever())).state, "On");
  server.host.power = "Off";
  assert.equal((await device.readPower(forever())).state, "Off");
  server.override = () => "reset";
  await assert.rejects(device.readPower(forever()), hasCode("Unreachable"));
  server.override = () => undefined;
  skippedMs = 31_000;
  assert.equal((await device.readPower(forever())).state, "Off");
});

test("only the states of the contract count, and any other one is Unknown", async () => {
  await using server = await startFakeDriver();
  const device = server.open();
  for (const state of ["off", "OFF", "Off ", "poweredOff", "PoweringOff", "", "Unknown"]) {
    server.override = () => ({ status: 200, signed: true, body: JSON.stringify({ state, identity: {} }) });
    assert.equal((await device.readPower(forever())).state, "Unknown", state);
  }
  for (const body of ["{}", "[]", '"Off"', "null", "", '{"state":["Off"]}', '{"__proto__":{"state":"Off"}}']) {
    server.override = () => ({ status: 200, signed: true, body });
    await assert.rejects(device.readPower(forever()), hasCode("BadResponse"), body);
  }
});

const redirect: Reply = { status: 302, signed: true, headers: { location: "http://127.0.0.1:9/hosts/one/status" } };
for (const [name, reply, code] of [
  ["a redirect", redirect, "Unsupported"],
  ["a redirect that is not signed", { ...redirect, signed: undefined } as never, "Unsupported"],
  ["a refused key", { status: 401 }, "AuthFailed"],
  ["a missing permission", { status: 403, signed: true }, "PrivilegeTooLow"],
  ["a 404 for the host", { status: 404, signed: true }, "SystemNotFound"],
  ["a 404 from a proxy", { status: 404 }, "BadResponse"],
  ["a signed 503", { status: 503, signed: true }, "Busy"],
  ["a 503 from a proxy", { status: 503 }, "Busy"],
  ["a signed error 500", { status: 500, signed: true, body: '{"error":"virsh is missing"}' }, "BadResponse"],
  ["a conflict of states", { status: 409, signed: true }, "Refused"],
  ["a refusal of the operation", { status: 501, signed: true }, "Unsupported"],
  ["another status of success", { status: 206, signed: true, body: '{"state":"Off"}' }, "BadResponse"],
  ["a status without a body", { status: 204, signed: true }, "BadResponse"],
  ["a broken connection", "reset", "Unreachable"],
] as const) {
  test(`an answer of a driver server that is ${name} is reported as ${code}`, async () => {
    await using server = await startFakeDriver();
    const device = server.open();
    server.override = () => reply;
    await assert.rejects(device.readPower(forever()), hasCode(code));
    assert.equal(server.requests.length, 1, "each request is sent once, and no redirect is followed");
  });
}

test("an answer that is too large or compressed is refused, and the text of a server is shown within bounds", async () => {
  await using server = await startFakeDriver();
  const device = server.open();
  server.override = () => ({ status: 200, signed: true, body: `{"state":"${"x".repeat(70_000)}"}` });
  await assert.rejects(device.readPower(forever()), hasCode("BadResponse"));
  server.override = () => ({ status: 200, signed: true, headers: { "content-encoding": "gzip" }, body: "{}" });
  await assert.rejects(device.readPower(forever()), hasCode("BadResponse"));
  const error = `\u001b[31m${"long ".repeat(1_000)}`;
  server.override = () => ({ status: 409, signed: true, body: JSON.stringify({ error }) });
  await assert.rejects(device.forceOff(forever()), (thrown: Error) => {
    assert.ok(thrown.message.length < 500, `${thrown.message.length} characters`);
    assert.match(thrown.message, /^[\x20-\x7e]+$/);
    return true;
  });
});

test("a server that never answers ends the call at its deadline", async () => {
  await using server = await startFakeDriver();
  const device = server.open({ callTimeoutMs: 300 });
  server.override = () => "hang";
  await assert.rejects(device.readPower(forever()), hasCode("Timeout"));
});

test("no order is sent by a process that may no longer send orders", async () => {
  await using server = await startFakeDriver();
  const device = server.open({ isOrderAllowed: () => false });
  await assert.rejects(device.forceOff(forever()), hasCode("Aborted"));
  await assert.rejects(device.on(forever()), hasCode("Aborted"));
  assert.ok(server.requests.every(({ method, path }) => method === "GET" && path === `${HOST}/status`));
});

test("a key that is too short and a wrong key are refused, and the message has no key in it", async () => {
  await using server = await startFakeDriver();
  assert.throws(
    () => server.open({ key: "short-secret" }),
    (error: Error) => {
      assert.ok(hasCode("AuthFailed")(error));
      return !error.message.includes("short-secret");
    },
  );
  const wrong = "f".repeat(32);
  await assert.rejects(server.open({ key: wrong }).readPower(forever()), (error: Error) => {
    assert.ok(hasCode("AuthFailed")(error));
    return !error.message.includes(wrong) && /openssl|clock/.test(error.message);
  });
});
