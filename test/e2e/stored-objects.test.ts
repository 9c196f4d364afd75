import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { startControlPlane } from "../../hack/control-plane/control-plane.ts";
import type { ControlPlane } from "../../hack/control-plane/control-plane.ts";
import { fillSchema } from "../../hack/e2e/fill-schema.ts";
import type { Schema } from "../../hack/e2e/fill-schema.ts";
import { installFirstVersion } from "../../hack/e2e/first-version.ts";
import { NAMESPACE, repositoryPath } from "../../hack/e2e/world.ts";
import { applyManifests, applyObject, readManifests } from "../../hack/lib/apply.ts";
import { cli } from "../integration/cli-fixture.ts";
import type { JsonObject } from "../../hack/lib/kube-api.ts";

// Objects that the CRDs of 0.1.0 have accepted, after an upgrade to the CRDs of this version and after the rollback
// (docs/how-to/upgrade.md).

const START_TIMEOUT_MS = 120_000;

interface Crd {
  spec: {
    group: string;
    scope: string;
    names: { kind: string; plural: string };
    versions: { name: string; schema: { openAPIV3Schema: Schema } }[];
  };
}

interface Stored extends JsonObject {
  metadata: { name: string; labels?: Record<string, string> };
  spec: JsonObject;
  status?: JsonObject;
}

/** Changes of an object with all fields: some fields exclude each other, so each choice needs its own form. */
const FORMS: Readonly<Record<string, Readonly<Record<string, (spec: JsonObject) => void>>>> = {
  BareMetalRemediation: { full: () => undefined },
  BareMetalRemediationTemplate: { full: () => undefined },
  FencingTarget: {
    trusted: ({ devices }) => void delete tlsOf(devices)["insecureSkipVerify"],
    untrusted: ({ devices }) => {
      for (const name of ["caSecretRef", "sha256Fingerprint"]) delete tlsOf(devices)[name];
    },
    // This version no longer accepts such names.
    "odd-names": (spec) => {
      delete tlsOf(spec["devices"])["insecureSkipVerify"];
      spec["nodeName"] = "Worker_1";
      Object(spec["devices"])[0].credentialsSecretRef.name = "Secret_1";
      // 0.1.0 has no limit on its length.
      Object(spec["devices"])[0].timeouts.call = `${"0".repeat(40)}5s`;
    },
  },
  NodeHealthCheck: {
    template: (spec) => leaveOut(spec, ["escalatingRemediations", "maxUnhealthy"]),
    escalating: (spec) => leaveOut(spec, ["remediationTemplate", "minHealthy"]),
    // This version no longer accepts an empty list.
    "no-condition": (spec) => {
      leaveOut(spec, ["escalatingRemediations", "maxUnhealthy"]);
      spec["unhealthyConditions"] = [];
    },
  },
};

/** Defaults that the CRDs of this version add to a strategy of 0.1.0, and that the CRDs of 0.1.0 drop again. */
const ADDED_DEFAULTS = { acCycleTimeout: "300s", diagnostics: "None", diagnosticsTimeout: "60s", powerOn: "On" };

/** Changes by a user of a field that the CRDs of both versions accept. */
const EDITS: Readonly<Record<string, (round: string) => JsonObject>> = {
  BareMetalRemediationTemplate: (round) => ({ template: { spec: { strategy: { retryLimit: round.length } } } }),
  FencingTarget: (round) => ({ maintenance: round !== "present" }),
  NodeHealthCheck: (round) => ({ pauseRequests: [round] }),
};

function leaveOut(spec: JsonObject, names: readonly string[]): void {
  for (const name of names) delete spec[name];
  Object(spec["selector"]).matchExpressions[0].operator = "In";
}

function tlsOf(devices: unknown): JsonObject {
  return (devices as { tls: JsonObject }[])[0]?.tls ?? {};
}

