import { requireTaken } from "../answers.ts";
import type { DriverAnswer } from "../answers.ts";
import type { SignedRequest } from "../signature.ts";
import { TIME_WINDOW_S } from "../signature.ts";
import { freshNonce, RuleBroken } from "./server-under-test.ts";
import type { ServerUnderTest } from "./server-under-test.ts";
import { meaningfulSerial, meaningfulUuid } from "../../identity/placeholders.ts";

/** One rule of docs/reference/driver.md, and how to try it. */
export interface Rule {
  name: string;
  /** What the server must do. */
  says: string;
  /** The rule applies only if the login has this. */
  needs?: "key" | "certificate";
  /** @returns what the server showed. @throws RuleBroken, or any failure of a request. */
  run(server: ServerUnderTest): Promise<string>;
}

const OTHER_UUID = "6f0e2c1a-93b7-4d58-8a41-0c9e7b35d210";
const OTHER_SERIAL = "ironfence-no-such-serial";
const SLOW_CLIENTS = 8;
const LATE_READINGS = 12;

export const RULES: readonly Rule[] = [
  {
    name: "status",
    says: "answers a status request with a known state, and proves that the answer belongs to it",
    async run(server) {
      const { state, raw } = (await server.readStatus()).reading;
      if (state === "Unknown" && raw !== "Unknown") throw new RuleBroken(`the state is ${JSON.stringify(raw)}`);
      if (state !== "On") throw new RuleBroken(`the host reads ${state}: power it on and wait, then check again`);
      return raw;
    },
  },
  {
    name: "identity",
    says: "reports a system UUID or a serial number that no other host has",
    async run(server) {
      const { systemUUID, serialNumber } = (await server.readStatus()).identity;
      const own = meaningfulUuid(systemUUID) ?? meaningfulSerial(serialNumber);
      if (own === undefined) throw new RuleBroken("it reports neither, or a factory default");
      return own;
    },
  },
  forCertificate("no-certificate", "refuses an order of a client without a certificate", "none"),
  forCertificate("other-certificate", "refuses an order of a client with an unknown certificate", "certificate"),
  forKey("unsigned", "refuses an order without a signature", async (server, off) => {
    requireRefused(await server.sendUnsigned(off, "headers"), 401);
    requireRefused(await server.sendUnsigned(off, "signature"), 401);
  }),
  forKey("other-key", "refuses an order with the signature of another key", async (server, off) => {
    requireRefused(await server.sendByOtherKey(off), 401);
  }),
  hostile("old-time", "refuses an order that was sent too long ago", async (server, off) => {
    requireRefused(await server.send({ ...off, timeS: off.timeS - 2 * TIME_WINDOW_S }), 401);
  }),
  hostile("future-time", "refuses an order with a time that is too far ahead", async (server, off) => {
    requireRefused(await server.send({ ...off, timeS: off.timeS + 2 * TIME_WINDOW_S }), 401);
  }),
  forKey("signed-method", "refuses an order with the signature of another method", async (server, off) => {
    requireRefused(await server.sendSignedAs(off, { ...off, method: "GET" }), 401);
  }),
  forKey("signed-path", "refuses an order with the signature of another path", async (server, off) => {
    requireRefused(await server.sendSignedAs(off, { ...off, path: `${server.path}/on` }), 401);
  }),
  forKey("signed-body", "refuses an order with the signature of another body", async (server, off) => {
    requireRefused(await server.sendSignedAs(off, { ...off, body: JSON.stringify({ systemUUID: OTHER_UUID }) }), 401);
  }),
  forKey("whole-signature", "refuses an order with a signature of which only a part is right", async (server, off) => {
    for (const spoil of [spoilFirst, spoilLast, shorten]) {
      requireRefused(await server.sendWithSignature({ ...off, nonce: freshNonce() }, spoil), 401);
    }
  }),
  {
    name: "replayed-nonce",
    needs: "key",
    says: "refuses a request whose nonce was used before",
    async run(server) {
      const request = server.prepare("GET", "status");
      requireTaken("the first request", await server.send(request));
      requireRefused(await server.send(request), 401);
      return "401";
    },
  },
  hostile("unknown-host", "answers 404 for a host that it does not have, also to an order", async (server, off) => {
    const path = `${server.path.replace(/[^/]*$/, "")}ironfence-no-such-host`;
    const { timeS } = off;
    const read = { method: "GET", path: `${path}/status`, timeS, nonce: freshNonce(), body: "" } as const;
    requireRefused(await server.send(read), 404);
    requireRefused(await server.send({ ...off, path: `${path}/off`, nonce: freshNonce() }), 404);
    const longer = `${server.path}-ironfence-no-such-host`;
    requireRefused(await server.send({ ...off, path: `${longer}/off`, nonce: freshNonce() }), 404);
  }),
  hostile("other-identity", "refuses an order for a host with another identity: 409", async (server, off) => {
    requireRefused(await server.send({ ...off, body: JSON.stringify({ systemUUID: OTHER_UUID }) }), 409);
    const { systemUUID, serialNumber } = (await server.readStatus()).identity;
    if (systemUUID === undefined || serialNumber === undefined) return;
    // One value of the host does not make up for one of another host.
    for (const half of [
      { systemUUID: OTHER_UUID, serialNumber },
      { systemUUID, serialNumber: OTHER_SERIAL },
    ]) {
      requireRefused(await server.send({ ...off, nonce: freshNonce(), body: JSON.stringify(half) }), 409);
    }
  }),
  hostile("no-identity", "refuses an order that names no identity: 400", async (server, off) => {
    requireRefused(await server.send({ ...off, body: "{}" }), 400);
    requireRefused(await server.send({ ...off, nonce: freshNonce(), body: "not JSON" }), 400);
  }),
  hostile("unknown-request", "refuses requests that are not in the contract", async (server, off) => {
    for (const end of ["cycle", "off/ironfence", "ironfence/off"]) {
      requireRefused(await server.send({ ...off, path: `${server.path}/${end}`, nonce: freshNonce() }), 404, 405, 501);
    }
  }),
  {
    name: "slow-clients",
    says: "answers while other clients have sent half of a request",
    async run(server) {
      await server.withSlowClients(SLOW_CLIENTS, () => server.readStatusOverNewConnection());
      return `${SLOW_CLIENTS} of them`;
    },
  },
  {
    name: "no-late-effect",
    says: "does not carry out a refused order later",
    async run(server) {
      for (let reading = 0; reading < LATE_READINGS; reading += 1) {
        await server.requireOn("after the refused orders");
        await server.pause(250);
      }
      return "On";
    },
  },
  {
    name: "off",
    says: "powers the host off, and does not show Off before it is off",
    async run(server) {
      const off = server.prepare("POST", "off", await server.orderBody());
      server.sentOff = off;
      requireTaken("off", await server.send(off));
      return server.waitFor("Off");
    },
  },
  {
    name: "off-again",
    says: "accepts a power-off of a host that is off, and keeps it off",
    async run(server) {
      requireTaken("off", await server.send(server.prepare("POST", "off", await server.orderBody())));
      return server.waitFor("Off");
    },
  },
  {
    name: "on",
    says: "powers the host on",
    async run(server) {
      requireTaken("on", await server.send(server.prepare("POST", "on", await server.orderBody())));
      return server.waitFor("On");
    },
  },
  {
    name: "on-again",
    says: "accepts a power-on of a host that is on, and does not restart it",
    async run(server) {
      requireTaken("on", await server.send(server.prepare("POST", "on", await server.orderBody())));
      const seen = await server.waitFor("On");
      if (seen !== "On") throw new RuleBroken(`the state was ${seen}`);
      return seen;
    },
  },
  {
    name: "replayed-off",
    needs: "key",
    says: "refuses the earlier power-off if it is sent again",
    async run(server) {
      if (server.sentOff === undefined) throw new RuleBroken("no power-off was sent before");
      requireRefused(await server.send(server.sentOff), 401);
      await server.pause(1_000);
      await server.requireOn("after it");
      return "401";
    },
  },
];

