import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";

const read = (path: string): string => readFileSync(new URL(`../../../${path}`, import.meta.url), "utf8");

interface Locked {
  version: string;
  integrity?: string;
  resolved?: string;
  link?: boolean;
  dev?: boolean;
  hasInstallScript?: boolean;
}
const { "": root, ...locked } = (JSON.parse(read("package-lock.json")) as { packages: Record<string, Locked> })
  .packages;
const manifest = JSON.parse(read("package.json")) as Record<"dependencies" | "devDependencies", Record<string, string>>;

describe("the packages of the lock file", () => {
  it("the packages of the lock file are known by their contents, so that a registry can hand out no others", () => {
    assert.ok(root !== undefined && Object.keys(locked).length > 100);
    for (const [path, { integrity = "", link }] of Object.entries(locked)) {
      assert.notEqual(link, true, path);
      assert.match(integrity, /^sha512-[A-Za-z0-9+/]{86}==$/, path);
    }
  });

  it("the packages of the lock file come from a registry, and from no repository, archive or folder", () => {
    // npm leaves addresses of the registry out (.npmrc), so a package with an address comes from another source.
    assert.match(read(".npmrc"), /^omit-lockfile-registry-resolved=true$/m);
    for (const [path, { resolved, version }] of Object.entries(locked)) {
      assert.equal(resolved, undefined, path);
      assert.match(version, /^\d+\.\d+\.\d+/, path);
    }
  });

  it("the packages of the lock file run no script when they are installed, and only development packages have one", () => {
    const withScript = Object.entries(locked).filter(([, { hasInstallScript }]) => hasInstallScript === true);
    for (const [path, { dev }] of withScript) assert.equal(dev, true, path);
    assert.match(read("hack/setup/install.mjs"), /"--ignore-scripts"/);
  });

  it("the packages of the lock file are the very versions that were chosen, not a range of them", () => {
    for (const [name, version] of Object.entries({ ...manifest.dependencies, ...manifest.devDependencies }))
      assert.match(version, /^\d+\.\d+\.\d+(-[\w.]+)?$/, name);
  });
});
