import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { chooseKubernetes, kubernetesVersions } from "../../../hack/control-plane/binaries.ts";
import { TIERS } from "../../../hack/nightly/tiers.ts";

const read = (path: string): string => readFileSync(new URL(`../../../${path}`, import.meta.url), "utf8");
const versions = kubernetesVersions();

describe("the versions of Kubernetes", () => {
  it("the versions of Kubernetes that have a module are the oldest that is supported, one between and the newest", () => {
    assert.equal(versions.length, 3);
    assert.equal(versions[0]?.minor, "1.30");
    for (const { minor, version } of versions) assert.ok(version.startsWith(`v${minor}.`), version);
  });

  it("a version of Kubernetes is chosen by its minor version, the newest by default, and an unknown one is refused", () => {
    assert.equal(chooseKubernetes("1.30").minor, "1.30");
    assert.deepEqual(chooseKubernetes(undefined), versions.at(-1));
    assert.throws(() => chooseKubernetes("1.29"), /no Kubernetes 1\.29: choose one of 1\.30, /);
  });

  it("the versions of Kubernetes are those of the page, and each older one has a nightly tier", () => {
    const page = read("docs/reference/versions.md");
    for (const { version } of versions) assert.ok(page.includes(version.slice(1)), version);
    const tiers = TIERS.flatMap(({ run }) => (run[2] === "--kubernetes" ? [run[3]] : []));
    assert.deepEqual(
      tiers,
      versions.slice(0, -1).map(({ minor }) => minor),
    );
  });

  it("the versions of Kubernetes are built with every module of Kubernetes at that version", () => {
    for (const { minor, version } of versions) {
      const goMod = read(`hack/control-plane/kubernetes/v${minor}/go.mod`);
      const replaced = [...goMod.matchAll(/^\tk8s\.io\/\S+ => k8s\.io\/\S+ (v\S+)$/gm)].map(([, of]) => of);
      assert.ok(replaced.length > 25, minor);
      assert.deepEqual([...new Set(replaced)], [version.replace("v1", "v0")], minor);
    }
  });
});
