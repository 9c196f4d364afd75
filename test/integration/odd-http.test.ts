import assert from "node:assert/strict";
import { createServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import { describe, it } from "node:test";
import { Connection } from "../../src/bmc/redfish/http/connection.ts";
import { SecureContexts } from "../../src/bmc/gate/secure-contexts.ts";
import { createHttpTransport, WORKLOAD_BODY_BYTES_MAX } from "../../src/kube/connection/transport/http-transport.ts";
import { DeadlineError } from "../../src/runtime/deadline.ts";
import { systemClock } from "../../src/runtime/system.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { accessTo } from "../unit/kube/api-stub.ts";

// Attacks by HTTP itself: a BMC or the API server of a workload cluster tries to keep the agent busy, to fill its
// memory, or to pass one answer off as another.

const DEADLINE_MS = 1_500;
const GROWTH_BYTES_MAX = 64 * 1_048_576;
const HEAD = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
const answer = (body: string): string => `${HEAD}Content-Length: ${body.length}\r\n\r\n${body}`;
const TEN_KILOBYTES = "a".repeat(10_000);

/** Writes without end, as fast as the client reads. */
function flood(socket: Socket, text: string): void {
  const more = (): void => {
    while (!socket.destroyed && socket.write(text));
  };
  socket.on("drain", more);
  more();
}

interface Case {
  /** Called when a request has arrived. */
  serve(socket: Socket): void;
}

const HOSTILE: Readonly<Record<string, Case>> = {
  "informational answers without end": {
    serve: (socket) => flood(socket, "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(400)),
  },
  "another protocol that was not requested": {
    serve: (socket) => {
      socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n");
    },
  },
  "an extension of a chunk without end": {
    serve: (socket) => {
      socket.write(`${HEAD}Transfer-Encoding: chunked\r\n\r\n5;x=`);
      flood(socket, TEN_KILOBYTES);
    },
  },
  "trailers without end": {
    serve: (socket) => {
      socket.write(`${HEAD}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n`);
      flood(socket, `X-A: ${TEN_KILOBYTES}\r\n`);
    },
  },
  "headers without end": {
    serve: (socket) => {
      socket.write(HEAD);
      flood(socket, `X-A: ${TEN_KILOBYTES}\r\n`);
    },
  },
  "a body without end": {
    serve: (socket) => {
      socket.write(`${HEAD}Connection: close\r\n\r\n"`);
      flood(socket, TEN_KILOBYTES);
    },
  },
  "two lengths": {
    serve: (socket) => void socket.write(`${HEAD}Content-Length: 2\r\nContent-Length: 200\r\n\r\n{}`),
  },
  "a length in addition to chunks": {
    serve: (socket) =>
      void socket.write(`${HEAD}Content-Length: 200\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`),
  },
  "the frames of HTTP/2": { serve: (socket) => void socket.write(Buffer.from("00000604000000000000", "hex")) },
};

/**
 * @returns the results of the calls of a client. Asserts that each ends in time and that the first one uses bounded
 * memory.
 */
async function ask(served: Case, calls: number, client: "bmc" | "api"): Promise<string[]> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.on("data", () => served.serve(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const open = client === "bmc" ? openBmc(origin) : openApi(origin);
  const ends: string[] = [];
  try {
    const before = process.memoryUsage();
    for (let call = 0; call < calls; call += 1) {
      ends.push(await open.call().catch((error: unknown) => (error as { code: string }).code));
    }
    const { heapUsed, external } = process.memoryUsage();
    const grown = heapUsed + external - before.heapUsed - before.external;
    assert.ok(grown < GROWTH_BYTES_MAX, `${grown} bytes more`);
  } finally {
    await open.close();
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  }
  return ends;
}

interface Client {
  call(): Promise<string>;
  close(): Promise<void>;
}

function openBmc(origin: string): Client {
  const deps = { clock: systemClock, logger: createLogger("silent") };
  const tls = { insecureSkipVerify: false };
  const secureContexts = new SecureContexts();
  const connection = new Connection({ origin, tls, connectTimeoutMs: 1_000, secureContexts, deps });
  return {
    call: async () => {
      const late = new AbortController();
      const timer = setTimeout(() => late.abort(new DeadlineError("the call", DEADLINE_MS)), DEADLINE_MS);
      try {
        const { body } = await connection.send({ method: "GET", path: "/redfish/v1" }, late.signal);
        return JSON.stringify(body);
      } finally {
        clearTimeout(timer);
      }
    },
    close: () => connection.destroy(),
  };
}

function openApi(origin: string): Client {
  const options = { bodyBytesMax: WORKLOAD_BODY_BYTES_MAX, allowLocal: true };
  const transport = createHttpTransport(accessTo(origin), { clock: systemClock }, options);
  const request = { method: "GET", path: "/version", lane: "api", timeoutMs: DEADLINE_MS } as const;
  return {
    call: async () => (await transport.send(request, new AbortController().signal)).body,
    close: () => transport.close(),
  };
}

const FAILED = /^(BadResponse|Unreachable|Network|Timeout)$/;

for (const client of ["bmc", "api"] as const) {
  describe(`an odd server that the ${client} client calls`, () => {
    for (const [what, served] of Object.entries(HOSTILE)) {
      it(`a server that sends ${what} to the ${client} client holds a call no longer than its deadline, and fills no memory`, async () => {
        const [end = ""] = await ask(served, 1, client);
        assert.match(end, FAILED);
      });
    }

    it(`a server that answers a call of the ${client} client twice does not answer the next call with the second answer`, async () => {
      const twice = `${answer('{"asked":1}')}${answer('{"late":1}')}`;
      const ends = await ask({ serve: (socket) => socket.write(twice) }, 3, client);
      assert.ok(
        ends.every((end) => !end.includes("late")),
        ends.join(" "),
      );
      assert.ok(ends.includes('{"asked":1}'), ends.join(" "));
    });
  });
}
