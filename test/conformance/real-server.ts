import { randomBytes } from "node:crypto";
import { parseAllDocuments } from "yaml";
import { readCrds } from "../../hack/lib/crds.ts";
import { objectOf, textOf } from "../../hack/kube-mock/json.ts";
import { loadCluster } from "../../src/kube/connection/credentials/credentials.ts";
import { createHttpTransport } from "../../src/kube/connection/transport/http-transport.ts";
import { systemClock } from "../../src/runtime/system.ts";
import { Api } from "./api.ts";
import type { ServerUnderTest } from "./cases.ts";

const COMPACTION_TIMEOUT_MS = 20_000;

/** Distinguishes the objects of this run from those of earlier runs on the same server. */
export const RUN = randomBytes(3).toString("hex");

/**
 * Connects to the real API server of `IRONFENCE_E2E_KUBECONFIG`, whose etcd is at `IRONFENCE_E2E_ETCD`, and installs
 * our CRDs if they are missing.
 */
export async function connect(): Promise<ServerUnderTest & { close: () => Promise<void> }> {
  const kubeconfig = variable("IRONFENCE_E2E_KUBECONFIG");
  const etcdUrl = variable("IRONFENCE_E2E_ETCD");
  const transport = createHttpTransport(await loadCluster({ kubeconfig }), { clock: systemClock });
  const api = new Api({ transport, namespace: "default", compact: async () => undefined });
  for (const yaml of await readCrds()) {
    for (const document of parseAllDocuments(yaml)) await api.install(objectOf(document.toJS()));
  }
  return { transport, compact: () => compact(etcdUrl), close: () => transport.close() };
}

function variable(name: string): string {
  const value = process.env[name];
  if (value === undefined || value === "") {
    throw new Error(`${name} is not set: these tests need a running control plane; \`npm run test:e2e\` starts one`);
  }
  return value;
}

/** Makes etcd drop all revisions before the newest. */
async function compact(etcdUrl: string): Promise<void> {
  const call = async (path: string, body: object): Promise<unknown> => {
    const signal = AbortSignal.timeout(COMPACTION_TIMEOUT_MS);
    const response = await fetch(`${etcdUrl}${path}`, { method: "POST", body: JSON.stringify(body), signal });
    if (!response.ok) throw new Error(`etcd answers ${path} with ${response.status}: ${await response.text()}`);
    return response.json();
  };
  const status = objectOf(await call("/v3/maintenance/status", {}));
  const revision = textOf(objectOf(status["header"])["revision"]);
  await call("/v3/kv/compaction", { revision, physical: true });
}
