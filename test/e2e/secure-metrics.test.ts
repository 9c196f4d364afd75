import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { Agent as HttpAgent, request } from "undici";
import { startControlPlane } from "../../hack/control-plane/control-plane.ts";
import type { ControlPlane } from "../../hack/control-plane/control-plane.ts";
import { startAgent } from "../../hack/e2e/agent.ts";
import type { Agent } from "../../hack/e2e/agent.ts";
import { eventually } from "../../hack/e2e/eventually.ts";
import { NAMESPACE, repositoryPath } from "../../hack/e2e/world.ts";
import { applyManifests, applyObject } from "../../hack/lib/apply.ts";
import { createCertificateAuthority } from "../../hack/lib/pki.ts";
import { freePorts } from "../../hack/lib/ports.ts";
import { systemClock } from "../../src/runtime/system.ts";

const HOST = "127.0.0.1";
const START_TIMEOUT_MS = 120_000;
const LEAD_TIMEOUT_MS = 90_000;
const PAGE_TIMEOUT_MS = 30_000;
const RBAC = "rbac.authorization.k8s.io";

void describe("with --metrics-secure", () => {
  let controlPlane: ControlPlane;
  let agents: Agent[] = [];
  let origins: string[];
  let client: HttpAgent;
  const tokens: Record<string, string> = {};

  before(async () => {
    controlPlane = await startControlPlane(
      { progress: () => undefined, nodeMonitorGracePeriodMs: 50_000 },
      AbortSignal.timeout(START_TIMEOUT_MS),
    );
    const { api, folder } = controlPlane;
    for (const folder of ["node-health-check", "kustomize", "secure-metrics"]) {
      await applyManifests(api, repositoryPath(`deploy/${folder}`));
    }
    for (const name of ["prometheus", "stranger"]) {
      const metadata = { namespace: "default", name };
      await applyObject(api, { apiVersion: "v1", kind: "ServiceAccount", metadata });
      const { status } = (await api.create(`/api/v1/namespaces/default/serviceaccounts/${name}/token`, {
        apiVersion: "authentication.k8s.io/v1",
        kind: "TokenRequest",
        spec: { expirationSeconds: 3_600 },
      })) as { status: { token: string } };
      tokens[name] = status.token;
    }
    await applyObject(api, {
      apiVersion: `${RBAC}/v1`,
      kind: "ClusterRoleBinding",
      metadata: { name: "prometheus" },
      roleRef: { apiGroup: RBAC, kind: "ClusterRole", name: "ironfence-metrics-reader" },
      subjects: [{ kind: "ServiceAccount", namespace: "default", name: "prometheus" }],
    });
    const authority = await createCertificateAuthority(systemClock, "monitoring");
    const { certPem, keyPem } = await authority.issue({ commonName: HOST, ipAddresses: [HOST], usage: "server" });
    await writeFile(join(folder, "tls.crt"), certPem);
    await writeFile(join(folder, "tls.key"), keyPem);
    client = new HttpAgent({ connect: { ca: authority.certPem } });
    const ports = await freePorts(2);
    origins = ports.map((port) => `https://${HOST}:${port}`);
    agents = await Promise.all(
      ports.map((port, index) =>
        startAgent({ controlPlane }, `agent-${index}`, [
          "--metrics-secure=true",
          `--metrics-cert-path=${folder}`,
          `--metrics-bind-address=${HOST}:${port}`,
        ]),
      ),
    );
  });
  after(async () => {
    await Promise.all(agents.map((agent) => agent.stop()));
    await client?.close();
    await controlPlane?.stop();
  });

  /** What every agent answers, the one that leads and the one that waits. */
  async function statusesOf(token: string | undefined): Promise<number[]> {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    return await Promise.all(
      origins.map(async (origin) => {
        const { statusCode, body } = await request(`${origin}/metrics`, { dispatcher: client, headers });
        await body.dump();
        return statusCode;
      }),
    );
  }

  void test("each agent shows metrics to whom the API server allows it, whether it leads or not", async () => {
    await eventually("one leads", LEAD_TIMEOUT_MS, async () => {
      const leases = await controlPlane.api.list(`/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases`);
      return leases.length === 1;
    });
    await eventually(
      "both answer",
      PAGE_TIMEOUT_MS,
      async () => {
        const statuses = await statusesOf(tokens["prometheus"]).catch(() => []);
        return statuses.length === 2 && statuses.every((status) => status === 200);
      },
      async () => agents.map((agent) => agent.log()).join("\n"),
    );
  });

  void test("and to nobody else", async () => {
    assert.deepEqual(await statusesOf(tokens["stranger"]), [403, 403]);
    assert.deepEqual(await statusesOf("no-token-of-anybody"), [401, 401]);
    assert.deepEqual(await statusesOf(undefined), [401, 401]);
  });
});
