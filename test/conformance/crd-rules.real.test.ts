import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { objectOf } from "../../hack/kube-mock/json.ts";
import type { JsonObject } from "../../hack/kube-mock/json.ts";
import { Api, outcome } from "./api.ts";
import type { Answer } from "./api.ts";
import { connect, RUN } from "./real-server.ts";

// The CEL rules of our CRDs (x-kubernetes-validations), which only a real API server evaluates.

const PATH = "/apis/remediation.medik8s.io/v1alpha1/nodehealthchecks";
const NAME = `conformance-${RUN}`;
const TEMPLATE = {
  apiVersion: "ironfence.io/v1alpha1",
  kind: "BareMetalRemediationTemplate",
  namespace: "default",
  name: "reboot",
};
const SELECTOR = { matchLabels: { "node-role.kubernetes.io/worker": "" } };
const STEPS = [
  { remediationTemplate: TEMPLATE, order: 1, timeout: "5m" },
  { remediationTemplate: { ...TEMPLATE, name: "reprovision" }, order: 2, timeout: "30m" },
];

let server: Awaited<ReturnType<typeof connect>>;
let api: Api;

before(async () => {
  server = await connect();
  api = new Api({ ...server, namespace: "default" });
});
after(async () => {
  await api.send("DELETE", `${PATH}/${NAME}`);
  api.close();
  await server.close();
});

function create(spec: JsonObject, query = "?dryRun=All"): Promise<Answer> {
  const type = { apiVersion: "remediation.medik8s.io/v1alpha1", kind: "NodeHealthCheck" };
  return api.send("POST", `${PATH}${query}`, { ...type, metadata: { name: NAME }, spec });
}

function accepted(answer: Answer): void {
  assert.ok(answer.status === 200 || answer.status === 201, JSON.stringify(answer.body));
}

/** Asserts that only the rule with this message refuses the request. */
function refused(answer: Answer, message: RegExp): void {
  const { status, reason } = outcome(answer);
  assert.deepEqual({ status, reason }, { status: 422, reason: "Invalid" }, JSON.stringify(answer.body));
  const { causes } = objectOf(objectOf(answer.body)["details"]);
  assert.ok(Array.isArray(causes));
  const [cause, ...others] = causes.map((item) => String(objectOf(item)["message"]));
  assert.match(cause ?? "", message);
  assert.deepEqual(others, []);
}

test("a health check with a selector and one way to remediate is accepted", async () => {
  accepted(await create({ selector: SELECTOR, remediationTemplate: TEMPLATE }));
  accepted(await create({ selector: SELECTOR, escalatingRemediations: STEPS }));
  accepted(
    await create({
      selector: { matchExpressions: [{ key: "node-role.kubernetes.io/worker", operator: "Exists" }] },
      remediationTemplate: TEMPLATE,
      minHealthy: "51%",
      healthyDelay: "-1s",
      stormCooldownDuration: "5m",
    }),
  );
});

test("an empty selector is refused: it would cover every node", async () => {
  for (const selector of [{}, { matchLabels: {} }, { matchExpressions: [] }]) {
    refused(await create({ selector, remediationTemplate: TEMPLATE }), /selector must not be empty/);
  }
});

test("both or neither of remediationTemplate and escalatingRemediations is refused", async () => {
  const message = /exactly one of spec\.remediationTemplate and spec\.escalatingRemediations/;
  refused(await create({ selector: SELECTOR }), message);
  refused(await create({ selector: SELECTOR, remediationTemplate: TEMPLATE, escalatingRemediations: STEPS }), message);
});

test("minHealthy and maxUnhealthy exclude each other, and either alone is accepted", async () => {
  const spec = { selector: SELECTOR, remediationTemplate: TEMPLATE };
  refused(await create({ ...spec, minHealthy: 1, maxUnhealthy: 1 }), /mutually exclusive/);
  accepted(await create({ ...spec, minHealthy: 1 }));
  accepted(await create({ ...spec, maxUnhealthy: 1 }));
});

test("an empty list of unhealthy conditions is refused: no node would ever be unhealthy", async () => {
  const spec = { selector: SELECTOR, remediationTemplate: TEMPLATE };
  refused(await create({ ...spec, unhealthyConditions: [] }), /unhealthyConditions.*at least 1/);
});

