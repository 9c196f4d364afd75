import { createKubeClient } from "../../src/kube/api-client/api-client.ts";
import type { KubeClient } from "../../src/kube/client.ts";
import { loadCluster } from "../../src/kube/connection/credentials/credentials.ts";
import { createHttpTransport } from "../../src/kube/connection/transport/http-transport.ts";
import { Secret } from "../../src/runtime/secret.ts";
import { systemClock, systemRandom } from "../../src/runtime/system.ts";
import type { ControlPlane } from "../control-plane/control-plane.ts";
import { createCertificateAuthority } from "../lib/pki.ts";
import type { CertificateAuthority } from "../lib/pki.ts";
import type { HostSpec } from "../rack/host.ts";
import { createRack } from "../rack/rack.ts";
import type { Rack } from "../rack/rack.ts";
import { startRedfishMock } from "../redfish-mock/server.ts";

const USERNAME = "fencing";
const PASSWORD = "correct-horse";
const DEPS = { clock: systemClock, random: systemRandom };

/** A rack behind a Redfish server. The rack has the real power state of the hosts. */
export interface SimulatedHosts {
  readonly rack: Rack;
  /** Signs the certificates of other servers in this world. */
  readonly authority: CertificateAuthority;
  /** The data of the Secret with the account of the BMCs. */
  readonly login: { username: string; password: string; "ca.crt": string };
  /** The address of a host's BMC, in the notation of a BareMetalHost and a FencingTarget. */
  address(host: string): string;
  close(): Promise<void>;
}

/** A pattern for the addresses of all simulated BMCs, for the annotation of their Secret. */
export const ALL_SIMULATED = "https://127.0.0.1:*, ipmi://127.0.0.1:*";

/** Starts the hosts, each with one BMC. */
export async function startSimulatedHosts(hosts: readonly HostSpec[]): Promise<SimulatedHosts> {
  const rack = createRack({ ...DEPS, hosts });
  const authority = await createCertificateAuthority(systemClock, "simulated hosts");
  const tls = await authority.issue({ commonName: "bmc", ipAddresses: ["127.0.0.1"], usage: "server" });
  const account = { username: USERNAME, password: new Secret(PASSWORD) };
  const redfish = await startRedfishMock({ ...DEPS, rack, tls, ...account, sessionsMax: 2 * hosts.length });
  return {
    rack,
    authority,
    login: { username: USERNAME, password: PASSWORD, "ca.crt": authority.certPem },
    address: (host) => redfish.url.replace(/^https/, "redfish") + redfish.systemPath(host),
    close: async () => {
      await redfish.close();
      rack.stop();
    },
  };
}

/** Opens the agent's client with the permissions of an administrator, for simulated controllers. */
export async function openClient({
  kubeconfig,
}: Pick<ControlPlane, "kubeconfig">): Promise<{ client: KubeClient; close: () => Promise<void> }> {
  const transport = createHttpTransport(await loadCluster({ kubeconfig }), DEPS);
  return { client: createKubeClient({ ...DEPS, transport }), close: () => transport.close() };
}
