import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { applyPatch } from "../../../../../hack/kube-mock/patch.ts";
import type { JsonObject } from "../../../../../hack/kube-mock/json.ts";
import { FENCED_BY, QUARANTINED_BY } from "../../../../../src/api/names/annotations.ts";
import type { Node, Taint } from "../../../../../src/api/kubernetes/core.ts";
import { FENCED, OUT_OF_SERVICE, QUARANTINE } from "../../../../../src/api/kubernetes/taints.ts";
import type { JsonPatchOperation } from "../../../../../src/kube/client.ts";
import {
  isMarked,
  markPatch,
  outOfServiceOf,
  signersOf,
} from "../../../../../src/remediator/machine/node-patches/marks.ts";
import { node } from "../snapshots.ts";

const FOREIGN: Taint = { key: "example.com/db", value: "yes", effect: "NoSchedule" };

/** The node after the patch. */
function patched(before: Node, operations: readonly JsonPatchOperation[]): Node {
  const target = structuredClone(before) as unknown as JsonObject;
  return applyPatch(target, "application/json-patch+json", JSON.stringify(operations)) as unknown as Node;
}

function marked(taints: Taint[], annotations: Record<string, string>): Node {
  const made = node({ taints });
  made.metadata.annotations = annotations;
  return made;
}

/** Our out-of-service taint, as the remediation with this UID adds it. */
const by = (value: string): Taint[] => [OUT_OF_SERVICE, { ...FENCED, value }];

describe("our marks on a node", () => {
  it("a mark on a node is not ours if the UID of its remediation only begins like ours", () => {
    const before = marked(by("uid-2"), { [FENCED_BY]: "uid-2/a1" });
    assert.deepEqual(markPatch(before, { outOfService: "off" }, "", "uid"), []);
    assert.equal(markPatch(before, { outOfService: "off" }, "", "uid-2").length, 2);
  });

  it("our mark is removed with its signature, and a new signature is written although the taint is already there", () => {
    const before = marked([QUARANTINE, FOREIGN], { [QUARANTINED_BY]: "uid/a1", note: "kept" });
    const after = patched(before, markPatch(before, { quarantine: "off" }, "", "uid"));
    assert.deepEqual([after.spec.taints, after.metadata.annotations], [[FOREIGN], { note: "kept" }]);
    const again = patched(before, markPatch(before, { quarantine: "on" }, "uid/a2"));
    assert.equal(again.metadata.annotations?.[QUARANTINED_BY], "uid/a2");
  });

  it("an out-of-service taint of another client is recognized by its key alone, whatever its effect, as Kubernetes does", () => {
    const taint = { ...OUT_OF_SERVICE, effect: "NoSchedule" };
    assert.equal(outOfServiceOf(marked([taint], {})), "Foreign");
    assert.deepEqual(markPatch(marked([taint], {}), { outOfService: "on" }, "uid/a1"), []);
  });

  it("our marks on a node are set with a signature, in addition to the marks of other clients", () => {
    const before = marked([FOREIGN], { note: "x" });
    const after = patched(before, markPatch(before, { outOfService: "on" }, "uid/a1"));
    assert.deepEqual(after.spec.taints, [FOREIGN, ...by("uid")]);
    assert.deepEqual(after.metadata.annotations, { note: "x", [FENCED_BY]: "uid/a1" });
    assert.equal(outOfServiceOf(after), "Ours");
  });

  it("our marks on a node are swapped in one patch: the taint off, the quarantine on", () => {
    const before = marked([FOREIGN, ...by("uid")], { [FENCED_BY]: "uid/a1" });
    const after = patched(before, markPatch(before, { outOfService: "off", quarantine: "on" }, "uid/a1"));
    assert.deepEqual(after.spec.taints, [FOREIGN, QUARANTINE]);
    assert.deepEqual(after.metadata.annotations, { [QUARANTINED_BY]: "uid/a1" });
  });

  it("an out-of-service taint without our signature is neither changed nor signed", () => {
    const before = marked([OUT_OF_SERVICE], {});
    assert.deepEqual(markPatch(before, { outOfService: "on" }, "uid/a1"), []);
    assert.deepEqual(markPatch(before, { outOfService: "off", quarantine: "off" }, ""), []);
    assert.equal(outOfServiceOf(before), "Foreign");
  });

  it("a taint with our key and another effect is not changed", () => {
    const other = { ...OUT_OF_SERVICE, effect: "NoSchedule" };
    const before = marked([other, ...by("uid")], { [FENCED_BY]: "uid/a1" });
    const after = patched(before, markPatch(before, { outOfService: "off" }, ""));
    assert.deepEqual(after.spec.taints, [other]);
  });

  it("our marks on a node of another remediation are removed only for the owner of the host", () => {
    const before = marked([...by("other"), QUARANTINE], { [FENCED_BY]: "other/a9", [QUARANTINED_BY]: "other/a9" });
    const off = { outOfService: "off", quarantine: "off" } as const;
    assert.deepEqual(markPatch(before, off, "", "uid"), []);
    assert.deepEqual(patched(before, markPatch(before, off, "")).spec.taints, []);
    assert.deepEqual(patched(before, markPatch(before, off, "", "other")).spec.taints, []);
  });

  it("our marks on a node are identified by a taint, which no kubelet can write, and not by its annotation", () => {
    const forged = marked([OUT_OF_SERVICE], { [FENCED_BY]: "uid/a1" });
    assert.deepEqual([outOfServiceOf(forged), isMarked(forged), signersOf(forged, undefined)], ["Foreign", false, []]);
    assert.deepEqual(patched(forged, markPatch(forged, { outOfService: "off" }, "")).spec.taints, [OUT_OF_SERVICE]);
    const stripped = marked(by("uid"), { [FENCED_BY]: "another/a1" });
    assert.deepEqual([outOfServiceOf(stripped), signersOf(stripped, undefined)], ["Ours", ["uid"]]);
    assert.deepEqual(markPatch(stripped, { outOfService: "off" }, "", "uid-2"), []);
    assert.deepEqual(patched(stripped, markPatch(stripped, { outOfService: "off" }, "", "uid")).spec.taints, []);
    const unquarantined = marked([], { [QUARANTINED_BY]: "uid/a1" });
    assert.deepEqual([isMarked(unquarantined), signersOf(unquarantined, undefined)], [false, []]);
  });

  it("our marks on a node fit into a taint's value for every cluster", () => {
    const long = `${"n".repeat(63)}/${"c".repeat(63)}`;
    const signedBy = `00000000-0000-4000-8000-000000000000/00000000-0000-4000-8000-000000000001@${long}`;
    const after = patched(marked([], {}), markPatch(marked([], {}), { outOfService: "on" }, signedBy));
    const { value = "" } = after.spec.taints?.find(({ key }) => key === FENCED.key) ?? assert.fail();
    assert.match(value, /^[0-9A-Za-z]([0-9A-Za-z._-]{0,61}[0-9A-Za-z])?$/);
    const [namespace = "", name = ""] = long.split("/");
    assert.deepEqual(signersOf(after, { namespace, name }), ["00000000-0000-4000-8000-000000000000"]);
    assert.deepEqual(signersOf(after, undefined), []);
  });

  it("our marks on a node that are as wanted need no write", () => {
    const before = marked([QUARANTINE], { [QUARANTINED_BY]: "uid/a1" });
    assert.deepEqual(markPatch(before, { outOfService: "off", quarantine: "on" }, "uid/a1"), []);
  });
});
