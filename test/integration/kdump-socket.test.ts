import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { describe, it } from "node:test";
import { KdumpMessages } from "../../src/remediator/kdump/kdump-messages.ts";
import type { KdumpResult } from "../../src/remediator/kdump/kdump-messages.ts";
import { openKdumpSocket } from "../../src/remediator/kdump/kdump-socket.ts";
import { until } from "./agent-fixture.ts";

const MESSAGE = Buffer.from("402a301b01000000", "hex");

interface Receiver {
  port: number;
  messages: KdumpMessages;
  counts: Record<KdumpResult, number>;
}

/** Runs `test` with a socket that is bound to `host` and counts its messages. */
async function receiving(host: string, test: (receiver: Receiver) => Promise<void>): Promise<void> {
  const counts = { accepted: 0, malformed: 0, unexpected: 0 };
  const messages = new KdumpMessages((result) => (counts[result] += 1));
  const socket = await openKdumpSocket({ host, port: 0 }, assert.fail);
  const unsubscribe = socket.subscribe((datagram, from) => messages.receive(datagram, from));
  try {
    await test({ port: socket.port, messages, counts });
  } finally {
    unsubscribe();
    await socket.close();
  }
}

/** Sends datagrams to a port of this machine, as a crash kernel does. */
async function send(port: number, to: "127.0.0.1" | "::1", datagrams: readonly Buffer[]): Promise<void> {
  const socket = createSocket(to === "::1" ? "udp6" : "udp4");
  await Promise.all(datagrams.map((datagram) => new Promise((resolve) => socket.send(datagram, port, to, resolve))));
  const closed = once(socket, "close");
  socket.close();
  await closed;
}

describe("the socket for fence_kdump messages", () => {
  for (const [host, to] of [
    ["127.0.0.1", "127.0.0.1"],
    ["::1", "::1"],
    ["::", "127.0.0.1"],
    ["::", "::1"],
  ] as const)
    it(`the socket for fence_kdump messages at ${host} delivers messages from ${to} to the remediation that waits for that address`, () =>
      receiving(host, async ({ port, messages, counts }) => {
        let received = 0;
        const unfollow = messages.follow(["n1", to], () => (received += 1));
        await send(port, to, [MESSAGE, MESSAGE]);
        await until("both are there", () => counts.accepted === 2);
        assert.equal(received, 2);
        unfollow();
        await send(port, to, [MESSAGE]);
        await until("it is not followed", () => counts.unexpected === 1);
        assert.equal(received, 2);
      }));

  it("the socket for fence_kdump messages counts what is not a message, and what comes from an address that is not followed", () =>
    receiving("127.0.0.1", async ({ port, messages, counts }) => {
      messages.follow(["127.0.0.2", "::1", "n1"], assert.fail);
      const bigEndian = Buffer.from("1b302a4000000001", "hex");
      await send(port, "127.0.0.1", [
        MESSAGE,
        Buffer.alloc(0),
        MESSAGE.subarray(0, 7),
        Buffer.concat([MESSAGE, MESSAGE]),
        Buffer.from("402a301b02000000", "hex"),
        bigEndian,
        Buffer.alloc(9_000, MESSAGE),
      ]);
      await until("all are there", () => counts.malformed === 6 && counts.unexpected === 1);
      assert.equal(counts.accepted, 0);
    }));

  it("the socket for fence_kdump messages receives those of a node after a flood of others, and keeps nothing of it", () =>
    receiving("127.0.0.1", async ({ port, messages, counts }) => {
      let received = 0;
      const flood = Array.from({ length: 500 }, () => Buffer.alloc(512, 1));
      for (let sent = 0; sent < 40; sent += 1) await send(port, "127.0.0.1", flood);
      messages.follow(["127.0.0.1"], () => (received += 1));
      // The kernel drops datagrams that exceed its buffer. A crash kernel repeats its messages.
      await until("one is received", async () => {
        await send(port, "127.0.0.1", [MESSAGE]);
        return received > 0;
      });
      assert.ok(counts.malformed > 0);
    }));

  it("the socket for fence_kdump messages names its address if that is in use", () =>
    receiving("127.0.0.1", async ({ port }) => {
      await assert.rejects(openKdumpSocket({ host: "127.0.0.1", port }, assert.fail), {
        message: new RegExp(`^cannot listen on 127[.]0[.]0[.]1:${port}: .*EADDRINUSE`),
      });
    }));
});
