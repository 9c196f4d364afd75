import assert from "node:assert/strict";
import { existsSync, globSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");

describe("the documents", () => {
  it("link to files that are there", () => {
    const documents = [...globSync("*.md", { cwd: ROOT }), ...globSync("docs/**/*.md", { cwd: ROOT })];
    const links = documents.flatMap((document) =>
      [...read(document).matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map(([, link = ""]) => ({ document, link })),
    );
    assert.ok(links.length > 0);
    for (const { document, link } of links) {
      assert.ok(existsSync(join(ROOT, dirname(document), link)), `${document}: ${link}`);
    }
  });

  it("name paths of the repository that are there", () => {
    const documents = [...globSync("*.md", { cwd: ROOT }), ...globSync("docs/**/*.md", { cwd: ROOT })];
    for (const document of documents) {
      for (const [, path = ""] of read(document).matchAll(/`((?:src|hack|test|deploy|docs|examples)\/[\w./-]+)`/g)) {
        assert.ok(existsSync(join(ROOT, path)), `${document}: ${path}`);
      }
    }
  });

  it("list every decision under its title", () => {
    const index = read("docs/decisions/README.md");
    for (const name of readdirSync(join(ROOT, "docs/decisions")).filter((file) => /^\d/.test(file))) {
      const title = /^# (.+)$/m.exec(read(`docs/decisions/${name}`))?.[1];
      assert.ok(index.includes(`- [${name.slice(0, 4)}](${name}) ${title}\n`), `${name}: ${title}`);
    }
  });

  it("say of every folder what is in it", () => {
    const architecture = read("docs/contributing/architecture.md");
    for (const parent of ["src", "hack", "test"]) {
      const folders = readdirSync(join(ROOT, parent), { withFileTypes: true }).filter((entry) => entry.isDirectory());
      for (const { name } of folders.filter((folder) => folder.name !== "lib" || parent !== "test")) {
        assert.ok(architecture.includes(`\`${parent}/${name}\``), `${parent}/${name}`);
      }
    }
  });

  it("have a decision for every dependency", () => {
    const decisions = globSync("docs/decisions/*.md", { cwd: ROOT }).map(read).join("\n");
    const { dependencies, devDependencies } = JSON.parse(read("package.json")) as Record<string, object>;
    for (const name of Object.keys({ ...dependencies, ...devDependencies })) {
      assert.ok(name === "@types/node" || decisions.includes(name), name);
    }
  });
});
