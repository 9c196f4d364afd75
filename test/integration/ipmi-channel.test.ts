import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { test } from "node:test";
import { Channel, growingWaits, orderWaits } from "../../src/bmc/ipmi/session/channel.ts";
import { systemClock } from "../../src/runtime/system.ts";
import type { Clock } from "../../src/runtime/clock.ts";
import { forever, hasCode } from "./bmc-fixture.ts";

test("an address without a route is unreachable", async () => {
  // A broadcast address. The system refuses it for sockets that have not enabled broadcast.
  const address = { protocol: "ipmi", hostname: "255.255.255.255", port: 623, key: "bmc", text: "bmc" } as const;
  await assert.rejects(Channel.open(address, systemClock, forever()), hasCode("Unreachable", /EACCES/));
});

test("an answer that arrived while this process was suspended is read before the request is repeated", async () => {
  const timers: { delayMs: number; run: () => void }[] = [];
  const schedule: Clock["schedule"] = (delayMs, run) => {
    timers.push({ delayMs, run });
    return { cancel: () => undefined };
  };
  const bmc = createSocket("udp4");
  await new Promise<void>((resolve) => bmc.bind(0, "127.0.0.1", resolve));
  const { port } = bmc.address();
  let received = 0;
  const asked = new Promise<{ port: number; address: string }>((resolve) =>
    bmc.on("message", (_datagram, from) => {
      received += 1;
      resolve(from);
    }),
  );
  const address = { protocol: "ipmi", hostname: "127.0.0.1", port, key: "bmc", text: "bmc" } as const;
  const channel = await Channel.open(address, { ...systemClock, schedule }, forever());
  try {
    const exchange = channel.exchange(
      { what: "ask", encode: () => Buffer.from("?"), receive: () => ({ answer: "!" }), waitsMs: [500, 500] },
      forever(),
    );
    const from = await asked;
    const [late] = timers.splice(0);
    assert.equal(late?.delayMs, 500);
    // The wait ends in the same turn of the event loop in which the answer arrives.
    late.run();
    bmc.send("!", from.port, from.address);
    assert.deepEqual(await exchange, { answer: "!", transmissions: 1 });
    assert.equal(received, 1);
    assert.deepEqual(
      timers.map(({ delayMs }) => delayMs),
      [0],
    );
  } finally {
    channel.close();
    bmc.close();
  }
});

test("an order is repeated later and less often than a question, within the same time", () => {
  const [questions, orders] = [growingWaits(5_000), orderWaits(5_000)];
  const sum = (waitsMs: readonly number[]): number => Math.round(waitsMs.reduce((total, waitMs) => total + waitMs, 0));
  assert.deepEqual([sum(questions), sum(orders)], [5_000, 5_000]);
  assert.ok(orders.length < questions.length);
  assert.equal(orders[0], 1_000, "BMCs take up to a second over an order");
});
