import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import type { RemoteInfo } from "node:dgram";
import { once } from "node:events";
import { test } from "node:test";
import { integer, octets, oid, tlv, TAG } from "../../../../hack/snmp-mock/ber.ts";
import { parseBmcAddress } from "../../../../src/bmc/interface/address.ts";
import { BmcError } from "../../../../src/bmc/interface/errors.ts";
import { GuardedSocket } from "../../../../src/bmc/snmp/session/guarded-socket.ts";

// Datagrams from a PDU to net-snmp and back, each as an attacker on the network could write it.

const ENGINE = Buffer.from("8000013e0461", "hex");
const USM_STATS = "1.3.6.1.6.3.15.1.1";

interface Parts {
  id?: number;
  flags?: number;
  engine?: Buffer;
  report?: string;
}

function message({ id = 1, flags = 3, engine = ENGINE, report }: Parts): Buffer {
  const varbind = tlv(TAG.sequence, oid(report ?? "1.3.6.1.2.1.1.3.0"), integer(1));
  const head = [integer(9), integer(0), integer(0), tlv(TAG.sequence, varbind)];
  const pdu = tlv(report === undefined ? TAG.response : TAG.report, ...head);
  const scoped = tlv(TAG.sequence, octets(engine), octets(""), pdu);
  const security = tlv(TAG.sequence, octets(engine), integer(1), integer(1), octets(""), octets(""), octets(""));
  const header = tlv(TAG.sequence, integer(id), integer(65_507), octets(Buffer.from([flags])), integer(3));
  return tlv(TAG.sequence, integer(3), header, octets(security), (flags & 2) === 0 ? scoped : octets("encrypted"));
}

/** The number of answers to one request that reach net-snmp, after the discovery of the engine. */
async function passed(answers: readonly Buffer[], { isEncrypted = true, from = "pdu" } = {}): Promise<number> {
  const pdu = createSocket("udp4");
  pdu.bind(0, "127.0.0.1");
  await once(pdu, "listening");
  const stranger = createSocket("udp4");
  const address = parseBmcAddress(`snmp://127.0.0.1:${pdu.address().port}/1`);
  assert.ok(address.protocol === "snmp");
  const { signal } = new AbortController();
  const socket = await GuardedSocket.open(address, { isAuthenticated: true, isEncrypted }, signal);
  let count = 0;
  socket.on("message", () => (count += 1));
  for (const request of [message({}), message({ id: 77 })]) {
    socket.send(request, 0, request.length, 0, "", () => undefined);
  }
  const [, sender] = (await once(pdu, "message")) as [Buffer, RemoteInfo];
  const discovered = once(socket, "message");
  pdu.send(message({ flags: 0, report: `${USM_STATS}.4.0` }), sender.port, sender.address);
  await discovered;
  for (const answer of answers) (from === "pdu" ? pdu : stranger).send(answer, sender.port, sender.address);
  // Datagrams arrive in order, so the arrival of the last one shows that all others have arrived.
  const last = message({ id: 77, flags: isEncrypted ? 3 : 1 });
  const seen = new Promise<void>((resolve) => {
    socket.on("message", (datagram: Buffer) => {
      if (datagram.equals(last)) resolve();
    });
  });
  pdu.send(last, sender.port, sender.address);
  await seen;
  socket.close();
  pdu.close();
  stranger.close();
  return count - 2;
}

test("an answer reaches net-snmp only if it is protected as its request was", async () => {
  const bad = [
    message({ flags: 0 }),
    message({ flags: 1 }),
    message({ flags: 2 }),
    message({ id: 2 }),
    message({ engine: Buffer.from("8000013e0462", "hex") }),
    message({ flags: 0, report: `${USM_STATS}.2.0` }),
    message({ flags: 0, report: `${USM_STATS}.4.0` }),
    message({ flags: 1, report: `${USM_STATS}.5.0` }),
    tlv(TAG.sequence, integer(1), octets("public"), tlv(TAG.response, integer(1))),
    Buffer.from("garbage"),
    Buffer.alloc(9_000),
    Buffer.alloc(0),
  ];
  assert.equal(await passed(bad), 0);
  assert.equal(await passed([message({}), message({ flags: 1, report: `${USM_STATS}.2.0` })]), 2);
  assert.equal(await passed([message({ flags: 1 }), message({ flags: 0 })], { isEncrypted: false }), 1);
});

test("an answer from another port than the PDU's does not reach net-snmp", async () => {
  assert.equal(await passed([message({})], { from: "stranger" }), 0);
});

test("an order leaves the socket once, even if it is repeated, and a read leaves it each time", async () => {
  const pdu = createSocket("udp4");
  pdu.bind(0, "127.0.0.1");
  await once(pdu, "listening");
  const address = parseBmcAddress(`snmp://127.0.0.1:${pdu.address().port}/1`);
  assert.ok(address.protocol === "snmp");
  const socket = await GuardedSocket.open(address, undefined, new AbortController().signal);
  const send = (): Promise<Error | null> =>
    new Promise((resolve) => {
      const datagram = message({});
      socket.send(datagram, 0, datagram.length, 0, "", resolve);
    });
  let isAllowed = true;
  socket.beginOrder("order off", () => isAllowed);
  assert.equal(await send(), null);
  const again = await send();
  assert.ok(again instanceof BmcError);
  assert.equal(again.code, "Busy");
  socket.endOrder();
  assert.equal(await send(), null);
  isAllowed = false;
  socket.beginOrder("order off", () => isAllowed);
  const refused = await send();
  assert.ok(refused instanceof BmcError);
  assert.equal(refused.code, "Aborted");
  socket.close();
  assert.ok((await send()) instanceof BmcError);
  pdu.close();
});
