import { createServer } from "node:https";
import type { IncomingMessage, ServerResponse } from "node:http";
import { systemClock } from "../../src/runtime/system.ts";
import { createCertificateAuthority } from "../lib/pki.ts";

// Runs API servers of workload clusters that try to bring the agent down, each in its own way. Prints their kubeconfigs
// as a JSON array on one line.

const HOST = "127.0.0.1";
const PAGE = 25;
const JSON_TYPE = { "content-type": "application/json" };

let made = 0;
const node = (rest = ""): string => {
  made += 1;
  return `{"metadata":{"name":"n${made}","uid":"u${made}","resourceVersion":"${made}"}${rest}}`;
};
const list = (items: readonly string[], more: boolean): string =>
  `{"metadata":{"resourceVersion":"1"${more ? ',"continue":"x"' : ""}},"items":[${items.join(",")}]}`;
const many = (count: number, rest?: string): string[] => Array.from({ length: count }, () => node(rest));

/** A node with so many unknown fields that the answer has the maximum length. */
const MANY_FIELDS = list(
  [node(`,${Array.from({ length: 400_000 }, (_, key) => `"${key.toString(36)}":0`).join(",")}`)],
  true,
);
const HUGE_PAGE = list(many(60_000), true);

/** A page without nodes that names a next page. Blanks make it as long as an answer may be. */
const EMPTY_PAGE = list([], true) + " ".repeat(4_000_000);

interface Hostile {
  nodes: () => string;
  /** Sends the nodes in chunks of one byte. */
  bytewise?: boolean;
  event?: () => string;
}

const HOSTILE: readonly Hostile[] = [
  // Infinitely many pages, each of the requested size.
  { nodes: () => list(many(PAGE), true) },
  // Pages of 60,000 objects.
  { nodes: () => HUGE_PAGE },
  // Infinitely many objects that cannot be parsed.
  { nodes: () => list(many(PAGE, ',"status":{"conditions":1}'), true) },
  // A watch that adds new names as fast as the client reads them.
  { nodes: () => list([], false), event: () => `{"type":"ADDED","object":${node()}}\n` },
  // A watch that changes one node as fast as the client reads it.
  {
    nodes: () => list([], false),
    event: () =>
      `{"type":"MODIFIED","object":{"metadata":{"name":"n","uid":"u","resourceVersion":"${(made += 1)}"},"status":{"conditions":[{"type":"Ready","status":"${made % 2 === 0}"}]}}}\n`,
  },
  // Pages of one object with 400,000 fields.
  { nodes: () => MANY_FIELDS },
  // Pages without nodes, of 4 MiB, in chunks of one byte.
  { nodes: () => EMPTY_PAGE, bytewise: true },
];

const authority = await createCertificateAuthority(systemClock, "hostile");
const { certPem: cert, keyPem: key } = await authority.issue({
  commonName: HOST,
  ipAddresses: [HOST],
  usage: "server",
});

async function serve({ nodes, event, bytewise = false }: Hostile): Promise<string> {
  const answer = ({ url = "" }: IncomingMessage, response: ServerResponse): void => {
    if (bytewise && url.startsWith("/api/v1/nodes")) {
      sendBytewise(response, nodes());
      return;
    }
    response.writeHead(200, JSON_TYPE);
    if (url.includes("watch=true")) {
      if (event !== undefined) pump(response, event);
      return;
    }
    const namespace = `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kube-system","uid":"z","resourceVersion":"1"}}`;
    response.end(url.startsWith("/api/v1/nodes") ? nodes() : namespace);
  };
  const server = createServer({ key, cert }, answer);
  await new Promise<void>((resolve) => server.listen(0, HOST, resolve));
  const address = server.address();
  const port = typeof address === "object" ? address?.port : 0;
  return JSON.stringify({
    "current-context": "c",
    contexts: [{ name: "c", context: { cluster: "k", user: "u" } }],
    clusters: [
      {
        name: "k",
        cluster: {
          server: `https://${HOST}:${port}`,
          "certificate-authority-data": Buffer.from(authority.certPem).toString("base64"),
        },
      },
    ],
    users: [{ name: "u", user: { token: "t" } }],
  });
}

/**
 * Writes the chunks to the socket directly, because ServerResponse would need a call and several objects for each of
 * them.
 */
function sendBytewise({ socket }: ServerResponse, body: string): void {
  if (socket === null) return;
  socket.write("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n");
  let sent = 0;
  const more = (): void => {
    while (!socket.destroyed && sent < body.length) {
      const part = body.slice(sent, sent + 10_000);
      sent += part.length;
      if (!socket.write(part.replaceAll(/[^]/gu, "1\r\n$&\r\n"))) {
        socket.once("drain", more);
        return;
      }
    }
    socket.end("0\r\n\r\n");
  };
  more();
}

function pump(response: ServerResponse, event: () => string): void {
  const more = (): void => {
    while (!response.destroyed) {
      const events = Array.from({ length: 500 }, event).join("");
      if (!response.write(events)) break;
    }
  };
  response.on("drain", more);
  more();
}

process.stdout.write(`${JSON.stringify(await Promise.all(HOSTILE.map(serve)))}\n`);
