import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { lintProse } from "../../../hack/prose/lint.ts";

/** The lines on which the prose check finds something. */
async function linesOf(file: string, source: string): Promise<number[]> {
  return (await lintProse(file, source)).map(({ line }) => line);
}

describe("the check of prose", () => {
  it("the check of prose finds an expression of the vocabulary in a page, also across a line break", async () => {
    const [finding] = await lintProse("page.md", "# Title\n\nThe host is off by\nnow.\n");
    assert.equal(finding?.line, 3);
    assert.match(finding.message, /“by now”, use “already, now”/);
  });

  it("the check of prose leaves code and quotations alone", async () => {
    assert.deepEqual(await linesOf("page.md", "`anew`\n\n```\nanew\n```\n\n> anew\n"), []);
  });

  it("the check of prose finds it in comments, on their own line of the file", async () => {
    assert.deepEqual(await linesOf("a.ts", "const a = 1;\n// It starts\n// anew.\n"), [3]);
    assert.deepEqual(await linesOf("a.ts", "/**\n * It is off by\n * now.\n */\nexport const a = 1;\n"), [2]);
  });

  it("the check of prose finds it in messages, in each part of a template too", async () => {
    assert.deepEqual(await linesOf("a.ts", 'const a = "it starts anew";\n'), [1]);
    assert.deepEqual(await linesOf("a.ts", "const a = `x ${b}\n starts anew ${c} and starts anew`;\n"), [2, 2]);
  });

  it("the check of prose leaves names and single words of the code alone", async () => {
    assert.deepEqual(await linesOf("a.ts", 'const tells = { anew: "anew" }; // calls `tells`\n'), []);
  });

  it("the check of prose finds it in comments of YAML", async () => {
    assert.deepEqual(await linesOf("a.yaml", "kind: A\n# It starts anew.\nname: anew\n"), [2]);
  });
});
