import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { createApiServer } from "../../../hack/kube-mock/api-server.ts";
import { readCrds } from "../../../hack/lib/crds.ts";
import type { BareMetalRemediation } from "../../../src/api/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../../../src/api/bare-metal-remediation.ts";
import type { Plan } from "../../../src/remediator/machine/model/strategy.ts";
import { planOf } from "../../../src/remediator/machine/model/strategy.ts";
import { systemClock, systemRandom } from "../../../src/runtime/system.ts";

// docs/how-to/migrate.md says what stands for the fields of the older sketch. Each row is taken as printed, as YAML, through the CRD
// to what the state machine goes by.

const DOCUMENT = readFileSync(new URL("../../../docs/how-to/migrate.md", import.meta.url), "utf8");
const RETRIES = 3;
const SECONDS = 45;
const MEANINGS: Readonly<Record<string, Partial<Plan>>> = {
  "strategy: escalate": { type: "Escalate" },
  "deleteAfterRetries: N": { type: "Escalate", via: "MachineDeletion", retryLimit: RETRIES },
  "powerOffTimeoutSeconds: S": { powerOffTimeoutMs: SECONDS * 1000 },
  "powerOnTimeoutSeconds: S": { powerOnTimeoutMs: SECONDS * 1000, timeoutMs: SECONDS * 1000 },
};

describe("in the place of the older sketch's", () => {
  const rows = readRows();

  it("fields there is something each", () => {
    assert.deepEqual([...rows.keys()], Object.keys(MEANINGS));
  });

  for (const [sketch, meaning] of Object.entries(MEANINGS)) {
    it(sketch, async () => {
      const plan = await planOfYaml(rows.get(sketch) ?? []);
      const unsaid = await planOfYaml([]);
      for (const key of Object.keys(meaning) as (keyof Plan)[]) assert.notEqual(meaning[key], unsaid[key], key);
      // What the row does not speak of stays as it is by default.
      assert.deepEqual(plan, { ...unsaid, ...meaning });
    });
  }
});

/** What the sketch said, with the lines of YAML that say it in a strategy of ours. */
function readRows(): Map<string, string[]> {
  const table = DOCUMENT.slice(DOCUMENT.indexOf("| sketch |")).split("\n\n")[0] ?? "";
  const rows = table.trim().split("\n").slice(2);
  return new Map(
    rows.map((row) => {
      const [, sketch = "", ours = ""] = row.split("|").map((cell) => cell.trim());
      const lines = [...ours.matchAll(/`([^`]+)`/g)].map(([, line = ""]) => line);
      const said = lines.map((line) => line.replace(": N", `: ${RETRIES}`).replace(": S", `: ${SECONDS}`));
      return [sketch.replaceAll("`", ""), said];
    }),
  );
}

/** The plan of a remediation with that strategy, as an API server with our CRDs stores it. */
async function planOfYaml(strategy: readonly string[]): Promise<Plan> {
  const server = createApiServer({ clock: systemClock, random: systemRandom });
  for (const crd of await readCrds()) server.load(crd);
  const lines = strategy.map((line) => `    ${line}\n`).join("");
  server.load(`apiVersion: ironfence.io/v1alpha1
kind: BareMetalRemediation
metadata: { name: n1, namespace: default }
spec:
  strategy:${lines === "" ? " {}" : `\n${lines}`}
`);
  const remediations = server.collection<BareMetalRemediation>(BARE_METAL_REMEDIATIONS);
  const stored = remediations.get({ namespace: "default", name: "n1" });
  server.close();
  assert.ok(stored);
  return planOf(stored.spec);
}
