import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { guardAgent } from "../../../src/cli/agent/write-guards.ts";
import { isKubeError } from "../../../src/kube/errors.ts";
import type { KubeTransport, TransportRequest } from "../../../src/kube/transport.ts";
import { answer } from "../kube/scripted-transport.ts";

const SIGNAL = new AbortController().signal;
const OPTIONS = { namespace: "fencing", leaseName: "ironfence-observe" };
const LEASES = "/apis/coordination.k8s.io/v1/namespaces/fencing/leases";
const EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events";

type Case = [method: TransportRequest["method"], path: string, body?: object];

/** Whether an agent sends the request. */
async function isSent(observe: boolean, [method, path, body]: Case, mayAct = true): Promise<boolean> {
  const text = body === undefined ? {} : { body: JSON.stringify(body) };
  const request: TransportRequest = { method, path, lane: "api", timeoutMs: 1_000, ...text };
  return passes(observe, mayAct, (transport) => transport.send(request, SIGNAL));
}

async function passes(
  observe: boolean,
  mayAct: boolean,
  call: (transport: KubeTransport) => Promise<unknown>,
): Promise<boolean> {
  const inner: KubeTransport = {
    send: () => Promise.resolve(answer(200, {})),
    stream: () => Promise.resolve({ status: 200, headers: {}, body: (async function* () {})() }),
    close: async () => undefined,
  };
  try {
    await call(guardAgent(inner, { ...OPTIONS, observe }, () => mayAct).transport);
    return true;
  } catch (error) {
    assert.ok(isKubeError(error, "Aborted"), String(error));
    return false;
  }
}

const OWN: readonly Case[] = [
  ["GET", "/api/v1/nodes"],
  ["GET", "/api/v1/nodes?watch=true"],
  ["POST", EVENTS, {}],
  ["PATCH", `${EVENTS}/n1.17`, {}],
  ["POST", LEASES, { metadata: { name: "ironfence-observe" } }],
  ["PATCH", `${LEASES}/ironfence-observe`, {}],
  ["POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {}],
  ["POST", "/apis/authentication.k8s.io/v1/tokenreviews", {}],
];

const OTHERS: readonly Case[] = [
  ["PATCH", "/api/v1/nodes/n1", {}],
  ["PATCH", "/api/v1/nodes/n1/status", {}],
  ["DELETE", "/api/v1/nodes/n1", {}],
  ["DELETE", "/api/v1/namespaces/default/pods/db", {}],
  ["PATCH", "/api/v1/namespaces/default/pods/db/status", {}],
  ["POST", "/api/v1/namespaces/default/pods/db/eviction", {}],
  ["POST", "/apis/ironfence.io/v1alpha1/namespaces/fencing/baremetalremediations", {}],
  ["PATCH", "/apis/ironfence.io/v1alpha1/namespaces/fencing/fencingtargets/n1/status", {}],
  ["PATCH", "/apis/remediation.medik8s.io/v1alpha1/nodehealthchecks/all/status", {}],
  ["PATCH", "/apis/metal3.io/v1alpha1/namespaces/metal3/baremetalhosts/n1", {}],
  // The Lease of an acting agent, those of installations, and those of nodes.
  ["PATCH", `${LEASES}/ironfence`, {}],
  ["POST", LEASES, { metadata: { name: "ironfence" } }],
  ["POST", LEASES],
  ["PATCH", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/ironfence-detector", {}],
  ["PATCH", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/ironfence-observe", {}],
  [
    "POST",
    "/apis/coordination.k8s.io/v1/namespaces/medik8s-leases/leases",
    { metadata: { name: "ironfence-observe" } },
  ],
  ["DELETE", `${LEASES}/ironfence-observe`, {}],
  // Requests that only look like allowed ones.
  ["DELETE", `${EVENTS}/n1.17`, {}],
  ["PATCH", "/api/v1/namespaces/default/events/n1.17", {}],
  ["POST", `${EVENTS}/n1.17/other`, {}],
  ["PATCH", `${LEASES}/ironfence-observe/status`, {}],
  ["PATCH", `${LEASES}/ironfence-observe-too`, {}],
  ["PUT", `${LEASES}/ironfence-observe`, {}],
  ["POST", "/apis/authorization.k8s.io/v1/namespaces/fencing/localsubjectaccessreviews", {}],
];

describe("the guards of what an agent changes", () => {
  for (const one of OWN) {
    it(`an agent that only observes may send ${describeCase(one)}`, async () => {
      assert.equal(await isSent(true, one), true);
    });
  }
  for (const one of OTHERS) {
    it(`an agent that only observes may not send ${describeCase(one)}, and one that leads may`, async () => {
      assert.equal(await isSent(true, one), false);
      assert.equal(await isSent(false, one), true);
      assert.equal(await isSent(false, one, false), false, "without the lease");
    });
  }
  it("the guards of what an agent changes let one that only observes open watches, and no other stream", async () => {
    const stream = (method: TransportRequest["method"]) => (transport: KubeTransport) =>
      transport.stream({ method, path: "/api/v1/nodes?watch=true", lane: "watch", timeoutMs: 1_000 }, SIGNAL);
    assert.deepEqual(
      [await passes(true, true, stream("GET")), await passes(true, true, stream("POST"))],
      [true, false],
    );
  });

  it("the guards of what an agent changes allow orders only to one that leads and does not observe", () => {
    const inner = { send: assert.fail, stream: assert.fail, close: assert.fail };
    const allowed = [true, false].map((observe) =>
      [true, false].map((leads) => guardAgent(inner, { ...OPTIONS, observe }, () => leads).isOrderAllowed()),
    );
    assert.deepEqual(allowed, [
      [false, false],
      [true, false],
    ]);
  });
});

function describeCase([method, path, body]: Case): string {
  return `${method} ${path.replace(/^\/apis?\//, "")}${body === undefined ? "" : ` ${JSON.stringify(body)}`}`;
}
