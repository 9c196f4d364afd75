import { randomInt } from "node:crypto";
import type { Server } from "node:net";
import { createServer } from "node:net";

/**
 * Ports are below Linux's ephemeral range (32768 to 60999). Otherwise a connection or another listener could take a
 * port before the program does.
 */
const PORT_MIN = 10_000;
const PORT_MAX = 32_000;
const TRIES_MAX = 100;

/**
 * Ports on 127.0.0.1 that are free now, for programs that cannot choose a free port themselves. All are held open until
 * the last one is found, so that they differ.
 *
 * @throws Error if a hundred random ports are all in use.
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

/** @returns undefined if the port is in use. */
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
