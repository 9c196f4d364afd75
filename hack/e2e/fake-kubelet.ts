import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { CertificateAuthority } from "../lib/pki.ts";
import type { KubeApi } from "../lib/kube-api.ts";

/** The part of a kubelet that the API server calls when a user reads the log of a pod. */
export interface FakeKubelet {
  /** The log of every pod on its node; undefined to give no answer at all. */
  log: (pod: string, isPrevious: boolean) => string | undefined;
  close(): Promise<void>;
}

/** Registers a node whose kubelet only serves logs. The node is never Ready. */
export async function startFakeKubelet(
  { api, authority }: { api: KubeApi; authority: CertificateAuthority },
  node: string,
): Promise<FakeKubelet> {
  const tls = await authority.issue({ commonName: node, ipAddresses: ["127.0.0.1"], usage: "server" });
  const kubelet: FakeKubelet = { log: () => "", close: () => Promise.resolve() };
  const server = createServer({ key: tls.keyPem, cert: tls.certPem }, (request, response) => {
    const url = new URL(request.url ?? "/", "https://kubelet");
    const [, , , pod = ""] = url.pathname.split("/");
    const text = url.pathname.startsWith("/containerLogs/")
      ? kubelet.log(pod, url.searchParams.get("previous") === "true")
      : "";
    if (text !== undefined) response.end(text);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  kubelet.close = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  const { port } = server.address() as AddressInfo;
  await api.create("/api/v1/nodes", { apiVersion: "v1", kind: "Node", metadata: { name: node } });
  await api.mergePatch(`/api/v1/nodes/${node}/status`, {
    status: {
      addresses: [{ type: "InternalIP", address: "127.0.0.1" }],
      daemonEndpoints: { kubeletEndpoint: { Port: port } },
    },
  });
  return kubelet;
}
