import { request as httpsRequest, createServer } from "node:https";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { ApiAddress } from "../control-plane/kubeconfig.ts";
import type { CertificateAuthority } from "../lib/pki.ts";

/**
 * A proxy between the agent and the API server that can be made to do harm as proxies, NAT boxes and load balancers do.
 */
export interface ApiProxy {
  /** Where the agent finds it. */
  readonly address: ApiAddress;
  /** Watches that are open, dark ones included. */
  readonly watches: number;
  /** How long what a watch brings is held back from now on; its order stays. */
  watchDelayMs: number;
  /** Resets every connection, whatever is under way on it. */
  cut(): void;
  /** Watches bring nothing any more, though their connections stand; those that are opened meanwhile do not either. */
  darken(): void;
  /** Watches that are opened from now on work; the dark ones stay dark until they are cut. */
  lighten(): void;
  close(): Promise<void>;
}

/** Starts the proxy on a free loopback port. What it passes on is what came, credentials included. */
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
    // The client sees a connection that broke, as it would without the proxy.
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

  /** What has not been passed on yet never is. */
  darken(): void {
    this.#isDark = true;
  }

  follow(status: number, answer: IncomingMessage): void {
    this.#pass(() => this.#response.writeHead(status, answer.headers).flushHeaders());
    answer.on("data", (chunk: Buffer) => this.#pass(() => this.#response.write(chunk)));
    answer.once("end", () => this.#pass(() => this.#response.end()));
    answer.once("error", () => this.#response.destroy());
  }

  /** All of one delay, timers keep the order in which they were set. */
  #pass(step: () => void): void {
    setTimeout(() => {
      if (!this.#isDark) step();
    }, this.#settings.watchDelayMs);
  }
}
