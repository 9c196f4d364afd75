import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { deletions } from "../../lib/deletions.ts";
import { agentRoles, manifestsOf } from "../../lib/agent-roles.ts";
import type { Manifest } from "../../lib/agent-roles.ts";

const READS = ["get", "list", "watch"];
/** Roles of users, which the agent does not have. */
const OF_USERS = ["ironfence-enroller", "ironfence-operator", "ironfence-view"];

/** Every permission beyond reading, as text. */
function writesOf(manifests: readonly Manifest[]): string[] {
  const granted = manifests.filter(({ metadata: { name } }) => !OF_USERS.includes(name));
  return granted
    .flatMap(({ metadata: { namespace = "all namespaces" }, rules = [] }) =>
      rules.flatMap(({ resources, resourceNames = ["any"], verbs }) => {
        const writes = verbs.filter((verb) => !READS.includes(verb));
        return writes.length === 0
          ? []
          : [`${writes.join()} ${resources.join()} ${resourceNames.join()} in ${namespace}`];
      }),
    )
    .toSorted();
}

const OWN = [
  "create leases any in ironfence-system",
  "create,patch events any in all namespaces",
  "patch leases ironfence-observe in ironfence-system",
];

describe("the permissions of an agent that only observes", () => {
  it("the permissions of an agent that only observes let it write Events and one Lease, by kustomize and by the chart", () => {
    assert.deepEqual(writesOf(manifestsOf("deploy/observe/roles.yaml")), OWN);
    assert.deepEqual(writesOf(manifestsOf("deploy/chart/files/observe/rbac.yaml")), OWN);
    assert.ok(writesOf(manifestsOf("deploy/kustomize/role-agent.yaml")).length > 8, "as opposed to one that acts");
  });

  it("the permissions of an agent that only observes add none to write by a family", () => {
    const files = manifestsOf("deploy/chart/files/observe/families/*.yaml");
    assert.ok(files.length > 8);
    assert.deepEqual(writesOf(files), []);
  });

  it("the permissions of an agent that only observes read all that an agent reads that acts, but for the Leases of installations", () => {
    const readsOf = (manifests: readonly Manifest[]): string[] =>
      manifests.flatMap(({ metadata: { namespace = "" }, rules = [] }) =>
        rules.flatMap(({ apiGroups, resources, verbs }) =>
          resources.flatMap((resource) =>
            verbs
              .filter((verb) => READS.includes(verb))
              .map((verb) => `${verb} ${apiGroups.join()}/${resource} ${namespace}`),
          ),
        ),
      );
    const base = agentRoles().filter(
      ({ metadata: { namespace, name } }) => namespace !== "kube-system" && name === "ironfence-agent",
    );
    const observing = new Set(readsOf(manifestsOf("deploy/observe/roles.yaml")));
    assert.deepEqual(
      readsOf(base).filter((read) => !observing.has(read)),
      [],
    );
  });

  it("the permissions of an agent that only observes do not include those of the detector on remediations of any vendor", () => {
    const names = manifestsOf("deploy/chart/files/observe/rbac.yaml").map(({ metadata }) => metadata.name);
    assert.ok(!names.includes("ironfence-remediators"));
    const removed = deletions("deploy/observe").map(({ kind, metadata }) => `${kind} ${metadata.name}`);
    assert.deepEqual(removed, [
      "Role ironfence-agent",
      "RoleBinding ironfence-agent",
      "ClusterRole ironfence-remediators",
      "ClusterRoleBinding ironfence-remediators",
      "Lease ironfence-detector",
      "Lease ironfence-remediator",
    ]);
  });
});
