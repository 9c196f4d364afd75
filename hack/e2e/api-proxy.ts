import { request as httpsRequest, createServer } from "node:https";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { ApiAddress } from "../control-plane/kubeconfig.ts";
import type { CertificateAuthority } from "../lib/pki.ts";

/**
 * A proxy between the agent and the API server that can cause the faults of real proxies, NAT gateways and load
 * balancers.
 */
export interface ApiProxy {
  /** The address at which the agent reaches the proxy. */
  readonly address: ApiAddress;
  /** The number of open watches, including those that `darken` has stopped. */
  readonly watches: number;
  /** How long the proxy delays each part of a watch from now on. The order of the parts stays. */
  watchDelayMs: number;
  /** Resets every connection, including those with requests in progress. */
  cut(): void;
  /** Stops the data of all watches, also of new ones, until `lighten`. Their connections stay open. */
  darken(): void;
  /** Lets new watches work again. Watches that `darken` has stopped receive no data until `cut`. */
  lighten(): void;
  close(): Promise<void>;
}

/** Starts the proxy on a free loopback port. It passes requests on unchanged, credentials included. */
export async function startApiProxy(upstream: ApiAddress, authority: CertificateAuthority): Promise<ApiProxy> {
  const { certPem, keyPem } = await authority.issue({ commonName: "api", ipAddresses: ["127.0.0.1"], usage: "server" });
  const connections = new Set<Duplex>();
  const watches = new Set<Watch>();
  const settings = { dark: false, watchDelayMs: 0 };

  const serve = (request: IncomingMessage, response: ServerResponse): void => {
    const { method, headers, url = "/" } = request;
    const isWatch = /[?&]watch=(1|true)\b/.test(url);
    const watch = isWatch ? new Watch(response, settings) : undefined;
    const onward = httpsRequest(new URL(url, upstream.server), { method, headers, ca: upstream.caPem }, (answer) => {
      const status = answer.statusCode ?? 502;
      if (watch === undefined) answer.pipe(response.writeHead(status, answer.headers));
      else watch.follow(status, answer);
    });
    if (watch !== undefined) watches.add(watch);
    response.once("close", () => {
      if (watch !== undefined) watches.delete(watch);
      onward.destroy();
    });
    // The client sees a broken connection, as it would without the proxy.
    onward.once("error", () => response.destroy());
    request.pipe(onward);
  };
  const server = createServer({ cert: certPem, key: keyPem }, serve);
  server.on("connection", (socket: Socket) => {
    connections.add(socket);
    socket.once("close", () => connections.delete(socket));
    socket.on("error", () => socket.destroy());
  });
  server.on("tlsClientError", (_error, socket) => socket.destroy());
  const cut = (): void => {
    for (const connection of connections) connection.destroy();
  };
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    address: { server: `https://127.0.0.1:${port}`, caPem: authority.certPem },
    get watches() {
      return watches.size;
    },
    get watchDelayMs() {
      return settings.watchDelayMs;
    },
    set watchDelayMs(delayMs) {
      settings.watchDelayMs = delayMs;
    },
    cut,
    darken: () => {
      settings.dark = true;
      for (const watch of watches) watch.darken();
    },
    lighten: () => {
      settings.dark = false;
    },
    close: async () => {
      cut();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** The answer to one watch, on its way to the client. */
class Watch {
  readonly #response: ServerResponse;
  readonly #settings: { readonly dark: boolean; readonly watchDelayMs: number };
  #isDark: boolean;

  constructor(response: ServerResponse, settings: { readonly dark: boolean; readonly watchDelayMs: number }) {
    this.#response = response;
    this.#settings = settings;
    this.#isDark = settings.dark;
  }

  /** Drops all data that the proxy has not passed on yet. */
  darken(): void {
    this.#isDark = true;
  }

  follow(status: number, answer: IncomingMessage): void {
    this.#pass(() => this.#response.writeHead(status, answer.headers).flushHeaders());
    answer.on("data", (chunk: Buffer) => this.#pass(() => this.#response.write(chunk)));
    answer.once("end", () => this.#pass(() => this.#response.end()));
    answer.once("error", () => this.#response.destroy());
  }

  /** Timers with the same delay fire in the order in which they were set. */
  #pass(step: () => void): void {
    setTimeout(() => {
      if (!this.#isDark) step();
    }, this.#settings.watchDelayMs);
  }
}
