import assert from "node:assert/strict";
import { test } from "node:test";
import { failureOf, parseList, parseObject } from "../../../src/kube/answers/api-answers.ts";
import { NODE } from "./support.ts";
import type { KubeError } from "../../../src/kube/errors.ts";

function answer(status: number, body: unknown): KubeError {
  return failureOf("list things", {
    status,
    headers: {},
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
}

test("a kind that is not served points to the CRDs, an object that is absent does not", () => {
  assert.match(answer(404, "404 page not found\n").nextStep ?? "", /apply deploy\/crds/);
  const absent = { kind: "Status", reason: "NotFound", message: 'leases.coordination.k8s.io "ironfence" not found' };
  assert.equal(answer(404, absent).nextStep, undefined);
});

test("a missing namespace points to the manifests and to the option", () => {
  const error = answer(404, { kind: "Status", reason: "NotFound", message: 'namespaces "ironfence-system" not found' });
  assert.match(error.nextStep ?? "", /deploy\/kustomize.*--namespace/);
});

test("refused credentials and missing permissions say what to do, a passing failure does not", () => {
  assert.match(answer(401, { kind: "Status", reason: "Unauthorized" }).nextStep ?? "", /credentials/);
  assert.match(answer(403, { kind: "Status", reason: "Forbidden" }).nextStep ?? "", /grant/);
  assert.equal(answer(503, "").nextStep, undefined);
});

test("nothing is repeated of an answer that is not the API server's own", () => {
  for (const body of [
    "vault v1.2: token=abc123",
    { message: "token=abc123" },
    { kind: "Secret", message: "abc123" },
    [],
  ]) {
    for (const status of [200, 302, 404, 500]) {
      const { message } = answer(status, body);
      assert.match(message, /^list things: \d+ \w+: the answer does not come from an API server$/);
    }
  }
});

test("a text from an untrusted API server is cut short, and has no control character", () => {
  const flood = "x".repeat(4_000_000);
  const error = answer(403, { kind: "Status", reason: flood, message: `\u001b[2J\n${flood}` });
  assert.equal(error.code, "Forbidden");
  assert.ok(error.message.length < 2_000, `${error.message.length} characters`);
  assert.ok((error.reason ?? "").length < 100);
  assert.doesNotMatch(error.message, /\p{Cc}/u);
  const sly = answer(403, { kind: "Status", reason: "A\u001b[2J", message: "no" });
  assert.doesNotMatch(sly.message, /\p{Cc}/u);
  assert.doesNotMatch(sly.reason ?? "", /\p{Cc}/u);
});

test("JSON that is nested without end is neither an object nor a list nor a reason", () => {
  for (const body of [
    "[".repeat(4_000_000),
    `{"kind":"Status","message":${"[".repeat(100_000)}${"]".repeat(100_000)}}`,
  ]) {
    assert.match(answer(500, body).message, /^list things: 500 Unavailable: (the answer does not come|no reason)/);
    const broken = { status: 200, headers: {}, body };
    assert.throws(() => parseObject("get thing", broken), /BadResponse|not/);
    assert.throws(() => parseList("list things", NODE, broken), /BadResponse|not/);
  }
});
