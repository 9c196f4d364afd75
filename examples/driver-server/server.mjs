// A driver server for virtual machines of libvirt, without dependencies. It is the reference for
// docs/reference/driver.md.
//
//   HOSTS=worker-1,worker-2 TLS_CERT=tls.crt TLS_KEY=tls.key CLIENT_CA=client-ca.crt PORT=8443 node server.mjs
//
// Each domain of HOSTS is a host at driver://SERVER:8443/hosts/DOMAIN. Every client with a certificate that CLIENT_CA
// has signed may power them, so use an authority of its own for ironfence. For another tool, replace `read` and
// `order`.
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import { promisify } from "node:util";

const { HOSTS = "", VIRSH = "virsh", TLS_CERT, TLS_KEY, CLIENT_CA, ADDRESS = "127.0.0.1", PORT = "8443" } = process.env;
const STATES = { running: "On", paused: "On", "in shutdown": "Changing", "shut off": "Off" };

const virsh = async (...args) => (await promisify(execFile)(VIRSH, args, { timeout: 5_000 })).stdout.trim();
const read = async (name) => {
  const systemUUID = await virsh("domuuid", name);
  return { state: STATES[await virsh("domstate", systemUUID)] ?? "Unknown", identity: { systemUUID } };
};
// Uses the UUID instead of the name, so that the order goes to the domain that was compared, or to none.
const order = (uuid, wanted) => virsh(wanted === "off" ? "destroy" : "start", uuid);

async function answer({ method, url, headers }, body) {
  const [, host, action] = /^\/hosts\/([\w.-]+)\/(status|off|on)$/.exec(url) ?? [];
  const late = Math.abs(Date.now() / 1000 - Number(headers["ironfence-time"]));
  // Refuses a request that was delayed. The comparison also refuses NaN.
  if (!(late <= 60)) return [401, { error: `the request is ${late} s away from the clock of the server` }];
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
  const failed = (error) => [error instanceof SyntaxError ? 400 : 500, { error: error.message }];
  const [status, content] = await answer(request, body).catch(failed);
  // Shows ironfence that this is the answer to this request and not to an earlier one.
  const headers = { "content-type": "application/json", "ironfence-nonce": request.headers["ironfence-nonce"] ?? "" };
  return response.writeHead(status, headers).end(JSON.stringify(content));
}

const [cert, key, ca] = [TLS_CERT, TLS_KEY, CLIENT_CA].map((file) => readFileSync(file));
// `serve` gets only requests of clients with a certificate that CLIENT_CA has signed.
const options = { cert, key, ca, requestCert: true, rejectUnauthorized: true, requestTimeout: 10_000 };
const server = createServer(
  options,
  (request, response) => void serve(request, response).catch(() => response.destroy()),
);
server.listen(Number(PORT), ADDRESS, () => console.log(`listening on ${ADDRESS}:${server.address().port}`));
