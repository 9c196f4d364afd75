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
        // Texts that are quoted as bad examples.
        skip: ["BlockQuote"],
        terms: VOCABULARY.map(([pattern, instead]) => [wholeWords(pattern), instead]),
      },
    },
  ],
} satisfies TextlintKernelOptions;

/** What the vocabulary has against a file: a page, or the comments and messages of code and YAML. */
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

/** The pieces as paragraphs of one page, and for each of its lines the line of the file. */
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
