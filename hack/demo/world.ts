import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createKubeClient } from "../../src/kube/api-client/api-client.ts";
import { Secret } from "../../src/runtime/secret.ts";
import { systemClock, systemRandom } from "../../src/runtime/system.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import type { ApiServer } from "../kube-mock/api-server.ts";
import { startClusterControllers } from "../kube-mock/controllers/cluster-controllers.ts";
import { startKubeMock } from "../kube-mock/kube-mock.ts";
import { readCrds } from "../lib/crds.ts";
import { createCertificateAuthority } from "../lib/pki.ts";
import { startKubelets } from "../rack/kubelet.ts";
import type { Rack } from "../rack/rack.ts";
import { createRack } from "../rack/rack.ts";
import type { RedfishMock } from "../redfish-mock/server.ts";
import { startRedfishMock } from "../redfish-mock/server.ts";
import type { BmcAccess } from "./objects.ts";
import { BMC_USERNAME, createObjects, NODE_NAMES } from "./objects.ts";

/** A small cluster on this machine: six simulated hosts with their BMCs, and an API server in memory. */
export interface World {
  server: ApiServer;
  rack: Rack;
  bmcs: ReadonlyMap<string, RedfishMock>;
  /** Kubeconfig by which kubectl and the agent reach this API server. */
  kubeconfigPath: string;
  stop(): Promise<void>;
}

// The demo's cluster is faster than a real one, so that three outages fit into a minute: a node is Unknown 2 s after
// its last renewal instead of 40 s, and hosts boot in seconds.
const KUBELET = { leasePeriodMs: 300, leaseDurationSeconds: 1, statusPeriodMs: 300, podPeriodMs: 200 };
const CONTROLLERS = {
  nodeLifecycle: { monitorPeriodMs: 200, monitorGracePeriodMs: 2_000 },
  taintEviction: { lagMs: 50 },
  statefulSets: { lagMs: 50 },
  scheduler: { lagMs: 50 },
  volumes: { attachLagMs: 100, detachLagMs: 100, forceDetachMs: 60_000 },
};
const HOST = { powerOffDelayMs: 800, powerOnDelayMs: 300, bootMs: 1_500, reprovisionMs: 2_500 };

/** Builds the world in `folder`, which must exist and be empty. */
export async function startWorld(folder: string): Promise<World> {
  const clock = systemClock;
  const random = systemRandom;
  const stopping = new AbortController();
  const rack = createRack({ clock, random, hosts: NODE_NAMES.map((name) => ({ name, ...HOST })) });
  const kube = await startKubeMock({ clock, random, tls: true });
  for (const yaml of await readCrds()) kube.server.load(yaml);
  const kubeconfigPath = join(folder, "kubeconfig");
  await writeFile(kubeconfigPath, kube.kubeconfig, { mode: 0o600 });

  const ca = await createCertificateAuthority(clock, "demo BMC CA");
  const certificate = await ca.issue({ commonName: "bmc", ipAddresses: ["127.0.0.1"], usage: "server" });
  const password = new Secret(random.uuid());
  const bmcs = new Map<string, RedfishMock>();
  for (const name of NODE_NAMES) {
    const tls = { certPem: certificate.certPem, keyPem: certificate.keyPem };
    bmcs.set(
      name,
      await startRedfishMock({ rack, clock, random, hosts: [name], tls, username: BMC_USERNAME, password }),
    );
  }

  const access: BmcAccess = {
    urls: new Map([...bmcs].map(([name, bmc]) => [name, bmc.url])),
    password,
    caPem: ca.certPem,
  };
  const client = createKubeClient({ transport: kube.server.transport({ client: "kubelet" }), clock, random });
  createObjects(kube.server, access);
  const kubelets = startKubelets({ rack, client, clock, logger: createLogger("silent") }, KUBELET, stopping.signal);
  const stopControllers = startClusterControllers({ server: kube.server, clock }, CONTROLLERS);

  return {
    server: kube.server,
    rack,
    bmcs,
    kubeconfigPath,
    stop: async () => {
      stopping.abort(new Error("the demo is over"));
      await kubelets;
      stopControllers();
      rack.stop();
      await Promise.all([...bmcs.values()].map((bmc) => bmc.close()));
      await kube.close();
    },
  };
}
