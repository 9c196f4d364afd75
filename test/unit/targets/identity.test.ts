import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import {
  canonicalUuid,
  compareIdentity,
  expectedIdentity,
  identityJudge,
  meaningfulSerial,
  meaningfulUuid,
  sameUuid,
} from "../../../src/remediator/targets/identity.ts";
import { uuid, World } from "./world.ts";

const A = "4c4c4544-0042-4a10-8054-b9c04f503132";
const A_SWAPPED = "44454c4c-4200-104a-8054-b9c04f503132";

test("a system UUID counts in either SMBIOS byte order and in any case", () => {
  assert.equal(compareIdentity({ systemUUID: A }, { device: "d", systemUUID: A_SWAPPED.toUpperCase() }), "match");
  assert.equal(compareIdentity({ systemUUID: A_SWAPPED }, { device: "d", systemUUID: A }), "match");
  assert.equal(compareIdentity({ systemUUID: A }, { device: "d", systemUUID: uuid(2) }), "mismatch");
});

test("swapping the byte order twice gives the UUID back, and both orders have one key", () => {
  fc.assert(
    fc.property(fc.uuid(), (text) => {
      const known = meaningfulUuid(text);
      if (known === undefined) return;
      const [a = "", b = "", c = "", ...rest] = known.split("-");
      const turned = [a, b, c].map((field) => (field.match(/../g) ?? []).toReversed().join(""));
      const other = [...turned, ...rest].join("-");
      assert.ok(sameUuid(known, other) && sameUuid(other, known));
      assert.equal(canonicalUuid(known), canonicalUuid(other));
    }),
  );
});

test("what firmware says for want of an identity never matches", () => {
  for (const text of [
    "00000000-0000-0000-0000-000000000000",
    "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF",
    "03000200-0400-0500-0006-000700080009",
    "00020003-0004-0005-0006-000700080009",
    "Not Specified",
    "",
  ]) {
    assert.equal(meaningfulUuid(text), undefined, text);
    assert.equal(compareIdentity({ systemUUID: text }, { device: "d", systemUUID: text }), "unknown", text);
  }
  for (const text of [
    "Not Specified",
    "To be filled by O.E.M.",
    " 0123456789 ",
    "0000000",
    "....",
    "Default string",
    "",
  ]) {
    assert.equal(meaningfulSerial(text), undefined, text);
    assert.equal(compareIdentity({ serialNumber: text }, { device: "d", serialNumber: text }), "unknown", text);
  }
});

test("a serial number counts without the blanks around it", () => {
  assert.equal(compareIdentity({ serialNumber: "ABC123" }, { device: "d", serialNumber: " ABC123  " }), "match");
  assert.equal(compareIdentity({ serialNumber: "ABC123" }, { device: "d", serialNumber: "ABC124" }), "mismatch");
});

test("one value that differs outweighs one that matches", () => {
  const answer = { device: "d", systemUUID: A, serialNumber: "OTHER" };
  assert.equal(compareIdentity({ systemUUID: A, serialNumber: "ABC123" }, answer), "mismatch");
});

test("a pin counts for the node that it was taken from only", () => {
  const world = new World();
  const target = world.target("n1", {}, { identity: { nodeName: "n1", systemUUID: A } });
  assert.deepEqual(expectedIdentity(target), { source: "pinned", systemUUID: A });
  const renamed = world.target("n1", { nodeName: "n2" });
  assert.equal(expectedIdentity(renamed), undefined);
});

test("without anything to compare with a host is unknown, whatever a node that may be dead reports", () => {
  const verdict = identityJudge(new World().target("n1", {}), A)([{ device: "d", systemUUID: A }]);
  assert.ok(!verdict.verified && verdict.reason === "Unknown");
  assert.match(verdict.message, /spec\.identity\.systemUUID/);
});

test("a node that reports other hardware than its pin makes the host a mismatch", () => {
  const target = new World().target("n1", {}, { identity: { nodeName: "n1", systemUUID: A } });
  const verdict = identityJudge(target, uuid(9))([{ device: "d", systemUUID: A }]);
  assert.ok(!verdict.verified && verdict.reason === "Mismatch");
});

test("verification None accepts the unknown and refuses a mismatch all the same", () => {
  const world = new World();
  const none = world.target("n1", { identity: { verification: "None" } });
  assert.ok(identityJudge(none, undefined)([{ device: "d" }]).verified);
  const pinned = world.target("n2", { identity: { verification: "None", systemUUID: A } });
  const verdict = identityJudge(pinned, undefined)([{ device: "d", systemUUID: uuid(3) }]);
  assert.ok(!verdict.verified && verdict.reason === "Mismatch");
});

test("one device that is somebody else condemns the others", () => {
  const target = new World().target("n1", { identity: { verification: "Required", systemUUID: A } });
  const verdict = identityJudge(
    target,
    undefined,
  )([
    { device: "d1", systemUUID: A },
    { device: "d2", systemUUID: uuid(2) },
  ]);
  assert.ok(!verdict.verified && verdict.reason === "Mismatch");
});
