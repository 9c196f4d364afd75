import { createServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { commandSchema, runCommand } from "./commands.ts";
import type { Host } from "./host.ts";
import type { Rack } from "./rack.ts";

/** A mock of a BMC, of any protocol, to which faults can be added. */
export interface FaultyBmc {
  /** @param rule plain JSON in the format of the mock. @throws Error if the rule is invalid. */
  addFault(rule: unknown): unknown;
  clearFaults(): void;
  readonly requests: readonly unknown[];
  readonly sessionCount: number;
}

/** Help for a client that requests `/`. @param exampleFault a valid rule for the mocks. */
export function controlHelp(exampleFault: object): string {
  return `GET    /hosts                 what is truly so
POST   /hosts/NAME            a command, for example {"do":"hang"}
POST   /bmcs/NAME/faults      a fault, for example ${JSON.stringify(exampleFault)}
DELETE /bmcs/NAME/faults      all faults off
GET    /bmcs/NAME/requests    what the BMC was asked
GET    /bmcs/NAME/sessions    how many sessions it holds
`;
}

const BODY_BYTES_MAX = 64 * 1024;

/**
 * Starts the control endpoint, which shows the real state of the rack and injects faults. It is for tests and manual
 * use, listens on 127.0.0.1, and needs no password.
 */
export async function startControlEndpoint(options: {
  rack: Rack;
  /** Mocks by the name in `/bmcs/NAME`. */
  bmcs: ReadonlyMap<string, FaultyBmc>;
  help: string;
  /** 0, any free port, by default. */
  port?: number;
}): Promise<{ url: string; close: () => Promise<void> }> {
  const server = createServer((request, response) => {
    answer(options, request).then(
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
  { rack, bmcs, help }: { rack: Rack; bmcs: ReadonlyMap<string, FaultyBmc>; help: string },
  request: IncomingMessage,
): Promise<{ status: number; body: unknown }> {
  const { pathname } = new URL(request.url ?? "/", "http://mock");
  const [kind = "", name = "", what = ""] = pathname.slice(1).split("/").map(decodeURIComponent);
  const route = `${request.method} ${kind}/${what}`;
  switch (route) {
    case "GET /":
      return { status: 200, body: help };
    case "GET hosts/":
      return { status: 200, body: rack.hosts.map(describe) };
    case "POST hosts/":
      runCommand(rack, name, commandSchema.parse(await readJson(request)));
      return { status: 200, body: describe(rack.host(name)) };
    default:
  }
  if (kind !== "bmcs") return { status: 404, body: help };
  const bmc = bmcs.get(name);
  if (bmc === undefined) return { status: 404, body: { error: `no BMC is named ${name}` } };
  switch (route) {
    case "POST bmcs/faults":
      bmc.addFault(await readJson(request));
      return { status: 200, body: {} };
    case "DELETE bmcs/faults":
      bmc.clearFaults();
      return { status: 200, body: {} };
    case "GET bmcs/requests":
      return { status: 200, body: bmc.requests };
    case "GET bmcs/sessions":
      return { status: 200, body: { sessions: bmc.sessionCount } };
    default:
      return { status: 404, body: help };
  }
}

function describe(host: Host): Record<string, unknown> {
  const { name, power, os, bootID, machineID, bootSetting, canWrite, diskFailed, mains, orders } = host;
  return { name, power, os, bootID, machineID, bootSetting, canWrite, diskFailed, mains, orders };
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
