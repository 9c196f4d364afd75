import type { TextlintKernelOptions } from "@textlint/kernel";
import { TextlintKernel } from "@textlint/kernel";
import markdown from "@textlint/textlint-plugin-markdown";
import terminology from "textlint-rule-terminology";
import { VOCABULARY, wholeWords } from "./vocabulary.ts";
import type { Piece } from "./extract.ts";
import { proseOfCode, proseOfYaml } from "./extract.ts";
import { isCode } from "./parse.ts";

export interface Finding {
  file: string;
  line: number;
  message: string;
}

const kernel = new TextlintKernel();
const OPTIONS = {
  ext: ".md",
  plugins: [{ pluginId: "markdown", plugin: markdown.default }],
  rules: [
    {
      ruleId: "terminology",
      rule: terminology,
      options: {
        defaultTerms: false,
        // Block quotes contain bad examples.
        skip: ["BlockQuote"],
        terms: VOCABULARY.map(([pattern, instead]) => [wholeWords(pattern), instead]),
      },
    },
  ],
} satisfies TextlintKernelOptions;

/** Checks a page, or the comments and messages of code or YAML, against the vocabulary. */
export async function lintProse(file: string, source: string): Promise<Finding[]> {
  if (file.endsWith(".md")) return lintMarkdown(file, source, (line) => line);
  const pieces = isCode(file) ? proseOfCode(source, file) : proseOfYaml(source);
  const { text, lines } = join(pieces);
  return lintMarkdown(file, text, (line) => lines[line - 1] ?? 1);
}

async function lintMarkdown(file: string, text: string, lineOf: (line: number) => number): Promise<Finding[]> {
  const { messages } = await kernel.lintText(text, OPTIONS);
  return messages.map(({ loc, message }) => ({
    file,
    line: lineOf(loc.start.line),
    message: message.replaceAll(/\s+/g, " "),
  }));
}

/** Joins the pieces into one page, a paragraph each, with the line of the file for each line of the page. */
function join(pieces: readonly Piece[]): { text: string; lines: number[] } {
  const text: string[] = [];
  const lines: number[] = [];
  for (const piece of pieces) {
    for (const [index, line] of piece.text.split("\n").entries()) {
      text.push(line.trim());
      lines.push(piece.line + index);
    }
    text.push("");
    lines.push(piece.line);
  }
  return { text: text.join("\n"), lines };
}
