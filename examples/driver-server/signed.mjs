// The driver server of server.mjs with a key instead of client certificates: it verifies the signature of each request
// and signs each answer (docs/reference/driver.md#signatures).
//
//   HOSTS=worker-1,worker-2 KEY_ID=ironfence KEY_FILE=key PORT=8080 node signed.mjs
//
// KEY_FILE contains 32 characters or more. Signatures protect requests and answers against changes, not against
// reading. If other machines on the network must not read them, put TLS in front. For another tool, replace `read` and
// `order`.
import { execFile } from "node:child_process";
import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { promisify } from "node:util";

const { HOSTS = "", VIRSH = "virsh", KEY_ID, KEY_FILE, ADDRESS = "127.0.0.1", PORT = "8080" } = process.env;
const STATES = { running: "On", paused: "On", "in shutdown": "Changing", "shut off": "Off" };
const WINDOW_S = 60;
const key = readFileSync(KEY_FILE, "utf8").trim();
if (key.length < 32) throw new Error("KEY_FILE: 32 characters or more");
const startedS = Date.now() / 1000;
const nonces = new Map();

const virsh = async (...args) => (await promisify(execFile)(VIRSH, args, { timeout: 5_000 })).stdout.trim();
const read = async (name) => {
  const systemUUID = await virsh("domuuid", name);
  return { state: STATES[await virsh("domstate", systemUUID)] ?? "Unknown", identity: { systemUUID } };
};
const order = (uuid, wanted) => virsh(wanted === "off" ? "destroy" : "start", uuid);

const sha256 = (text) => createHash("sha256").update(text).digest("hex");
const sign = (...lines) =>
  createHmac("sha256", key)
    .update(["ironfence-driver-1", ...lines].join("\n"))
    .digest("hex");

/** Why a request is refused; undefined if it is signed, recent and new. */
function refusal({ method, url, headers }, body) {
  const [id, time, nonce, given] = ["key-id", "time", "nonce", "signature"].map((name) => headers[`ironfence-${name}`]);
  const expected = sign("request", method, url, time, nonce, sha256(body));
  if (id !== KEY_ID || !/^[0-9a-f]{64}$/.test(given ?? "")) return "the request is not signed";
  if (!timingSafeEqual(Buffer.from(given), Buffer.from(expected))) return "the signature is another one";
  const nowS = Date.now() / 1000;
  // The process loses the list of used requests when it ends, so it refuses requests from before its start.
  if (!(Math.abs(nowS - Number(time)) <= WINDOW_S) || Number(time) < Math.floor(startedS))
    return `too early or late: ${time}`;
  for (const [old, untilS] of nonces) if (untilS < nowS) nonces.delete(old);
  if (nonces.has(nonce)) return "the nonce was used before";
  nonces.set(nonce, nowS + 2 * WINDOW_S);
  return undefined;
}

async function answer({ method, url }, body) {
  const [, host, action] = /^\/hosts\/([\w.-]+)\/(status|off|on)$/.exec(url) ?? [];
  if (!HOSTS.split(",").includes(host)) return [404, { error: `no such host or request: ${url}` }];
  if (method !== (action === "status" ? "GET" : "POST")) return [405, { error: `${method} is not for ${action}` }];
  const { state, identity } = await read(host);
  if (action === "status") return [200, { state, identity }];
  const { systemUUID: expected } = JSON.parse(body);
  if (typeof expected !== "string") return [400, { error: "the order names no systemUUID" }];
  const uuid = identity.systemUUID;
  if (expected.toLowerCase() !== uuid.toLowerCase()) return [409, { error: `the host is ${uuid}` }];
  if (state !== (action === "off" ? "Off" : "On")) await order(uuid, action);
  return [202, {}];
}

async function serve(request, response) {
  let body = "";
  for await (const chunk of request.setEncoding("utf8")) if ((body += chunk).length > 65_536) return request.destroy();
  const why = refusal(request, body);
  if (why !== undefined) return response.writeHead(401).end(JSON.stringify({ error: why }));
  const failed = (error) => [error instanceof SyntaxError ? 400 : 500, { error: error.message }];
  const [status, content] = await answer(request, body).catch(failed);
  const text = JSON.stringify(content);
  const signature = sign("answer", request.headers["ironfence-nonce"], status, sha256(text));
  const headers = { "content-type": "application/json", "ironfence-signature": signature };
  return response.writeHead(status, headers).end(text);
}

const server = createServer(
  { requestTimeout: 10_000 },
  (request, response) => void serve(request, response).catch(() => response.destroy()),
);
server.listen(Number(PORT), ADDRESS, () => console.log(`listening on ${ADDRESS}:${server.address().port}`));