void describe("objects that are stored by the CRDs of 0.1.0", () => {
  let controlPlane: ControlPlane;
  let firstVersion: string;
  /** Stored objects by their paths. */
  const stored = new Map<string, Stored>();

  before(async () => {
    firstVersion = await installFirstVersion();
    const progress = (line: string): void => void process.stderr.write(`e2e: ${line}\n`);
    const signal = AbortSignal.timeout(START_TIMEOUT_MS);
    controlPlane = await startControlPlane({ progress, nodeMonitorGracePeriodMs: 50_000 }, signal);
    const { api } = controlPlane;
    await applyObject(api, { apiVersion: "v1", kind: "Namespace", metadata: { name: NAMESPACE } });
    await applyManifests(api, join(firstVersion, "deploy/crds"));
    for (const crd of (await readManifests(join(firstVersion, "deploy/crds"))) as unknown as Crd[]) await store(crd);
  });
  after(async () => {
    await controlPlane?.stop();
  });

  async function store({ spec: { group, scope, names, versions } }: Crd): Promise<void> {
    const { api } = controlPlane;
    const [{ name: version, schema } = { name: "", schema: { openAPIV3Schema: {} } }] = versions;
    const fields = schema.openAPIV3Schema.properties ?? {};
    const namespace = scope === "Namespaced" ? `/namespaces/${NAMESPACE}` : "";
    const collection = `/apis/${group}/${version}${namespace}/${names.plural}`;
    for (const [form, adapt] of Object.entries(FORMS[names.kind] ?? {})) {
      const spec = fillSchema(fields["spec"] ?? {}) as JsonObject;
      adapt(spec);
      const type = { apiVersion: `${group}/${version}`, kind: names.kind };
      await api.create(`${collection}?fieldValidation=Strict`, { ...type, metadata: { name: form }, spec });
      const path = `${collection}/${form}`;
      if (fields["status"] !== undefined)
        await api.mergePatch(`${path}/status?fieldValidation=Strict`, { status: fillSchema(fields["status"]) });
      stored.set(path, await api.get<Stored>(path));
    }
  }

  /** The strategy in the spec of a remediation or its template. */
  function strategyIn(spec: JsonObject): JsonObject | undefined {
    const { template } = spec as { template?: { spec?: JsonObject } };
    return (template?.spec ?? spec)["strategy"] as JsonObject | undefined;
  }

  /** An object without the defaults that only one of the two versions has. */
  function contentOf({ spec, status }: Stored): JsonObject {
    const content = structuredClone({ spec, status });
    const strategy = strategyIn(content.spec) ?? {};
    for (const name of Object.keys(ADDED_DEFAULTS)) delete strategy[name];
    return content;
  }

  /** Asserts that each object reads as it was stored, and accepts a label, a status and a change of its spec. */
  async function assertUsable(round: "first" | "present" | "again"): Promise<void> {
    const { api } = controlPlane;
    const added = round === "present" ? ADDED_DEFAULTS : {};
    for (const [path, before] of stored) {
      const read = await api.get<Stored>(path);
      assert.deepEqual(contentOf(read), contentOf(before), `${round}: ${path}`);
      const strategy = strategyIn(read.spec);
      if (strategy !== undefined) {
        const known = Object.keys(ADDED_DEFAULTS).filter((name) => name in strategy);
        assert.deepEqual(Object.fromEntries(known.map((name) => [name, strategy[name]])), added, `${round}: ${path}`);
      }
      await api.mergePatch(path, { metadata: { labels: { round } } });
      const { kind, status } = before;
      if (status !== undefined) {
        const [condition] = status["conditions"] as JsonObject[];
        await api.mergePatch(`${path}/status`, { status: { conditions: [{ ...condition, message: round }] } });
      }
      const edit = EDITS[String(kind)];
      if (edit !== undefined) await api.mergePatch(path, { spec: edit(round) });
      const after = await api.get<Stored>(path);
      assert.equal(after.metadata.labels?.["round"], round);
      stored.set(path, after);
    }
  }

  /** The findings of one check of `ironfence check`. */
  async function findingsOf(id: string): Promise<string[]> {
    const { out, err } = await cli(["check", "-o", "json", "--kubeconfig", controlPlane.kubeconfig]);
    const { checks } = JSON.parse(out) as { checks: { id: string; findings: { level: string; message: string }[] }[] };
    const found = checks.find((check) => check.id === id);
    assert.ok(found, err);
    return found.findings.filter(({ level }) => level !== "ok").map(({ message }) => message);
  }

  void test("each object of 0.1.0 is read, labeled and given a status under the CRDs of this version, and under those of 0.1.0 again", async () => {
    const { api } = controlPlane;
    assert.equal(stored.size, 8);
    await assertUsable("first");
    for (const folder of ["deploy/node-health-check", "deploy/crds"]) await applyManifests(api, repositoryPath(folder));
    await assertUsable("present");
    assert.deepEqual(await findingsOf("custom-resources"), []);
    // A health check without conditions finds no node unhealthy, so the user must change it.
    assert.match((await findingsOf("health-checks")).join("\n"), /no-condition/);
    await applyManifests(api, join(firstVersion, "deploy/crds"));
    assert.match((await findingsOf("custom-resources")).join("\n"), /CRD of FencingTarget does not know/);
    await assertUsable("again");
  });
});
