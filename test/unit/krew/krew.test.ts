import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { parse, stringify } from "yaml";
import { krewManifest } from "../../../hack/krew/manifest.ts";
import { releaseForKrew } from "../../../hack/krew/release.ts";
import type { KrewFiles } from "../../../hack/krew/release.ts";
import { krewProblems } from "./krew-rules.ts";

const URI = "https://downloads.example/ironfence/v1/kubectl-ironfence.tar.gz";
const RELEASE = { version: "1.2.3", uri: URI, sha256: "0".repeat(64) };

describe("the manifest for krew", () => {
  it("the manifest for krew keeps every rule of krew", () => {
    assert.deepEqual(krewProblems(stringify(krewManifest(RELEASE))), []);
  });

  for (const [field, broken] of [
    ["version", { ...RELEASE, version: "1.2" }],
    ["uri", { ...RELEASE, uri: "http://downloads.example/a.tar.gz" }],
    ["sha256", { ...RELEASE, sha256: "0".repeat(63) }],
  ] as const) {
    it(`the manifest for krew is refused if its ${field} is wrong`, () => {
      assert.deepEqual(krewProblems(stringify(krewManifest(broken))), [field]);
    });
  }

  it("the manifest for krew would not pass without a name, a platform, a selector, a program, or with a field that krew does not know", () => {
    const changed = (change: (manifest: Record<string, never>) => void): string[] => {
      const manifest = parse(stringify(krewManifest(RELEASE))) as Record<string, never>;
      change(manifest);
      return krewProblems(stringify(manifest));
    };
    assert.deepEqual(
      changed((manifest) => Object.assign(manifest["metadata"] ?? {}, { name: "iron fence" })),
      ["metadata.name"],
    );
    assert.deepEqual(
      changed(({ spec }) => Object.assign(spec ?? {}, { platforms: [] })),
      ["platforms"],
    );
    assert.deepEqual(
      changed(({ spec }) => Object.assign(spec ?? {}, { licence: "x" })),
      ["licence"],
    );
    const platform = { uri: URI, sha256: "0".repeat(64), bin: "", selector: { matchLabels: { node: "x" } }, files: [] };
    assert.deepEqual(
      changed(({ spec }) => Object.assign(spec ?? {}, { platforms: [platform] })),
      ["bin", "files", "selector"],
    );
  });
});

describe("a release for krew", () => {
  let folder: string;
  let files: KrewFiles;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "ironfence-krew-"));
    writeFileSync(join(folder, "built.js"), '#!/usr/bin/env node\nconsole.log("I am", process.argv[1]);\n');
    files = await releaseForKrew(join(folder, "built.js"), URI, join(folder, "out"));
  });
  after(() => rmSync(folder, { recursive: true }));

  it("a release for krew has a manifest that krew takes, of this version, with the checksum of the archive", () => {
    const text = readFileSync(files.manifest, "utf8");
    assert.deepEqual(krewProblems(text), []);
    const { spec } = parse(text) as { spec: { version: string; platforms: { uri: string; sha256: string }[] } };
    const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { version: string };
    assert.equal(spec.version, `v${version}`);
    assert.equal(spec.platforms[0]?.uri, URI);
    const sha256 = createHash("sha256").update(readFileSync(files.archive)).digest("hex");
    assert.equal(spec.platforms[0]?.sha256, sha256);
  });

  it("a release for krew has an archive with each file that the manifest names, and its program runs", () => {
    const unpacked = mkdtempSync(join(folder, "unpacked-"));
    execFileSync("tar", ["-xzf", files.archive, "-C", unpacked]);
    const { spec } = parse(readFileSync(files.manifest, "utf8")) as {
      spec: { platforms: { bin: string; files: { from: string }[] }[] };
    };
    const [platform] = spec.platforms;
    assert.ok(platform !== undefined);
    assert.ok(platform.files.some(({ from }) => from === platform.bin));
    for (const { from } of platform.files) assert.ok(statSync(join(unpacked, from)).size > 0, from);
    assert.match(execFileSync(join(unpacked, platform.bin), { encoding: "utf8" }), /^I am/);
  });

  it("a release for krew is the same again from the same program", async () => {
    const again = await releaseForKrew(join(folder, "built.js"), URI, join(folder, "again"));
    assert.deepEqual(readFileSync(again.archive), readFileSync(files.archive));
  });

  it("a release for krew is not made for an address that krew cannot download, or that has a user", async () => {
    for (const uri of [
      "http://downloads.example/a.tar.gz",
      "https://downloads.example/",
      "https://u:p@downloads.example/a.tar.gz",
    ]) {
      await assert.rejects(releaseForKrew(join(folder, "built.js"), uri, folder), /must be https:/);
    }
  });
});
