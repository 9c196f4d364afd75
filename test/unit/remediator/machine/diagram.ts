import { readFileSync } from "node:fs";

/** docs/explanation/remediation.md. */
export const REMEDIATION_DOC = readFileSync(
  new URL("../../../../docs/explanation/remediation.md", import.meta.url),
  "utf8",
);

const diagram = /```mermaid\nstateDiagram-v2\n([\s\S]*?)```/.exec(REMEDIATION_DOC)?.[1] ?? "";

/** The arrows of its state diagram; `[*]` is the beginning or the end. */
export const ARROWS = [...diagram.matchAll(/^ {2}(\S+) --> ([^\s:]+)/gm)].map(([, from = "", to = ""]) => ({
  from,
  to,
}));
