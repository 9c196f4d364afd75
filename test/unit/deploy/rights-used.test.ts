import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { describe, it } from "node:test";
import { judgeRights, readAuditLog, readRights, SHOWN_BY_SIMULATION } from "../../../hack/e2e/rights.ts";
import type { Right } from "../../../hack/e2e/rights.ts";

const right = (role: string, verb: string, more: Partial<Right> = {}): Right => ({
  role,
  verb,
  apiGroup: "",
  resource: "nodes",
  ...more,
});

interface Line {
  verb?: string;
  resource?: string;
  subresource?: string;
  namespace?: string;
  name?: string;
  apiGroup?: string;
  userAgent?: string;
  decision?: string;
}

const line = ({
  verb = "get",
  decision = "allow",
  userAgent = "ironfence",
  resource = "nodes",
  ...ref
}: Line): string =>
  JSON.stringify({
    verb,
    userAgent,
    objectRef: { resource, ...ref },
    annotations: { "authorization.k8s.io/decision": decision },
  });
const roles = (...names: string[]): string[] =>
  names.map((name) => line({ verb: "patch", resource: "clusterroles", name, userAgent: "harness" }));
const log = (...lines: string[]) => readAuditLog("reboot", `${lines.join("\n")}\n`);
const NONE = new Set<string>();

describe("comparisons of permissions with audit logs", () => {
  it("comparisons of permissions with audit logs find a verb that was granted and never used", () => {
    const rights = [right("agent", "get"), right("agent", "delete")];
    const { unused, refused } = judgeRights(rights, [log(...roles("agent"), line({}))], NONE);
    assert.deepEqual(unused, ["agent: delete /nodes"]);
    assert.deepEqual(refused, []);
  });

  it("comparisons of permissions with audit logs find everything unused if there is no log", () => {
    assert.equal(judgeRights([right("agent", "get")], [], NONE).unused.length, 1);
  });

  it("comparisons of permissions with audit logs find a call that was refused, but for tests that take permissions away on purpose", () => {
    const refusing = log(...roles("agent"), line({ verb: "patch", name: "n1", decision: "forbid" }));
    assert.deepEqual(judgeRights([], [refusing], NONE).refused, ["reboot: patch /nodes n1"]);
    assert.deepEqual(judgeRights([], [refusing], new Set(["reboot"])).refused, []);
  });

  it("comparisons of permissions with audit logs do not let a refused call pass for a use", () => {
    const refusing = log(...roles("agent"), line({ decision: "forbid" }));
    assert.equal(judgeRights([right("agent", "get")], [refusing], NONE).unused.length, 1);
  });

  it("comparisons of permissions with audit logs count no call of a test that has borrowed the agent's token", () => {
    const borrowed = log(
      ...roles("agent"),
      line({ userAgent: "node" }),
      line({ userAgent: "node", decision: "forbid" }),
    );
    const { unused, refused } = judgeRights([right("agent", "get")], [borrowed], NONE);
    assert.deepEqual([unused, refused], [["agent: get /nodes"], []]);
  });

  it("comparisons of permissions with audit logs count no call for a family whose permissions the test has not granted", () => {
    const rights = [right("one", "get"), right("other", "get")];
    assert.deepEqual(judgeRights(rights, [log(...roles("one"), line({}))], NONE).unused, ["other: get /nodes"]);
  });

  it("comparisons of permissions with audit logs count a call in a namespace for its own role, not for one of the whole cluster", () => {
    const rights = [right("agent", "get", { namespace: "own" }), right("wide", "get")];
    const given = roles("agent", "wide");
    assert.deepEqual(judgeRights(rights, [log(...given, line({ namespace: "own" }))], NONE).unused, [
      "wide: get /nodes",
    ]);
    assert.deepEqual(judgeRights(rights, [log(...given, line({ namespace: "default" }))], NONE).unused, [
      "agent of own: get /nodes",
    ]);
  });

  it("comparisons of permissions with audit logs keep verb, group, resource, subresource and name apart", () => {
    const rights = [
      right("agent", "get", { names: ["kube-system"] }),
      right("agent", "get", { resource: "nodes/status" }),
      right("agent", "get", { apiGroup: "metal3.io" }),
      right("agent", "list"),
    ];
    assert.equal(judgeRights(rights, [log(...roles("agent"), line({ name: "n1" }))], NONE).unused.length, 4);
    const used = [
      line({ name: "kube-system" }),
      line({ subresource: "status" }),
      line({ apiGroup: "metal3.io" }),
      line({ verb: "list" }),
    ];
    assert.deepEqual(judgeRights(rights, [log(...roles("agent"), ...used)], NONE).unused, []);
  });

  it("comparisons of permissions with audit logs spare those that a simulation shows, as long as they are granted and not used", () => {
    const [name = ""] = SHOWN_BY_SIMULATION.keys();
    const [, role = "", verb = "", apiGroup = "", resource = ""] = /^(.*): (\w+) (.*)\/(\w+)$/.exec(name) ?? [];
    const shown = right(role, verb, { apiGroup, resource });
    const call = line({ verb, apiGroup, resource });
    const spared = judgeRights([shown], [log(...roles(role))], NONE);
    assert.deepEqual(spared.unused, []);
    assert.ok(!spared.outdated.includes(name));
    assert.ok(judgeRights([shown], [log(...roles(role), call)], NONE).outdated.includes(name), "it is used");
    assert.ok(judgeRights([], [log(...roles(role))], NONE).outdated.includes(name), "no role grants it");
  });

  it("comparisons of permissions with audit logs are spared by tests that there are", () => {
    for (const test of SHOWN_BY_SIMULATION.values()) assert.ok(existsSync(`test/${test}`), test);
  });

  it("the permissions in deploy are read from the manifests, verb by verb, with those that are bound in single namespaces", async () => {
    const rights = await readRights(["deploy/kustomize", "deploy/families/cluster-api"]);
    const names = rights.map(({ role, namespace = "", verb, resource }) => `${role} ${namespace} ${verb} ${resource}`);
    assert.ok(names.includes("ironfence-agent  patch pods/status"));
    assert.ok(names.includes("ironfence-agent kube-node-lease watch leases"));
    assert.ok(names.includes("ironfence-workload-kubeconfigs  get secrets"));
    assert.ok(!names.some((name) => name.startsWith("ironfence-view")));
  });
});
