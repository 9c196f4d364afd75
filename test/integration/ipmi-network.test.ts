import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import type { RemoteInfo, Socket } from "node:dgram";
import { test } from "node:test";
import { openDeviceOn } from "../lib/open-device.ts";
import type { PowerDriver } from "../../src/bmc/interface/driver.ts";
import { Secret } from "../../src/runtime/secret.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { forever, hasCode, PASSWORD } from "./bmc-fixture.ts";
import { startIpmiWorld, USERNAME } from "./ipmi-fixture.ts";
import type { IpmiWorld } from "./ipmi-fixture.ts";

// Source and destination of datagrams.

/** A relay between a driver and the BMC: it listens on one port and forwards to the mock. */
interface Relay {
  port: number;
  [Symbol.asyncDispose](): Promise<void>;
}

async function startRelay(
  world: IpmiWorld,
  { host, answer }: { host: "127.0.0.1" | "::1"; answer: (front: Socket, datagram: Buffer, to: RemoteInfo) => void },
): Promise<Relay> {
  const front = createSocket(host === "::1" ? "udp6" : "udp4");
  const behind = createSocket("udp4");
  let client: RemoteInfo | undefined;
  front.on("message", (datagram, from) => {
    client = from;
    behind.send(datagram, world.mock.port, "127.0.0.1");
  });
  behind.on("message", (datagram) => client && answer(front, datagram, client));
  await new Promise<void>((resolve, reject) => front.once("error", reject).bind(0, host, resolve));
  return {
    port: front.address().port,
    [Symbol.asyncDispose]: async () => {
      await Promise.all([front, behind].map((socket) => new Promise<void>((resolve) => socket.close(resolve))));
    },
  };
}

function open(world: IpmiWorld, address: string): PowerDriver & AsyncDisposable {
  const device = openDeviceOn(world.clock)(
    {
      address,
      username: USERNAME,
      password: new Secret(PASSWORD),
      tls: { insecureSkipVerify: false },
      timeouts: { connectTimeoutMs: 600, callTimeoutMs: 6_000 },
    },
    { clock: world.clock, logger: createLogger("silent") },
  );
  return Object.assign(device, { [Symbol.asyncDispose]: () => device.close() });
}

test("a BMC that has only an IPv6 address can be used", async () => {
  await using world = await startIpmiWorld();
  await using relay = await startRelay(world, {
    host: "::1",
    answer: (front, datagram, to) => front.send(datagram, to.port, to.address),
  });
  await using device = open(world, `ipmi://[::1]:${relay.port}`);
  await device.forceOff(forever());
  assert.equal(world.host.orders.length, 1);
});

test("an answer from a port other than that of the BMC is ignored", async () => {
  await using world = await startIpmiWorld();
  const stranger = createSocket("udp4");
  await using relay = await startRelay(world, {
    host: "127.0.0.1",
    answer: (_front, datagram, to) => stranger.send(datagram, to.port, to.address),
  });
  await using device = open(world, `ipmi://127.0.0.1:${relay.port}`);
  await assert.rejects(device.readPower(forever()), hasCode("Unreachable", /does not answer/));
  assert.ok(world.mock.datagramCount > 0);
  stranger.close();
});

test("noise between the answers, of any length, disturbs no call", async () => {
  await using world = await startIpmiWorld();
  const noise = [Buffer.alloc(0), Buffer.from([6]), Buffer.from("0600ff0706", "hex"), Buffer.alloc(60_000, 0xff)];
  await using relay = await startRelay(world, {
    host: "127.0.0.1",
    answer: (front, datagram, to) => {
      // Includes the datagram without its last byte, with an additional byte, and with the header of an
      // acknowledgement.
      const altered = [datagram.subarray(0, -1), Buffer.concat([datagram, Buffer.from([0])])];
      const acknowledgement = Buffer.concat([Buffer.from([6, 0, 0, 0x87]), datagram.subarray(4)]);
      const isLogin = datagram[4] === 0 || ((datagram[5] ?? 0) & 0x3f) >= 0x10;
      for (const other of [...noise, ...(isLogin ? [] : altered), acknowledgement, datagram]) {
        front.send(other, to.port, to.address);
      }
    },
  });
  await using device = open(world, `ipmi://127.0.0.1:${relay.port}`);
  assert.equal((await device.readPower(forever())).state, "On");
  await device.forceOff(forever());
  assert.equal(world.host.orders.length, 1);
});