/** A rule that sends orders that the server must not carry out. @param attack gets a power-off with a new nonce. */
function hostile(
  name: string,
  says: string,
  attack: (server: ServerUnderTest, off: SignedRequest) => Promise<void>,
): Rule {
  return {
    name,
    says,
    async run(server) {
      try {
        await attack(server, server.prepare("POST", "off", await server.orderBody()));
        await server.requireOn("after the refused order");
        return "refused, and the host is on";
      } catch (error) {
        await server.bringBack();
        throw error;
      }
    },
  };
}

function forKey(...args: Parameters<typeof hostile>): Rule {
  return { ...hostile(...args), needs: "key" };
}

function forCertificate(name: string, says: string, has: "certificate" | "none"): Rule {
  const rule = hostile(name, says, async (server, off) => {
    const answer = await server.sendAsStranger(off, has);
    // Some proxies answer 400 to a missing or unknown certificate.
    if (answer !== undefined) requireRefused({ ...answer, isProven: true }, 400, 401, 403, 495, 496);
  });
  return { ...rule, needs: "certificate" };
}

const SHORT_DIGITS = 8;

function spoilFirst(signature: string): string {
  return otherDigit(signature.slice(0, 1)) + signature.slice(1);
}

function spoilLast(signature: string): string {
  return signature.slice(0, -1) + otherDigit(signature.slice(-1));
}

function shorten(signature: string): string {
  return signature.slice(0, SHORT_DIGITS);
}

function otherDigit(digit: string): string {
  return digit === "0" ? "1" : "0";
}

/** @throws RuleBroken unless the answer has one of these statuses and is proven. A 401 needs no proof. */
function requireRefused({ status, isProven }: DriverAnswer, ...expected: readonly number[]): void {
  if (!expected.includes(status)) throw new RuleBroken(`HTTP ${status} instead of ${expected.join(" or ")}`);
  if (status !== 401 && !isProven) throw new RuleBroken(`HTTP ${status} is not proven to be for its request`);
}
