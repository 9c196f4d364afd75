import { fileURLToPath } from "node:url";
import { figuresOf, importsOfFiles } from "./graph.ts";

// Prints the figures of the folders and imports of `src`, as a table of Markdown. An argument names another checkout.

const root = process.argv[2] ?? fileURLToPath(new URL("../..", import.meta.url));
for (const [what, figure] of Object.entries(figuresOf(importsOfFiles(root)))) {
  console.log(`| ${what} | ${figure.toLocaleString("en")} |`);
}