test("a negative number of nodes is refused", async () => {
  const spec = { selector: SELECTOR, remediationTemplate: TEMPLATE };
  refused(await create({ ...spec, minHealthy: -3 }), /must not be negative/);
  refused(await create({ ...spec, maxUnhealthy: -1 }), /must not be negative/);
  accepted(await create({ ...spec, minHealthy: 0 }));
});

test("a step of less than a minute is refused, one of exactly a minute accepted", async () => {
  const steps = (timeout: string) => ({
    selector: SELECTOR,
    escalatingRemediations: STEPS.map((step) => ({ ...step, timeout })).slice(0, 1),
  });
  refused(await create(steps("59s")), /must be at least 1m/);
  accepted(await create(steps("1m")));
  accepted(await create(steps("60s")));
});

test("a text that is not a duration is refused with a message, in every field", async () => {
  const spec = { selector: SELECTOR, remediationTemplate: TEMPLATE };
  const words = /^Invalid value: .*must be a duration, such as 300s, 5m/;
  for (const duration of ["soon", "5", "1d", "", "-1s"]) {
    refused(await create({ ...spec, stormCooldownDuration: duration }), words);
    refused(await create({ ...spec, unhealthyConditions: [{ type: "Ready", status: "False", duration }] }), words);
  }
  refused(await create({ ...spec, healthyDelay: "soon" }), words);
  for (const healthyDelay of ["0", "-1s", "1h30m"]) accepted(await create({ ...spec, healthyDelay }));
});

test("two steps of an escalation with the same order are refused", async () => {
  const escalatingRemediations = STEPS.map((step) => ({ ...step, order: 7 }));
  refused(await create({ selector: SELECTOR, escalatingRemediations }), /every order must be unique/);
});

test("maxUnhealthy is refused with a template that deletes machines", async () => {
  const machineDeletion = { ...TEMPLATE, kind: "MachineDeletionRemediationTemplate" };
  const message = /maxUnhealthy cannot be used with a MachineDeletionRemediationTemplate/;
  refused(await create({ selector: SELECTOR, remediationTemplate: machineDeletion, maxUnhealthy: 1 }), message);
  const escalatingRemediations = [{ ...STEPS[0], remediationTemplate: machineDeletion }];
  refused(await create({ selector: SELECTOR, escalatingRemediations, maxUnhealthy: 1 }), message);
});

test("selector and templates of a health check cannot be changed while a node is being remediated; the rest can", async () => {
  accepted(await create({ selector: SELECTOR, escalatingRemediations: STEPS }, ""));
  const path = `${PATH}/${NAME}`;
  const other = { matchLabels: { tier: "other" } };
  accepted(await api.merge(path, { spec: { selector: other } }));
  accepted(await api.merge(path, { spec: { selector: { matchLabels: { tier: null, ...SELECTOR.matchLabels } } } }));
  // An unhealthy node alone must not prevent the correction of a health check, for example of a template that does not
  // exist.
  accepted(await api.merge(`${path}/status`, { status: { unhealthyNodes: [{ name: "worker-1" }] } }));
  accepted(await api.merge(path, { spec: { selector: other } }));
  accepted(await api.merge(path, { spec: { selector: { matchLabels: { tier: null, ...SELECTOR.matchLabels } } } }));
  const inFlightRemediations = { "worker-1": "2026-01-01T00:00:00Z" };
  accepted(await api.merge(`${path}/status`, { status: { inFlightRemediations } }));

  const change = (spec: JsonObject) => api.merge(path, { spec });
  refused(await change({ selector: other }), /selector must not change while a node is being remediated/);
  refused(
    await change({ escalatingRemediations: STEPS.slice(0, 1) }),
    /escalatingRemediations must not change while a node is being remediated/,
  );
  const swapped = await change({ escalatingRemediations: null, remediationTemplate: TEMPLATE });
  assert.equal(swapped.status, 422, JSON.stringify(swapped.body));
  accepted(await change({ pauseRequests: ["maintenance"] }));
  accepted(await api.merge(`${path}/status`, { status: { phase: "Remediating" } }));

  accepted(await api.merge(`${path}/status`, { status: { phase: "Disabled" } }));
  accepted(await change({ selector: other }));
  accepted(await api.merge(`${path}/status`, { status: { phase: "Remediating" } }));
  const third = { matchLabels: { tier: "third" } };
  refused(await change({ selector: third }), /selector must not change while a node is being remediated/);
  accepted(await api.merge(`${path}/status`, { status: { inFlightRemediations: null } }));
  accepted(await change({ selector: third }));
});
