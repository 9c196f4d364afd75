import { stringify } from "yaml";
import type { ValueSchema } from "./schema.ts";

/** Characters on a line of a comment. */
const LINE_MAX = 100;
const HEADER = "# Generated from hack/chart/values.ts by `npm run generate`; do not edit.\n";

/** values.yaml of the chart: every default, each with its description. */
export function valuesYaml(schema: ValueSchema): string {
  return `${HEADER}${linesOf(schema, "").join("\n")}\n`;
}

function linesOf({ properties = {} }: ValueSchema, indent: string): string[] {
  return Object.entries(properties).flatMap(([name, child]) => {
    const isGroup = child.properties !== undefined;
    const value = isGroup
      ? [`${indent}${name}:`, ...linesOf(child, `${indent}  `)]
      : stringify({ [name]: child.default }, { version: "1.1", lineWidth: 0 })
          .trimEnd()
          .split("\n")
          .map((line) => indent + line);
    return [...(indent === "" ? [""] : []), ...commentOf(child.description, indent), ...value];
  });
}

function commentOf(text: string, indent: string): string[] {
  const lines = [`${indent}#`];
  for (const word of text.split(" ")) {
    const line = `${lines.at(-1)} ${word}`;
    if (line.length <= LINE_MAX) lines[lines.length - 1] = line;
    else lines.push(`${indent}# ${word}`);
  }
  return lines;
}
