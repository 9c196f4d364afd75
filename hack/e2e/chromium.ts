import { accessSync, constants } from "node:fs";
import { createRequire } from "node:module";
import { readFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { chromium } from "playwright-core";

const NAMES = ["chromium", "chromium-browser", "google-chrome"];

/** Starts the Chromium that is installed. @throws Error that says what to install. */
export async function startChromium(): Promise<Browser> {
  const folders = (process.env.PATH ?? "").split(delimiter);
  const found = NAMES.flatMap((name) => folders.map((folder) => join(folder, name))).find(isExecutable);
  if (found === undefined) {
    throw new Error("there is no Chromium on PATH (Debian: apt-get install --no-install-recommends chromium)");
  }
  // The sandbox of Chromium does not work as root, as in CI. Tests open only pages of this repository.
  const args = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  return chromium.launch({ executablePath: found, args });
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

interface AxeResult {
  violations: { id: string; help: string; nodes: { html: string; failureSummary?: string }[] }[];
  passes: unknown[];
}

/** The accessibility violations that axe-core finds. Fails if axe-core has checked nothing. */
export async function axeViolations(page: Page): Promise<string[]> {
  const source = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
  // The debugger runs the script, because the content security policy of the page allows no foreign script.
  await page.evaluate(source);
  const result = await page.evaluate<AxeResult>("axe.run(document, { resultTypes: ['violations', 'passes'] })");
  if (result.passes.length === 0) throw new Error("axe has checked nothing");
  return result.violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ html, failureSummary = "" }) => `${id}: ${help}: ${html.slice(0, 200)}: ${failureSummary}`),
  );
}
