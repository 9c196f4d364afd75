import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { FENCED_BY, MANUALLY_CONFIRMED_HEALTHY, QUARANTINED_BY } from "../../../../../src/api/names/annotations.ts";
import type { Node, Taint } from "../../../../../src/api/kubernetes/core.ts";
import { FENCED, OUT_OF_SERVICE, QUARANTINE } from "../../../../../src/api/kubernetes/taints.ts";
import { backupOf, restorePatch } from "../../../../../src/remediator/machine/node-patches/node-backup.ts";
import { node } from "../snapshots.ts";

const DB: Taint = { key: "example.com/db", value: "yes", effect: "NoSchedule" };
const UNREACHABLE: Taint = { key: "node.kubernetes.io/unreachable", effect: "NoExecute" };

function dressed(): Node {
  const made = node({ taints: [DB, UNREACHABLE, QUARANTINE, OUT_OF_SERVICE, { ...FENCED, value: "uid" }] });
  made.metadata.labels = { rack: "r7", zone: "a" };
  made.metadata.annotations = {
    note: "x",
    [FENCED_BY]: "uid/a1",
    [QUARANTINED_BY]: "uid/a1",
    [MANUALLY_CONFIRMED_HEALTHY]: "true",
  };
  made.spec.unschedulable = true;
  return made;
}

describe("a backup", () => {
  it("a backup contains the owner's labels and annotations, and none that belong to this outage", () => {
    assert.deepEqual(backupOf(dressed(), undefined), {
      nodeUID: "node-uid",
      labels: { rack: "r7", zone: "a" },
      annotations: { note: "x" },
      taints: [DB],
      unschedulable: true,
    });
  });

  it("a backup keeps what an earlier one had and what has not been restored yet", () => {
    const earlier = backupOf(dressed(), undefined);
    const bare = node({ uid: "new" });
    bare.metadata.labels = { zone: "b" };
    assert.deepEqual(backupOf(bare, earlier), {
      nodeUID: "new",
      labels: { rack: "r7", zone: "b" },
      annotations: { note: "x" },
      taints: [DB],
      unschedulable: true,
    });
  });
});

describe("a restore", () => {
  it("a restore adds what is missing, and what is there wins", () => {
    const fresh = node({ uid: "new", taints: [UNREACHABLE] });
    fresh.metadata.labels = { zone: "b" };
    assert.deepEqual(restorePatch(fresh, backupOf(dressed(), undefined)), [
      { op: "add", path: "/metadata/labels", value: { rack: "r7", zone: "b" } },
      { op: "add", path: "/metadata/annotations", value: { note: "x" } },
      { op: "add", path: "/spec/taints", value: [UNREACHABLE, DB] },
      { op: "add", path: "/spec/unschedulable", value: true },
    ]);
  });

  it("a restore of a node that lacks nothing writes nothing", () => {
    assert.deepEqual(restorePatch(dressed(), backupOf(dressed(), undefined)), []);
  });
});
