import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import { imageBillOfMaterials } from "../../../hack/image/bill-of-materials.ts";
import { withRegistry } from "../../../hack/release/named-image.ts";
import { changesOf, releaseNotes } from "../../../hack/release/notes.ts";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const { version: VERSION } = JSON.parse(readFileSync(`${ROOT}package.json`, "utf8")) as { version: string };

const CHANGELOG = `# Changelog

## [Unreleased]

### Added
- A second thing.

## [1.2.0] - 2026-01-02

- A first thing, see [Unreleased].

## [1.1.0] - 2026-01-01

[1.2.0]: https://example.test/1.2.0
`;

describe("the notes of a release", () => {
  it("the notes of a release have the entries of its version, and no others", () => {
    assert.equal(changesOf(CHANGELOG, "Unreleased"), "### Added\n- A second thing.");
    assert.equal(changesOf(CHANGELOG, "1.2.0"), "- A first thing, see [Unreleased].");
  });

  it("the changelog has no changes for a version without entries, or without a section", () => {
    assert.equal(changesOf(CHANGELOG, "1.1.0"), undefined);
    assert.equal(changesOf(CHANGELOG, "1.2"), undefined);
  });

  it("the notes of a release name the digest of each image, and each file", () => {
    const notes = releaseNotes({
      version: "1.2.0",
      changes: "- A first thing.",
      images: { amd64: "sha256:a", arm64: "sha256:b" },
      files: ["ironfence-1.2.0.tgz"],
    });
    for (const part of [/amd64 \| `sha256:a`/, /arm64 \| `sha256:b`/, /`ironfence-1\.2\.0\.tgz`/, /- A first thing\./])
      assert.match(notes, part);
  });

  it("the repository's changelog has changes to release", () => {
    const changelog = readFileSync(new URL("../../../CHANGELOG.md", import.meta.url), "utf8");
    assert.match(changesOf(changelog, "Unreleased") ?? "", /^### \w+/m);
  });
});

describe("the bill of materials of an image", () => {
  it("the bill of materials of an image lists the packages of the bundle, Node, and Debian's packages with checksums", () => {
    const bundle = { bomFormat: "CycloneDX", components: [{ name: "undici" }] };
    const bill = JSON.parse(imageBillOfMaterials(JSON.stringify(bundle), "arm64")) as {
      components: { name: string; purl?: string; hashes?: { content: string }[] }[];
    };
    const names = bill.components.map(({ name }) => name);
    for (const name of ["undici", "node", "libc6", "libstdc++6", "ca-certificates"])
      assert.ok(names.includes(name), name);
    const libc = bill.components.find(({ name }) => name === "libc6");
    assert.match(libc?.purl ?? "", /^pkg:deb\/debian\/libc6@.*arch=arm64/);
    assert.match(libc?.hashes?.[0]?.content ?? "", /^[0-9a-f]{64}$/);
  });
});

describe("the version of package.json", () => {
  it("the version of package.json is that of every image that a manifest or a page names", () => {
    const files = globSync(["deploy/**/*.yaml", "docs/{how-to,tutorial}/*.md"], { cwd: ROOT });
    const named = files.flatMap((file) =>
      [...readFileSync(`${ROOT}${file}`, "utf8").matchAll(/\bironfence(?:-bundle)?:(\d+\.\d+\.\d+[-.\w]*)/g)].map(
        ([, version]) => `${file}: ${version}`,
      ),
    );
    assert.ok(named.length > 5);
    assert.deepEqual(
      named.filter((text) => !text.endsWith(`: ${VERSION}`)),
      [],
    );
  });
});

describe("the manifests and the chart of a release", () => {
  it("the manifests and the chart of a release name the image with its registry, everywhere", () => {
    const files = globSync("deploy/**/*.{yaml,json,md}", { cwd: ROOT }).map((file) => {
      const before = readFileSync(`${ROOT}${file}`, "utf8");
      return { file, before, after: withRegistry(before, "registry.example/metal", VERSION) };
    });
    assert.deepEqual(
      files
        .filter(({ before, after }) => before !== after)
        .map(({ file }) => file)
        .toSorted(),
      [
        "deploy/chart/README.md",
        "deploy/chart/values.schema.json",
        "deploy/chart/values.yaml",
        "deploy/check/job.yaml",
        "deploy/kustomize/deployment.yaml",
        "deploy/olm/manifests/ironfence.clusterserviceversion.yaml",
      ],
    );
    for (const { file, after } of files)
      assert.doesNotMatch(after, /(?:image|containerImage|repository): ironfence\b/i, file);
    const textOf = (name: string): string => files.find(({ file }) => file === name)?.after ?? "";
    const { image } = parse(textOf("deploy/chart/values.yaml")) as { image: { repository: string } };
    assert.equal(image.repository, "registry.example/metal/ironfence");
    assert.match(
      textOf("deploy/kustomize/deployment.yaml"),
      new RegExp(`image: registry.example/metal/ironfence:${VERSION}$`, "m"),
    );
  });
});
