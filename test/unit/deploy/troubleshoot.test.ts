import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { parseAllDocuments } from "yaml";
import { readManifests } from "../../../hack/lib/apply.ts";
import { PLANTED, PLANTED_TEXTS } from "../../lib/planted-texts.ts";

// deploy/troubleshoot/support-bundle.yaml as text. test/nightly/peers/troubleshoot.test.ts reads it with troubleshoot's
// own types.

interface Spec {
  collectors?: readonly Readonly<Record<string, Collector>>[];
  redactors?: readonly { name: string; removals: { regex: readonly { redactor: string }[] } }[];
}
interface Collector {
  namespace?: string;
  namespaces?: readonly string[];
  selector?: readonly string[];
  limits?: { maxLines: number; maxBytes: number };
}

const text = readFileSync(new URL("../../../deploy/troubleshoot/support-bundle.yaml", import.meta.url), "utf8");
const documents = parseAllDocuments(text).map(
  (document) => document.toJS() as { apiVersion: string; kind: string; spec: Spec },
);
const collectors = documents.flatMap(({ spec }) => spec.collectors ?? []);
const redactors = documents.flatMap(({ spec }) => spec.redactors ?? []);

/** Redacts like Go's regular expressions: the match of the group `mask` is replaced, and other groups stay. */
function redact(line: string): string {
  const patterns = redactors.flatMap(({ removals }) => removals.regex.map(({ redactor }) => redactor));
  return patterns.reduce((result, pattern) => {
    const isCaseless = pattern.startsWith("(?i)");
    const source = pattern.replace("(?i)", "").replaceAll("(?P<", "(?<");
    return result.replaceAll(new RegExp(source, isCaseless ? "gi" : "g"), "$1***$3");
  }, line);
}

describe("the spec for troubleshoot", () => {
  it("the spec for troubleshoot is a SupportBundle and the Redactor that belongs to it", () => {
    assert.deepEqual(
      documents.map(({ apiVersion, kind }) => `${apiVersion} ${kind}`),
      ["troubleshoot.sh/v1beta2 SupportBundle", "troubleshoot.sh/v1beta2 Redactor"],
    );
  });

  it("the spec for troubleshoot collects objects and logs, and starts nothing, runs nothing in a pod and reads no Secret", () => {
    const kinds = collectors.flatMap((collector) => Object.keys(collector));
    assert.deepEqual(kinds, ["clusterInfo", "clusterResources", "logs"]);
  });

  it("the spec for troubleshoot covers the namespaces of ironfence, and the logs of every replica within a size", async () => {
    const resources = collectors.find((collector) => "clusterResources" in collector)?.["clusterResources"];
    const shipped = await Promise.all(["deploy/node-health-check", "deploy/kustomize"].map(readManifests));
    const namespaces = shipped.flat().filter(({ kind }) => kind === "Namespace");
    assert.equal(namespaces.length, 2);
    for (const { metadata } of namespaces) assert.ok(resources?.namespaces?.includes(metadata.name), metadata.name);
    // Events about Nodes, Leases of nodes, and Leases between installations.
    for (const name of ["default", "kube-node-lease", "kube-system"]) assert.ok(resources?.namespaces?.includes(name));
    const logs = collectors.find((collector) => "logs" in collector)?.["logs"];
    const deployment = shipped.flat().find(({ kind }) => kind === "Deployment");
    assert.equal(logs?.namespace, deployment?.metadata.namespace);
    assert.deepEqual(logs?.selector, ["app.kubernetes.io/name=ironfence"]);
    assert.ok((logs?.limits?.maxBytes ?? Infinity) <= 2 ** 23);
  });

  it("the spec for troubleshoot removes the secrets of BMCs from logs and objects, and keeps their addresses", () => {
    for (const line of PLANTED_TEXTS) {
      const redacted = redact(line);
      for (const secret of PLANTED) assert.ok(!redacted.includes(secret), `${secret} is in ${redacted}`);
    }
    assert.match(redact(PLANTED_TEXTS[0] ?? ""), /redfish:\/\/\*\*\*@bmc-1\.example/);
    const harmless = 'https://bmc-1.example/redfish/v1 "credentialsSecretRef": {"name": "bmc"}';
    assert.equal(redact(harmless), harmless);
  });
});
