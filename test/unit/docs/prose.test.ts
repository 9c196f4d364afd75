import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { conflictMarkers } from "../../../hack/prose/conflict-markers.ts";
import { LINE_LENGTH_MAX, longCommentLines } from "../../../hack/prose/line-length.ts";
import { lintProse } from "../../../hack/prose/lint.ts";
import { lintTestNames } from "../../../hack/prose/test-names.ts";
import type { Term } from "../../../hack/prose/vocabulary.ts";
import { GLOSSARY, VOCABULARY } from "../../../hack/prose/vocabulary.ts";

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

  it("the check of prose finds an expression in comments, on their own line of the file", async () => {
    assert.deepEqual(await linesOf("a.ts", "const a = 1;\n// It starts\n// anew.\n"), [3]);
    assert.deepEqual(await linesOf("a.ts", "/**\n * It is off by\n * now.\n */\nexport const a = 1;\n"), [2]);
  });

  it("the check of prose finds an expression in messages, in each part of a template too", async () => {
    assert.deepEqual(await linesOf("a.ts", 'const a = "it starts anew";\n'), [1]);
    assert.deepEqual(await linesOf("a.ts", "const a = `x ${b}\n starts anew ${c} and starts anew`;\n"), [2, 2]);
  });

  it("the check of prose leaves names and single words of the code alone", async () => {
    assert.deepEqual(await linesOf("a.ts", 'const tells = { anew: "anew" }; // calls `tells`\n'), []);
  });

  it("the check of prose finds an expression in the texts of JSX and in JavaScript", async () => {
    assert.deepEqual(await linesOf("a.tsx", "export const a = <b>It starts anew.</b>;\n"), [1]);
    assert.deepEqual(await linesOf("a.mjs", "// It starts anew.\nexport const a = 1;\n"), [1]);
  });

  it("the check of prose finds an expression in comments of YAML", async () => {
    assert.deepEqual(await linesOf("a.yaml", "kind: A\n# It starts anew.\nname: anew\n"), [2]);
  });

  it("the check of prose proposes each replacement as the vocabulary has it, for every form of a word", async () => {
    const [finding] = await lintProse("page.md", "The walkers act.\n");
    assert.match(finding?.message ?? "", /“walkers”, use “controller” instead/);
  });
});

