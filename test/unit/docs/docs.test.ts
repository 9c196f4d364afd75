import assert from "node:assert/strict";
import { existsSync, globSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");

const DOCUMENTS = globSync(["*.md", "docs/**/*.md"], { cwd: ROOT });
const LINE_MAX = 120;
/** Pages with tables of measurements and the generated matrix of faults and operations. Each row is one long line. */
const TABLES_OF_FIGURES = new Set(["docs/evidence/benchmarks.md", "docs/evidence/bmc-faults.md"]);

/** The anchors of a page's headings, as GitHub makes them. */
function anchorsOf(document: string): Set<string> {
  const headings = [...read(document).matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) => heading);
  return new Set(
    headings.map((heading) =>
      heading
        .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
        .replaceAll(" ", "-"),
    ),
  );
}

describe("the documents", () => {
  it("the documents link to files and headings that exist", () => {
    const links = DOCUMENTS.flatMap((document) =>
      [...read(document).matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)/g)].map(([, link = "", anchor]) => ({
        document,
        target: link === "" ? document : join(dirname(document), link),
        anchor,
      })),
    );
    assert.ok(links.length > 0);
    for (const { document, target, anchor } of links) {
      assert.ok(existsSync(join(ROOT, target)), `${document}: ${target}`);
      if (anchor !== undefined) assert.ok(anchorsOf(target).has(anchor), `${document}: ${target}#${anchor}`);
    }
  });

  it("the documents are all linked from another page", () => {
    const linked = new Set(
      DOCUMENTS.flatMap((document) =>
        [...read(document).matchAll(/\]\((?!https?:)([^)#]+)/g)].map(([, link = ""]) => join(dirname(document), link)),
      ),
    );
    for (const document of DOCUMENTS.filter((file) => file.startsWith("docs/") && file !== "docs/README.md")) {
      assert.ok(linked.has(document), `no page links to ${document}`);
    }
  });

  it("the documents keep their lines within 120 characters, except in tables of figures", () => {
    for (const document of DOCUMENTS) {
      const isLong = (line: string): boolean =>
        line.length > LINE_MAX && !(line.startsWith("|") && TABLES_OF_FIGURES.has(document));
      const long = read(document).split("\n").findIndex(isLong);
      assert.equal(long, -1, `${document}:${long + 1}`);
    }
  });

  it("the documents apply the folders of deploy in one way, which is --server-side", () => {
    const files = [...DOCUMENTS, ...globSync(["{examples,deploy}/**/*.yaml", "src/**/*.ts"], { cwd: ROOT })];
    const commands = files.flatMap((file) => read(file).match(/kubectl apply [^\n`]*-k deploy[^\s`]*/g) ?? []);
    assert.ok(commands.length > 15, String(commands.length));
    assert.deepEqual(
      commands.filter((command) => !command.includes("--server-side")),
      [],
    );
  });

  it("the documents name paths of the repository that are there", () => {
    for (const document of DOCUMENTS) {
      for (const [, path = ""] of read(document).matchAll(/`((?:src|hack|test|deploy|docs|examples)\/[\w./-]+)`/g)) {
        assert.ok(existsSync(join(ROOT, path)), `${document}: ${path}`);
      }
    }
  });

  it("the documents list every decision with its title, date and status", () => {
    const index = read("docs/decisions/README.md").replaceAll("\n  ", " ");
    for (const name of readdirSync(join(ROOT, "docs/decisions")).filter((file) => /^\d/.test(file))) {
      const [, title = "", status = "", date = ""] =
        /^# (.+)\n\n(Accepted|Replaced by \[\d{4}\]\([^)]+\)) on (\d{4}-\d\d-\d\d)\.\n/.exec(
          read(`docs/decisions/${name}`),
        ) ?? [];
      assert.notEqual(title, "", `${name} does not begin with its title and "Accepted on DATE."`);
      const item = `- [${name.slice(0, 4)}](${name}) ${title} (${status.toLowerCase()}, ${date})\n`;
      assert.ok(index.includes(item), `docs/decisions/README.md lacks: ${item}`);
    }
  });

  it("the documents describe every metric that exists and no other one", () => {
    const names = (text: string): string[] => [
      ...new Set(
        [...text.matchAll(/[`"]((?:ironfence|nodehealthcheck|mapi_machinehealthcheck)_[a-z_]+)[`"]/g)].map(
          ([, name = ""]) => name,
        ),
      ),
    ];
    const inCode = globSync("src/**/*.ts", { cwd: ROOT }).flatMap((file) => names(read(file)));
    assert.deepEqual(names(read("docs/reference/metrics.md")).sort(), [...new Set(inCode)].sort());
  });

  it("the documents say of every folder what is in it", () => {
    const architecture = read("docs/contributing/architecture.md");
    for (const parent of ["src", "hack", "test"]) {
      const folders = readdirSync(join(ROOT, parent), { withFileTypes: true }).filter((entry) => entry.isDirectory());
      for (const { name } of folders.filter((folder) => folder.name !== "lib" || parent !== "test")) {
        assert.ok(architecture.includes(`\`${parent}/${name}\``), `${parent}/${name}`);
      }
    }
  });

  it("the documents have an entry for every dependency in the record of dependencies", () => {
    const decisions = read("docs/decisions/0007-dependencies.md");
    const { dependencies, devDependencies } = JSON.parse(read("package.json")) as Record<string, object>;
    for (const name of Object.keys({ ...dependencies, ...devDependencies })) {
      assert.ok(name === "@types/node" || decisions.includes(name), name);
    }
  });
});
