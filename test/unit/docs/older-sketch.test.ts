import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { createApiServer } from "../../../hack/kube-mock/api-server.ts";
import { readCrds } from "../../../hack/lib/crds.ts";
import type { BareMetalRemediation } from "../../../src/api/ironfence/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../../../src/api/ironfence/bare-metal-remediation.ts";
import type { BoundedStrategy } from "../../../src/remediator/machine/model/decision/strategy.ts";
import { strategyOf } from "../../../src/remediator/machine/model/decision/strategy.ts";
import { readEntries } from "../../lib/page-entries.ts";
import { systemClock, systemRandom } from "../../../src/runtime/system.ts";

// docs/how-to/migrate.md has the replacements for fields of the older sketch. The test parses the YAML of each item,
// applies the CRD, and compares the strategy that the state machine uses.

const DOCUMENT = readFileSync(new URL("../../../docs/how-to/migrate.md", import.meta.url), "utf8");
const RETRIES = 3;
const SECONDS = 45;
const MEANINGS: Readonly<Record<string, Partial<BoundedStrategy>>> = {
  "strategy: escalate": { type: "Escalate" },
  "deleteAfterRetries: N": { type: "Escalate", via: "MachineDeletion", retryLimit: RETRIES },
  "powerOffTimeoutSeconds: S": { powerOffTimeoutMs: SECONDS * 1000 },
  "powerOnTimeoutSeconds: S": { powerOnTimeoutMs: SECONDS * 1000, timeoutMs: SECONDS * 1000 },
};

describe("the fields that replace the older sketch's", () => {
  const rows = readRows();

  it("the fields that replace the older sketch's are listed in the page, one for each field of the sketch", () => {
    assert.deepEqual([...rows.keys()], Object.keys(MEANINGS));
  });

  for (const [sketch, meaning] of Object.entries(MEANINGS)) {
    it(`the field ${sketch} of the older sketch has its replacement`, async () => {
      const plan = await planOfYaml(rows.get(sketch) ?? []);
      const unsaid = await planOfYaml([]);
      for (const key of Object.keys(meaning) as (keyof BoundedStrategy)[])
        assert.notEqual(meaning[key], unsaid[key], key);
      // Fields that the item does not mention keep their defaults.
      assert.deepEqual(plan, { ...unsaid, ...meaning });
    });
  }
});

/** The fields of the sketch, with the YAML that replaces them in our strategy. */
function readRows(): Map<string, string[]> {
  const items = readEntries(DOCUMENT).filter(({ nested }) =>
    nested.some((test) => test.includes("/older-sketch.test.ts")),
  );
  return new Map(
    items.map(({ text }) => {
      const [, sketch = "", ours = ""] = /^`([^`]+)`: (.+)$/.exec(text) ?? [];
      const lines = [...ours.matchAll(/`([^`]+)`/g)].map(([, line = ""]) => line);
      const said = lines.map((line) => line.replace(": N", `: ${RETRIES}`).replace(": S", `: ${SECONDS}`));
      return [sketch, said];
    }),
  );
}

/** The strategy of a remediation with this YAML, after defaults and pruning by our CRD. */
async function planOfYaml(strategy: readonly string[]): Promise<BoundedStrategy> {
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
  return strategyOf(stored.spec);
}
