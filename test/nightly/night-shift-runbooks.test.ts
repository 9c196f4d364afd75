import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { parseAllDocuments } from "yaml";
import { TARGETS } from "../../hack/e2e/scenario.ts";
import { NAMESPACE } from "../../hack/e2e/world.ts";
import type { Manifest } from "../../hack/lib/apply.ts";
import { applyObject, waitUntilEstablished } from "../../hack/lib/apply.ts";
import { readForeignCrds } from "../../hack/lib/crds.ts";
import type { Alert } from "../../hack/monitoring/alerts.ts";
import { ALERTS } from "../../hack/monitoring/alerts.ts";
import type { Night } from "../e2e/night.ts";
import { REMEDIATIONS, startNight } from "../e2e/night.ts";
import type { RunbookShell } from "./runbook-commands.ts";
import { fillIn, openRunbookShell, runbookCommands } from "./runbook-commands.ts";

// Runs the commands of all runbooks on the cluster of a night on call.

/** These commands exit with 1 if they find problems, which is expected here. */
const REPORTS = /^ironfence check\b/;

const OBJECTS = {
  "node NAME": "node worker-1",
  "--target NAME": "--target worker-2",
  "fencingtarget NAME": "fencingtarget worker-1",
  "bmr NAME": "bmr worker-1",
  "nodehealthcheck NAME": "nodehealthcheck workers",
  "machinehealthcheck NAME": "machinehealthcheck of-machines",
  "mhc NAMESPACE/NAME": "mhc default/of-machines",
  "-n NAMESPACE": "-n default",
};

void describe("the runbooks", () => {
  let night: Night;
  let shell: RunbookShell;
  before(async () => {
    night = await startNight();
    shell = await openRunbookShell(night.world.controlPlane.kubeconfig);
  });
  after(async () => {
    await shell?.close();
    await night?.stop();
  });

  const follow = async (alert: Alert["name"]): Promise<void> => {
    const commands = runbookCommands(alert, "What to do");
    assert.ok(commands.length > 0, alert);
    for (const command of commands) await shell.run(fillIn(command, OBJECTS));
  };

  void test("the runbooks of a pause and of a maintenance end both by their commands", { timeout: 300_000 }, (t) =>
    night.play(t, [
      {
        name: "paused for long",
        node: "worker-2",
        says: "no Paused",
        alert: "IronfencePaused",
        make: () => night.command("pause", "--reason", "a test"),
        mend: () => follow("IronfencePaused"),
      },
      {
        name: "maintenance forgotten",
        node: "worker-1",
        says: "no Maintenance",
        alert: "IronfenceMaintenance",
        make: () => night.world.api.mergePatch(`${TARGETS}/worker-1`, { spec: { maintenance: true } }),
        mend: () => follow("IronfenceMaintenance"),
      },
    ]),
  );

  void test("the runbooks show commands that all run, on objects of each kind", { timeout: 300_000 }, async (t) => {
    const { api } = night.world;
    for (const document of (await readForeignCrds()).flatMap((text) => parseAllDocuments(text))) {
      const crd = document.toJS() as Manifest;
      if (!/^\w+\.cluster\.x-k8s\.io$/.test(crd.metadata.name)) continue;
      await applyObject(api, crd);
      await waitUntilEstablished(api, crd.metadata.name);
    }
    const ofMachines: Manifest = {
      apiVersion: "cluster.x-k8s.io/v1beta2",
      kind: "MachineHealthCheck",
      metadata: { namespace: "default", name: "of-machines" },
      spec: { clusterName: "prod", selector: { matchLabels: { pool: "a" } } },
    };
    await applyObject(api, ofMachines);
    // Maintenance ensures that no host is powered off.
    await api.mergePatch(`${TARGETS}/worker-1`, { spec: { maintenance: true } });
    await api.create(REMEDIATIONS, {
      apiVersion: "ironfence.io/v1alpha1",
      kind: "BareMetalRemediation",
      metadata: { namespace: NAMESPACE, name: "worker-1" },
      spec: {},
    });
    await night.answersAre("worker-1", "no Maintenance");
    const broken: string[] = [];
    const commands = new Set(ALERTS.flatMap(({ name }) => runbookCommands(name, "How to see it")));
    for (const command of commands) {
      const filled = fillIn(command, OBJECTS);
      try {
        await shell.run(REPORTS.test(filled) ? `(${filled} || true) | grep -E ' passed, .* failed$'` : filled);
      } catch (error) {
        broken.push(String(error));
      }
    }
    t.diagnostic(`${commands.size} commands: ${[...commands].join("; ")}`);
    assert.deepEqual(broken, []);
  });
});
