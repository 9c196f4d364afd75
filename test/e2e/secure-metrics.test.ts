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

void describe("with --metrics-secure and --status-bind-address", () => {
  let controlPlane: ControlPlane;
  let agents: Agent[] = [];
  let origins: string[];
  let statusOrigins: string[];
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
    for (const name of ["prometheus", "viewer", "stranger"]) {
      const metadata = { namespace: "default", name };
      await applyObject(api, { apiVersion: "v1", kind: "ServiceAccount", metadata });
      const { status } = (await api.create(`/api/v1/namespaces/default/serviceaccounts/${name}/token`, {
        apiVersion: "authentication.k8s.io/v1",
        kind: "TokenRequest",
        spec: { expirationSeconds: 3_600 },
      })) as { status: { token: string } };
      tokens[name] = status.token;
    }
    for (const [name, role] of [
      ["prometheus", "ironfence-metrics-reader"],
      ["viewer", "ironfence-status-reader"],
    ] as const) {
      await applyObject(api, {
        apiVersion: `${RBAC}/v1`,
        kind: "ClusterRoleBinding",
        metadata: { name },
        roleRef: { apiGroup: RBAC, kind: "ClusterRole", name: role },
        subjects: [{ kind: "ServiceAccount", namespace: "default", name }],
      });
    }
    await applyObject(api, { apiVersion: "v1", kind: "Node", metadata: { name: "worker-1" } });
    const authority = await createCertificateAuthority(systemClock, "monitoring");
    const { certPem, keyPem } = await authority.issue({ commonName: HOST, ipAddresses: [HOST], usage: "server" });
    await writeFile(join(folder, "tls.crt"), certPem);
    await writeFile(join(folder, "tls.key"), keyPem);
    client = new HttpAgent({ connect: { ca: authority.certPem } });
    const ports = await freePorts(2);
    const statusPorts = await freePorts(2);
    statusOrigins = statusPorts.map((port) => `https://${HOST}:${port}`);
    origins = ports.map((port) => `https://${HOST}:${port}`);
    agents = await Promise.all(
      ports.map((port, index) =>
        startAgent({ controlPlane }, `agent-${index}`, [
          "--metrics-secure=true",
          `--metrics-cert-path=${folder}`,
          `--metrics-bind-address=${HOST}:${port}`,
          `--status-bind-address=${HOST}:${statusPorts[index] ?? 0}`,
          `--status-cert-path=${folder}`,
        ]),
      ),
    );
  });
  after(async () => {
    await Promise.all(agents.map((agent) => agent.stop()));
    await client?.close();
    await controlPlane?.stop();
  });

  /** The answers of all agents: the leader and the one that waits. */
  async function statusesOf(token: string | undefined): Promise<number[]> {
    return (await answersTo(token, origins, "/metrics")).map(({ status }) => status);
  }

  async function answersTo(token: string | undefined, of: readonly string[], path: string) {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    return await Promise.all(
      of.map(async (origin) => {
        const { statusCode: status, body } = await request(`${origin}${path}`, { dispatcher: client, headers });
        return { status, text: await body.text() };
      }),
    );
  }

  void test("each agent shows metrics to users that the API server allows to read them, whether it leads or not", async () => {
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

  void test("each agent shows the dashboard to users that the API server allows to read it, with the permissions of the agent alone", async () => {
    for (const { status, text } of await answersTo(tokens["viewer"], statusOrigins, "/")) {
      assert.equal(status, 200);
      assert.match(text, /Could we fence\?/);
      assert.match(text, /no FencingTarget in namespace ironfence-system names the node/);
      assert.doesNotMatch(text, /not shown/, "everything that it shows may be read");
    }
    for (const { status, text } of await answersTo(tokens["viewer"], statusOrigins, "/nodes/worker-1")) {
      assert.equal(status, 200);
      assert.match(text, /are not shown: run ironfence explain node/);
    }
    for (const [token, status] of [
      [tokens["prometheus"], 403],
      [tokens["stranger"], 403],
      ["no-token-of-anybody", 401],
      [undefined, 401],
    ] as const) {
      for (const path of ["/", "/nodes/worker-1", "/events"]) {
        for (const answer of await answersTo(token, statusOrigins, path)) {
          assert.equal(answer.status, status, path);
          assert.doesNotMatch(answer.text, /worker-1/);
        }
      }
    }
  });

  void test("no agent shows metrics or the dashboard to anyone else", async () => {
    assert.deepEqual(await statusesOf(tokens["stranger"]), [403, 403]);
    assert.deepEqual(await statusesOf("no-token-of-anybody"), [401, 401]);
    assert.deepEqual(await statusesOf(undefined), [401, 401]);
  });
});
