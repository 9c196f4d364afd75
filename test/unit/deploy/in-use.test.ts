import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { before, describe, test } from "node:test";
import type { Manifest } from "../../../hack/lib/apply.ts";
import { readManifests } from "../../../hack/lib/apply.ts";
import { FINALIZER } from "../../../src/remediator/effects/objects/finalizer.ts";

// test/e2e/in-use.test.ts tests the policies on an API server.

const deploy = (folder: string): string => fileURLToPath(new URL(`../../../deploy/${folder}`, import.meta.url));
/** Roles of users, which a running fence does not need. */
const OF_USERS = ["ironfence-enroller", "ironfence-operator", "ironfence-view"];

void describe("the policy that keeps what a fence under way needs", () => {
  let installed: Manifest[];
  let needed: string;
  let policy: Manifest;

  before(async () => {
    const families = (await readdir(deploy("families"))).map((family) => `families/${family}`);
    installed = (await Promise.all(["kustomize", ...families].map((folder) => readManifests(deploy(folder))))).flat();
    const isPolicy = ({ kind, metadata }: Manifest): boolean =>
      kind === "ValidatingAdmissionPolicy" && metadata.name === "ironfence-in-use";
    policy = installed.find(isPolicy) as Manifest;
    const { matchConditions } = policy["spec"] as { matchConditions: { name: string; expression: string }[] };
    needed = matchConditions.find(({ name }) => name === "needed-by-a-fence")?.expression ?? "";
  });

  /** The list after `before` in the condition. */
  const namesBehind = (before: string): string[] => {
    const list = needed.slice(needed.indexOf(before) + before.length).match(/\[[^\]]*\]/)?.[0] ?? "";
    return [...list.matchAll(/'([^']+)'/g)].map(([, name = ""]) => name).toSorted();
  };
  const installedNames = (kinds: RegExp): string[] => {
    const names = installed.filter(({ kind }) => kinds.test(kind)).map(({ metadata }) => metadata.name);
    return [...new Set(names)].filter((name) => !OF_USERS.includes(name)).toSorted();
  };

  void test("the policy that keeps what a fence under way needs names every role and binding of the agent, and no other", () => {
    const names = installedNames(/^(?:Cluster)?Role(?:Binding)?$/);
    assert.deepEqual(namesBehind("'fencingtargets.ironfence.io'] :"), names);
  });

  void test("the policy that keeps what a fence under way needs names the agent's Namespace, ServiceAccount and Deployment", () => {
    assert.deepEqual(namesBehind("'Namespace' ?"), installedNames(/^Namespace$/));
    assert.deepEqual(namesBehind("'ServiceAccount'] ?"), installedNames(/^ServiceAccount$/));
    assert.deepEqual(namesBehind("['Deployment', 'ServiceAccount'] ?"), installedNames(/^Deployment$/));
  });

  void test("the policy that keeps what a fence under way needs requires the finalizer that the agent sets", () => {
    assert.ok(JSON.stringify(policy).includes(`'${FINALIZER}' in params.metadata.finalizers`));
  });

  void test("the policy that keeps what a fence under way needs comes last, so that it is deleted after everything that it keeps", () => {
    const base = installed.map(({ metadata }) => metadata.name);
    const first = base.indexOf("ironfence-in-use");
    const kinds = installed.slice(0, first).map(({ kind }) => kind);
    assert.ok(kinds.includes("Deployment"));
    assert.ok(kinds.includes("NetworkPolicy"));
  });
});
