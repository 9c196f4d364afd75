import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { parseAllDocuments } from "yaml";
import { objectOf, textOf } from "../../hack/kube-mock/json.ts";
import { Api } from "./api.ts";
import type { Answer } from "./api.ts";
import { connect, RUN } from "./real-server.ts";

// The ValidatingAdmissionPolicy that ironfence ships for deletions, which CRD rules do not see.

const CHECKS = "/apis/remediation.medik8s.io/v1alpha1/nodehealthchecks";
const ADMISSION = "/apis/admissionregistration.k8s.io/v1";
/** How long a new policy may take to have effect, and how often the test checks. */
const ENFORCED_TIMEOUT_MS = 60_000;
const ENFORCED_POLL_MS = 500;
const PLURALS: Readonly<Record<string, string>> = {
  ValidatingAdmissionPolicy: "validatingadmissionpolicies",
  ValidatingAdmissionPolicyBinding: "validatingadmissionpolicybindings",
};

let server: Awaited<ReturnType<typeof connect>>;
let api: Api;
const installed: string[] = [];

before(async () => {
  server = await connect();
  api = new Api({ ...server, namespace: "default" });
  const manifest = readFileSync(new URL("../../deploy/kustomize/admission.yaml", import.meta.url), "utf8");
  for (const document of parseAllDocuments(manifest)) {
    const object = objectOf(document.toJS());
    const path = `${ADMISSION}/${PLURALS[textOf(object["kind"])] ?? ""}`;
    const answer = await api.send("POST", path, object);
    assert.ok(answer.status === 201 || answer.status === 409, JSON.stringify(answer.body));
    installed.push(`${path}/${textOf(objectOf(object["metadata"])["name"])}`);
  }
});
after(async () => {
  for (const path of installed.reverse()) await api.send("DELETE", path);
  api.close();
  await server.close();
});

async function create(name: string, nodes: string[]): Promise<string> {
  const remediationTemplate = { apiVersion: "ironfence.io/v1alpha1", kind: "BareMetalRemediationTemplate", name: "t" };
  const spec = { selector: { matchLabels: { pool: "a" } }, remediationTemplate };
  const type = { apiVersion: "remediation.medik8s.io/v1alpha1", kind: "NodeHealthCheck" };
  const answer = await api.send("POST", CHECKS, { ...type, metadata: { name }, spec });
  assert.equal(answer.status, 201, JSON.stringify(answer.body));
  const path = `${CHECKS}/${name}`;
  await remediating(path, nodes);
  return path;
}

async function remediating(path: string, nodes: string[]): Promise<void> {
  const started = "2026-01-01T00:00:00Z";
  const inFlightRemediations = nodes.length === 0 ? null : Object.fromEntries(nodes.map((name) => [name, started]));
  // A node stays listed as unhealthy after its remediation has failed.
  const status = { inFlightRemediations, unhealthyNodes: [{ name: "worker-1" }] };
  const answer = await api.merge(`${path}/status`, { status });
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
}

const remove = (path: string): Promise<Answer> => api.send("DELETE", `${path}?dryRun=All`);

/** Repeats the deletion until the policy refuses it. */
async function whenRefused(path: string): Promise<Answer> {
  const deadlineMs = performance.now() + ENFORCED_TIMEOUT_MS;
  for (;;) {
    const answer = await remove(path);
    if (answer.status !== 200 || performance.now() > deadlineMs) return answer;
    await sleep(ENFORCED_POLL_MS);
  }
}

test("a health check whose nodes are being remediated cannot be deleted; one that is at rest can, unhealthy nodes or not", async () => {
  const busy = await create(`busy-${RUN}`, ["worker-1", "worker-2"]);
  const answer = await whenRefused(busy);
  assert.equal(answer.status, 403, JSON.stringify(answer.body));
  assert.match(textOf(objectOf(answer.body)["message"]), /being remediated \(worker-[12], worker-[12]\)/);

  const calm = await create(`calm-${RUN}`, []);
  assert.equal((await api.send("DELETE", calm)).status, 200);

  await remediating(busy, []);
  assert.equal((await api.send("DELETE", busy)).status, 200);
});
