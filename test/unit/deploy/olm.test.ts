import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { parse, parseAllDocuments } from "yaml";

interface Rule {
  apiGroups: string[];
  resources: string[];
  resourceNames?: string[];
  verbs: string[];
}
interface ServiceVersion {
  spec: {
    installModes: { type: string; supported: boolean }[];
    install: {
      spec: {
        clusterPermissions: { rules: Rule[] }[];
        permissions: { rules: Rule[] }[];
        deployments: { name: string; spec: object }[];
      };
    };
  };
}

const read = (path: string): string => readFileSync(new URL(`../../../${path}`, import.meta.url), "utf8");
const { spec } = parse(read("deploy/olm/manifests/ironfence.clusterserviceversion.yaml")) as ServiceVersion;
const { clusterPermissions, permissions, deployments } = spec.install.spec;
const READS = new Set(["get", "list", "watch"]);

describe("the bundle of OLM", () => {
  it("the bundle of OLM writes only Events and a Lease by which no agent leads", () => {
    const writes = [...clusterPermissions, ...permissions]
      .flatMap(({ rules }) => rules)
      .filter(({ verbs }) => verbs.some((verb) => !READS.has(verb)))
      .map(
        ({ resources, resourceNames = [], verbs }) => `${[...resources, ...resourceNames].join(" ")}: ${verbs.join()}`,
      );
    assert.deepEqual(writes, ["events: create,patch", "leases ironfence-observe: get,patch", "leases: create"]);
  });

  it("the bundle of OLM reads Secrets in its own namespace alone", () => {
    const secrets = ({ resources }: Rule): boolean => resources.includes("secrets") || resources.includes("*");
    const groups = clusterPermissions.flatMap(({ rules }) =>
      rules.filter(secrets).flatMap(({ apiGroups }) => apiGroups),
    );
    assert.equal(groups.includes(""), false);
    assert.equal(permissions.flatMap(({ rules }) => rules).filter(secrets).length, 1);
    assert.deepEqual(
      spec.installModes.filter(({ supported }) => supported).map(({ type }) => type),
      ["OwnNamespace"],
    );
  });

  it("the bundle of OLM has the Deployment of deploy/kustomize", () => {
    const [deployment] = parseAllDocuments(read("deploy/kustomize/deployment.yaml"));
    assert.ok(deployment !== undefined);
    assert.deepEqual(deployments[0]?.spec, (deployment.toJS() as { spec: object }).spec);
    assert.equal(deployments.length, 1);
  });

  it("the bundle of OLM has an image whose labels are its annotations", () => {
    const { annotations } = parse(read("deploy/olm/metadata/annotations.yaml")) as {
      annotations: Record<string, string>;
    };
    const labels = [...read("deploy/olm/bundle.Dockerfile").matchAll(/^LABEL ([^=]+)=(.*)$/gm)];
    assert.deepEqual(Object.fromEntries(labels.map(([, name, value]) => [name, value])), annotations);
  });
});
