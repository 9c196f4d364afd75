import { createServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { commandSchema, runCommand } from "../rack/commands.ts";
import type { Host } from "../rack/host.ts";
import type { Rack } from "../rack/rack.ts";
import { faultRuleSchema } from "./faults.ts";
import type { RedfishMock } from "./server.ts";

/** Help for whoever asks for `/`. */
export const CONTROL_HELP = `GET    /hosts                 what is truly so
POST   /hosts/NAME            a command, e.g. {"do":"hang"} or {"do":"reachability","reachability":"silent"}
POST   /bmcs/NAME/faults      a fault, e.g. {"match":{"method":"POST"},"times":1,"action":{"type":"drop","effect":"done"}}
DELETE /bmcs/NAME/faults      all faults off
GET    /bmcs/NAME/requests    what the server was asked
`;

const BODY_BYTES_MAX = 64 * 1024;

/**
 * Starts the control endpoint: it shows what is true of the rack, and switches faults. It is for tests and for people, listens
 * on 127.0.0.1, and asks for no password.
 */
export async function startControlEndpoint(options: {
  rack: Rack;
  /** Servers by the name that stands in `/bmcs/NAME`. */
  mocks: ReadonlyMap<string, RedfishMock>;
  /** 0, any free port, where absent. */
  port?: number;
}): Promise<{ url: string; close: () => Promise<void> }> {
  const { rack, mocks } = options;
  const server = createServer((request, response) => {
    answer(rack, mocks, request).then(
      ({ status, body }) => send(response, status, body),
      (error: unknown) => send(response, 400, { error: error instanceof Error ? error.message : String(error) }),
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port ?? 0, "127.0.0.1", () => resolve());
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function answer(
  rack: Rack,
  mocks: ReadonlyMap<string, RedfishMock>,
  request: IncomingMessage,
): Promise<{ status: number; body: unknown }> {
  const { pathname } = new URL(request.url ?? "/", "http://mock");
  const [kind = "", name = "", what = ""] = pathname.slice(1).split("/").map(decodeURIComponent);
  const mock = mocks.get(name);
  switch (`${request.method} ${kind}/${what}`) {
    case "GET /":
      return { status: 200, body: CONTROL_HELP };
    case "GET hosts/":
      return { status: 200, body: rack.hosts.map(describe) };
    case "POST hosts/":
      runCommand(rack, name, commandSchema.parse(await readJson(request)));
      return { status: 200, body: describe(rack.host(name)) };
    case "POST bmcs/faults":
      mock?.addFault(faultRuleSchema.parse(await readJson(request)));
      break;
    case "DELETE bmcs/faults":
      mock?.clearFaults();
      break;
    case "GET bmcs/requests":
      return { status: mock === undefined ? 404 : 200, body: mock?.requests ?? [] };
    default:
      return { status: 404, body: CONTROL_HELP };
  }
  return mock === undefined ? { status: 404, body: { error: `no BMC is named ${name}` } } : { status: 200, body: {} };
}

function describe(host: Host): Record<string, unknown> {
  const { name, power, os, bootID, machineID, canWrite, diskFailed, mains, orders } = host;
  return { name, power, os, bootID, machineID, canWrite, diskFailed, mains, orders };
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  let text = "";
  for await (const chunk of request) {
    text += String(chunk);
    if (text.length > BODY_BYTES_MAX) throw new Error("the request body is too large");
  }
  return JSON.parse(text);
}

function send(response: ServerResponse, status: number, body: unknown): void {
  const isText = typeof body === "string";
  response.writeHead(status, { "content-type": isText ? "text/plain" : "application/json" });
  response.end(isText ? body : `${JSON.stringify(body, undefined, 2)}\n`);
}
