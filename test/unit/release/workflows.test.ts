import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { parse } from "yaml";
import { TIERS } from "../../../hack/nightly/tiers.ts";

const FOLDER = new URL("../../../.github/workflows/", import.meta.url);

interface Step {
  uses?: string;
  run?: string;
}
interface Workflow {
  permissions: object;
  jobs: Record<
    string,
    {
      permissions: Record<string, string>;
      "timeout-minutes": number;
      steps: Step[];
      strategy?: { matrix: { tier: string[] } };
    }
  >;
}

const texts = new Map(readdirSync(FOLDER).map((name) => [name, readFileSync(new URL(name, FOLDER), "utf8")]));
const workflows = new Map([...texts].map(([name, text]) => [name, parse(text) as Workflow]));

describe("the workflows of the hosted CI", () => {
  it("the workflows of the hosted CI are test, nightly and release", () => {
    assert.deepEqual([...texts.keys()].toSorted(), ["nightly.yml", "release.yml", "test.yml"]);
  });

  it("the workflows of the hosted CI use actions by commit, with their version in a comment", () => {
    for (const [name, text] of texts) {
      const uses = text.split("\n").filter((line) => /^\s*(?:- )?uses:/.test(line));
      assert.ok(uses.length > 0, name);
      for (const line of uses) assert.match(line, /uses: [\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/, name);
    }
  });

  it("the workflows of the hosted CI grant nothing to all jobs, and every job has its own permissions and a deadline", () => {
    for (const [name, { permissions, jobs }] of workflows) {
      assert.deepEqual(permissions, {}, name);
      for (const [job, { permissions: own, "timeout-minutes": minutes }] of Object.entries(jobs)) {
        assert.ok(minutes > 0 && minutes <= 360, `${name} ${job}`);
        if (job === "publish") continue;
        assert.deepEqual(own, { contents: "read" }, `${name} ${job}`);
      }
    }
  });

  it("the workflows of the hosted CI put no text of an event into a script", () => {
    for (const [name, { jobs }] of workflows)
      for (const { run = "" } of Object.values(jobs).flatMap(({ steps }) => steps))
        assert.doesNotMatch(run, /\$\{\{/, name);
  });

  it("the job that publishes a release runs no code of the repository", () => {
    const { steps = [] } = workflows.get("release.yml")?.jobs["publish"] ?? {};
    assert.ok(steps.length > 0);
    for (const { uses = "", run = "" } of steps) {
      assert.doesNotMatch(uses, /checkout/);
      assert.doesNotMatch(run, /\b(?:npm|node)\b/);
    }
  });

  it("the nightly workflow runs every tier", () => {
    const tiers = workflows.get("nightly.yml")?.jobs["tier"]?.strategy?.matrix.tier;
    assert.deepEqual(
      tiers,
      TIERS.map(({ name }) => name),
    );
  });
});
