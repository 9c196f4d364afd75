import { randomInt } from "node:crypto";
import type { Server } from "node:net";
import { createServer } from "node:net";

/**
 * Below those that Linux gives to connections and to listeners without a wish (32768 to 60999): one of those may take a
 * port before its program has.
 */
const PORT_MIN = 10_000;
const PORT_MAX = 32_000;
const TRIES_MAX = 100;

/**
 * Ports on 127.0.0.1 without a listener at this moment, for programs that cannot choose one themselves. All are
 * held until the last is known, so that they differ from each other.
 *
 * @throws Error where none of a hundred drawn at random is free.
 */
export async function freePorts(count: number): Promise<number[]> {
  const held = new Map<number, Server>();
  for (let tries = 0; held.size < count; tries += 1) {
    if (tries === TRIES_MAX) throw new Error(`no ${count} free ports between ${PORT_MIN} and ${PORT_MAX} on 127.0.0.1`);
    const port = randomInt(PORT_MIN, PORT_MAX);
    const server = await listen(port);
    if (server !== undefined) held.set(port, server);
  }
  await Promise.all([...held.values()].map((server) => new Promise((resolve) => server.close(resolve))));
  return [...held.keys()];
}

/** @returns undefined where the port is taken. */
async function listen(port: number): Promise<Server | undefined> {
  const server = createServer();
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "EADDRINUSE") resolve(undefined);
      else reject(error);
    });
    server.listen(port, "127.0.0.1", () => resolve(server));
  });
}