/** A sentence for each expression that a rule forbids. */
function wrongSentences([pattern, , sample]: Term): string[] {
  if (sample !== undefined) return [sample.wrong];
  assert.match(pattern, /^[a-z|' -]+$/, `the rule ${pattern} is more than a list of words and needs a sample`);
  return pattern.split("|").map((words) => `It ${words} it.`);
}

describe("the vocabulary", () => {
  it("the vocabulary has no rule that does not find what it is for", async () => {
    for (const term of VOCABULARY) {
      for (const sentence of wrongSentences(term)) {
        const findings = await lintProse("page.md", `${sentence}\n`);
        const found = findings.filter(({ message }) => message.toLowerCase().includes(`use “${term[1]}`.toLowerCase()));
        assert.equal(found.length, 1, `${term[0]} in “${sentence}”: ${JSON.stringify(findings)}`);
      }
    }
  });

  it("the vocabulary accepts a word that is used in another sense", async () => {
    for (const [pattern, , sample] of VOCABULARY) {
      if (sample?.right === undefined) continue;
      assert.deepEqual(await lintProse("page.md", `${sample.right}\n`), [], pattern);
    }
  });

  it("the vocabulary has the words that the glossary does not use, and no others", () => {
    const page = readFileSync(new URL("../../../docs/reference/glossary.md", import.meta.url), "utf8");
    const rows = page.slice(page.indexOf("| not | but |")).split("\n").slice(2);
    const words = rows.flatMap((row) => [...(row.split("|")[1] ?? "").matchAll(/`([^`]+)`/g)].map(([, word]) => word));
    assert.ok(words.length > 20);
    assert.deepEqual(new Set(Object.keys(GLOSSARY)), new Set(words));
  });
});

describe("the check of comment lines", () => {
  it("the check of comment lines finds a line of a comment that is too long, and no line of code", () => {
    const words = "word ".repeat(30);
    const source = `// ${words}\n/**\n * ${words}\n */\nconst a = "${words}";\nconst b = 1; // ${words}\n`;
    assert.deepEqual(
      longCommentLines("a.ts", source).map(({ line }) => line),
      [1, 3, 6],
    );
  });

  it("the check of comment lines allows a line that cannot be broken", () => {
    assert.deepEqual(longCommentLines("a.ts", `// https://example.com/${"x".repeat(LINE_LENGTH_MAX)}\n`), []);
  });
});

describe("the check of conflict markers", () => {
  const linesWith = (source: string): number[] => conflictMarkers("a.md", source).map(({ line }) => line);

  it("the check of conflict markers finds those of git in a page and in comments", () => {
    const [ours, base, theirs] = ["<", "|", ">"].map((sign) => sign.repeat(7));
    assert.deepEqual(linesWith(`a\n${ours} HEAD\nb\n${base} 1a2b\n=======\nc\n${theirs} other\n`), [2, 4, 7]);
    assert.deepEqual(linesWith(`/**\n * ${ours} HEAD\n */\n// ${theirs} other\n# ${theirs}\n`), [2, 4, 5]);
  });

  it("the check of conflict markers allows a heading that is underlined, a shift and a table", () => {
    assert.deepEqual(linesWith("Title\n=======\n\n>> quoted\n| a | b |\nx <<<<<<< y\n<<<<<<<<\n"), []);
  });
});

describe("the check of test names", () => {
  const problem = (...names: string[]): string[] =>
    lintTestNames("a.test.ts", names.map((name) => `it(${JSON.stringify(name)}, () => {});`).join("\n")).map(
      ({ line, message }) => `${line}: ${message.slice("test name ".length).split(/[,:]/)[0]}`,
    );

  it("the check of test names accepts a sentence with a subject and a verb", () => {
    assert.deepEqual(problem("a host that is off is not powered off", "names are encoded"), []);
  });

  it("the check of test names refuses a name without a subject", () => {
    const names = [
      "is not powered off",
      "keeps its host off",
      "that is off is powered on",
      "under a hold if it is off",
    ];
    assert.deepEqual(problem(...names), [
      "1: begins with “is”",
      "2: begins with “keeps”",
      "3: begins with “that”",
      "4: begins with “under”",
    ]);
  });

  it("the check of test names refuses a name of two words, a long one, and one that is used twice", () => {
    assert.deepEqual(problem("power off", `a host ${"x".repeat(154)}`, "a host is off", "a host is off"), [
      "1: is not a sentence",
      "2: has 161 characters",
      "4: is also in a.test.ts",
    ]);
  });

  it("the check of test names refuses a name that another file has", () => {
    const source = 'it("a host is off", () => {});';
    const known = new Map<string, string>();
    assert.deepEqual(lintTestNames("a.test.ts", source, known), []);
    assert.match(lintTestNames("b.test.ts", source, known)[0]?.message ?? "", /is also in a\.test\.ts/);
  });

  it("the check of test names refuses phrases that a reader has to read twice", () => {
    assert.deepEqual(
      problem(
        "a wave of which 4 hosts read Off ends",
        "an Off of another host is none",
        "an Off is proven all the same",
        "a server that has restarted is taken at its word",
        "a watch is silent to who knows later versions",
        "a host that its operator has let go of stays off",
        "an obstacle is in the way of a power-off",
        "the news of a deletion is late",
      ),
      [
        "of which",
        "is none",
        "all the same",
        "at its word",
        "to who knows",
        "has let go of",
        "in the way of",
        "the news of",
      ].map((phrase, index) => `${index + 1}: is hard to read at “${phrase}”`),
    );
  });

  it("the check of test names reads template strings and ignores tests of other functions", () => {
    const source = "test(`is ${off} and on`, f);\nvoid it('has no host', f);\ndescribe('is', f);\na.test('is a b');\n";
    assert.deepEqual(
      lintTestNames("a.test.ts", source).map(({ line }) => line),
      [1, 2],
    );
  });

  it("the check of test names finds no fragment among the names that lists of cases form", async () => {
    const script = fileURLToPath(new URL("../../../hack/prose/whole-names.ts", import.meta.url));
    const { stdout } = await promisify(execFile)(process.execPath, [script]);
    assert.match(stdout, /^\d{4,} names\n$/);
  });
});
