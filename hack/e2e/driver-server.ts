import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/runtime/system.ts";
import { createCertificateAuthority } from "../lib/pki.ts";
import { startChild } from "../lib/processes.ts";
import type { Rack } from "../rack/rack.ts";
import { eventually } from "./eventually.ts";
import { repositoryPath } from "./world.ts";

const START_TIMEOUT_MS = 30_000;
const STATES = { On: "running", Off: "shut off", PoweringOff: "in shutdown", PoweringOn: "in shutdown" } as const;

/** The example of a driver server, as a separate process that powers hosts of a rack. */
export interface ExampleDriverServer {
  /** The data of a Secret of type kubernetes.io/tls for this server. */
  readonly secret: { "tls.crt": string; "tls.key": string; "ca.crt": string };
  address(host: string): string;
  close(): Promise<void>;
}

/** Starts the example with a `virsh` that powers the hosts of the rack instead of virtual machines. */
export async function startExampleDriverServer(rack: Rack, hosts: readonly string[]): Promise<ExampleDriverServer> {
  const folder = await mkdtemp(join(tmpdir(), "ironfence-driver-server-"));
  const hypervisor = createServer((request, response) => {
    const [, command = "", argument = ""] = (request.url ?? "").split("/");
    const host = rack.hosts.find(({ name, spec }) => [name, spec.systemUUID].includes(argument));
    if (host === undefined) return response.writeHead(404).end();
    if (command === "destroy") host.order("ForceOff");
    if (command === "start") host.order("On");
    return response.end(command === "domuuid" ? host.spec.systemUUID : STATES[host.power]);
  });
  await new Promise<void>((resolve) => hypervisor.listen(0, "127.0.0.1", resolve));
  const { port: hypervisorPort } = hypervisor.address() as AddressInfo;
  const virsh = join(folder, "virsh");
  const script = `const answer = await fetch("http://127.0.0.1:${hypervisorPort}/" + process.argv.slice(2).join("/"));
if (!answer.ok) throw new Error("no such domain");
console.log(await answer.text());`;
  await writeFile(`${virsh}.mjs`, script);
  await writeFile(virsh, `#!/bin/sh\nexec "${process.execPath}" "${virsh}.mjs" "$@"\n`);
  await chmod(virsh, 0o700);

  const authority = await createCertificateAuthority(systemClock, "driver servers");
  const clients = await createCertificateAuthority(systemClock, "clients of driver servers");
  const server = await authority.issue({ commonName: "driver", ipAddresses: ["127.0.0.1"], usage: "server" });
  const client = await clients.issue({ commonName: "ironfence", usage: "client" });
  const file = async (name: string, text: string): Promise<string> => {
    await writeFile(join(folder, name), text);
    return join(folder, name);
  };
  const env = {
    HOSTS: hosts.join(","),
    VIRSH: virsh,
    PORT: "0",
    TLS_CERT: await file("tls.crt", server.certPem),
    TLS_KEY: await file("tls.key", server.keyPem),
    CLIENT_CA: await file("clients.crt", clients.certPem),
  };
  const logFile = join(folder, "log");
  const child = startChild("driver-server", process.execPath, [repositoryPath("examples/driver-server/server.mjs")], {
    logFile,
    env,
  });
  const port = await eventually("the driver server listens", START_TIMEOUT_MS, async () => {
    return /listening on [\d.]+:(\d+)/.exec(await readFile(logFile, "utf8"))?.[1];
  });
  return {
    secret: { "tls.crt": client.certPem, "tls.key": client.keyPem, "ca.crt": authority.certPem },
    address: (host) => `driver://127.0.0.1:${port}/hosts/${host}`,
    close: async () => {
      await child.stop();
      hypervisor.closeAllConnections();
      await new Promise((resolve) => hypervisor.close(resolve));
      await rm(folder, { recursive: true, force: true });
    },
  };
}
