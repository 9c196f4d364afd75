import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { NAMESPACES } from "../../hack/kube-mock/controllers/cluster-types.ts";
import { startKubeMock } from "../../hack/kube-mock/kube-mock.ts";
import type { KubeMock } from "../../hack/kube-mock/kube-mock.ts";
import { readCrds } from "../../hack/lib/crds.ts";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/bare-metal-remediation.ts";
import { CONFIG_MAPS } from "../../src/api/core-types.ts";
import type { ConfigMap } from "../../src/api/core.ts";
import { FENCING_TARGETS } from "../../src/api/fencing-target.ts";
import { folderOf } from "../../src/api/kinds.ts";
import { systemClock, systemRandom } from "../../src/runtime/system.ts";
import { cli } from "./cli-fixture.ts";
import type { CliResult } from "./cli-fixture.ts";

// The commands that look at a cluster or throw its stop switch, over HTTPS as users run them.

const NAMESPACE = "ironfence-system";

describe("a command on a cluster", () => {
  let folder: string;
  let kube: KubeMock;
  let kubeconfig: string;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "ironfence-cli-"));
    kube = await startKubeMock({ clock: systemClock, random: systemRandom, tls: true, token: "let-me-in" });
    kube.server.collection(NAMESPACES).create({ metadata: { name: NAMESPACE } });
    kubeconfig = join(folder, "kubeconfig");
    writeFileSync(kubeconfig, kube.kubeconfig);
  });
  after(async () => {
    await kube.close();
    rmSync(folder, { recursive: true });
  });

  const ironfence = (...inputs: string[]): Promise<CliResult> => cli([...inputs, "--kubeconfig", kubeconfig]);
  const stopSwitch = (): Record<string, string> | undefined =>
    kube.server.collection<ConfigMap>(CONFIG_MAPS).get({ namespace: NAMESPACE, name: "ironfence-pause" })?.data;

  it("names the kinds that the cluster does not serve, instead of failing", async () => {
    const { out, code } = await ironfence("status");
    assert.equal(code, 0);
    for (const kind of ["NodeHealthCheck", "BareMetalRemediation", "FencingTarget"]) {
      assert.match(out, new RegExp(`^${kind}: not served by this cluster; install ${folderOf({ kind })}$`, "m"));
    }
    for (const crd of await readCrds()) kube.server.load(crd);
    assert.match((await ironfence("status")).out, /^FencingTarget: none$/m);
  });

  it("says what to do where the agent's namespace is not there", async () => {
    const { err, code } = await ironfence("pause", "--namespace", "elsewhere");
    assert.equal(code, 1);
    assert.match(
      err,
      /^ironfence: create ConfigMap elsewhere\/.*not found: apply deploy\/kustomize, or .*--namespace\n$/,
    );
  });

  it("pauses with a reason, which status shows, and resumes, whoever made the switch", async () => {
    const paused = await ironfence("pause", "--reason", "rack 4 is being rewired");
    assert.equal(paused.code, 0, paused.err);
    assert.match(paused.out, /^paused: .*rack 4 is being rewired/);
    assert.deepEqual(stopSwitch(), { paused: "true", reason: "rack 4 is being rewired" });
    assert.match((await ironfence("status")).out, /^PAUSED: .*\(rack 4 is being rewired\)$/m);

    assert.equal((await ironfence("resume")).code, 0);
    assert.deepEqual(stopSwitch(), { paused: "false" }, "the reason of the last pause is gone with it");
    assert.doesNotMatch((await ironfence("status")).out, /PAUSED/);

    assert.equal((await ironfence("pause")).code, 0);
    assert.equal(stopSwitch()?.["paused"], "true");
    kube.server.collection(CONFIG_MAPS).delete({ namespace: NAMESPACE, name: "ironfence-pause" });
    assert.equal((await ironfence("resume")).code, 0);
    assert.equal(stopSwitch()?.["paused"], "false");
  });

  it("pauses although somebody else writes the switch at the same moment", async () => {
    kube.server.faults.inject({
      match: { method: "PATCH", pathPrefix: `/api/v1/namespaces/${NAMESPACE}/configmaps` },
      times: 1,
      action: { kind: "status", status: 409 },
    });
    const { code, err } = await ironfence("pause");
    assert.equal(code, 0, err);
    assert.equal(stopSwitch()?.["paused"], "true");
  });

  it("says in one line that it could not pause, and does not claim that it did", async () => {
    kube.server.faults.inject({ match: { method: "PATCH" }, times: 1, action: { kind: "status", status: 403 } });
    const { code, out, err } = await ironfence("pause");
    assert.equal(code, 1);
    assert.equal(out, "");
    assert.match(err, /^ironfence: patch ConfigMap [^\n]*403[^\n]*\n$/);
    await ironfence("resume");
  });

  it("shows a remediation's node, phase and reason, and a target's power, as tables and as JSON", async () => {
    kube.server.collection(FENCING_TARGETS).create({
      metadata: { namespace: NAMESPACE, name: "n1" },
      spec: { nodeName: "n1", devices: [{ address: "redfish://bmc", credentialsSecretRef: { name: "s" } }] },
    });
    kube.server
      .collection(BARE_METAL_REMEDIATIONS)
      .create({ metadata: { namespace: NAMESPACE, name: "n1" }, spec: {} });
    const lastTransitionTime = "2026-01-01T00:00:00Z";
    const condition = (type: string, status: string, reason: string, message: string): object => ({
      type,
      status,
      reason,
      message,
      lastTransitionTime,
    });
    kube.server.collection(FENCING_TARGETS).mergePatch(
      { namespace: NAMESPACE, name: "n1" },
      {
        status: {
          powerState: "On",
          conditions: [condition("Ready", "False", "AuthenticationFailed", "correct the Secret")],
        },
      },
      "status",
    );
    kube.server.collection(BARE_METAL_REMEDIATIONS).mergePatch(
      { namespace: NAMESPACE, name: "n1" },
      {
        status: {
          phase: "Verifying",
          node: { name: "n1" },
          conditions: [
            condition("Processing", "True", "BMCUnreachable", "no answer from the BMC"),
            condition("Succeeded", "Unknown", "Processing", ""),
          ],
        },
      },
      "status",
    );
    const { out } = await ironfence("status");
    assert.match(out, /n1 +n1 +Verifying +Unknown +BMCUnreachable +no answer from the BMC/);
    assert.match(out, /n1 +n1 +On +False +AuthenticationFailed +correct the Secret/);
    const overview = JSON.parse((await ironfence("status", "-o", "json")).out) as {
      stopSwitch: object;
      remediations: { status: { phase: string } }[];
    };
    assert.deepEqual(overview.stopSwitch, { paused: false });
    assert.equal(overview.remediations[0]?.status.phase, "Verifying");
  });

  it("says in one line that it may not come in", async () => {
    const stranger = join(folder, "stranger");
    writeFileSync(stranger, kube.kubeconfig.replace("let-me-in", "not-the-token"));
    const { code, err } = await cli(["status", "--kubeconfig", stranger]);
    assert.equal(code, 1);
    assert.match(err, /^ironfence: [^\n]*401 Unauthorized[^\n]*\n$/);
    assert.doesNotMatch(err, /not-the-token/);
  });
});
