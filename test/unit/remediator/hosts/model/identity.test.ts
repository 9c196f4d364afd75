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
} from "../../../../../src/remediator/hosts/model/identity.ts";
import { uuid, World } from "../targets-fixture.ts";

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

test("a firmware report without an identity never matches", () => {
  for (const text of [
    "00000000-0000-0000-0000-000000000000",
    "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF",
    "03000200-0400-0500-0006-000700080009",
    "00020003-0004-0005-0006-000700080009",
    // Dell without a service tag, in both byte orders.
    "4c4c4544-0000-2010-8020-80c04f202020",
    "44454c4c-0000-1020-8020-80c04f202020",
    "1B2C3D4E-FFFF-FFFF-FFFF-FFFFFFFFFFFF",
    // The rest of FreeBSD's list.
    "07090201-0103-0301-0807-060504030201",
    "11111111-1111-1111-1111-111111111111",
    "11111111-2222-3333-4444-555555555555",
    "58585858-5858-5858-5858-585858585858",
    "890e2d14-cacd-45d1-ae66-bc80e8bfeb0f",
    "8e275844-178f-44a8-aceb-a7d7e5178c63",
    "dc698397-fa54-4cf2-82c8-b1b5307a6a7f",
    "fefefefe-fefe-fefe-fefe-fefefefefefe",
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
    "01234567890123456789AB",
    "0123456789ABCDEF",
    "1234567890",
    "12345678",
    "System-SerialNumber",
    "SYS-1234567890",
    "MB-1234567890",
    "(null)",
    "Not Provided",
    "N/A",
    "None Specified",
    "Type2 - Board Serial Number",
    "xxxxxxxxxx",
    "",
  ]) {
    assert.equal(meaningfulSerial(text), undefined, text);
    assert.equal(compareIdentity({ serialNumber: text }, { device: "d", serialNumber: text }), "unknown", text);
  }
});

test("a real identity that resembles a factory default counts", () => {
  for (const text of [
    "4c4c4544-0042-2010-8020-80c04f313233",
    "00000000-0000-0000-0000-0cc47a000001",
    "ffffffff-ffff-ffff-ffff-0cc47a000001",
    "12345678-1234-5678-90ab-0cc47a000001",
  ]) {
    assert.equal(meaningfulUuid(text), text);
  }
  for (const text of ["123456", "1234567891", "0123456789X", "SYS-12", "J1234567", "234567890", "NA12345", "SN-0001"]) {
    assert.equal(meaningfulSerial(text), text);
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

test("a host without an identity to compare with is unknown, whatever a node that may be dead reports", () => {
  const verdict = identityJudge(new World().target("n1", {}), A)([{ device: "d", systemUUID: A }]);
  assert.ok(!verdict.verified && verdict.reason === "Unknown");
  assert.match(verdict.message, /spec\.identity\.systemUUID/);
});

test("a node that reports other hardware than its pin makes the host a mismatch", () => {
  const target = new World().target("n1", {}, { identity: { nodeName: "n1", systemUUID: A } });
  const verdict = identityJudge(target, uuid(9))([{ device: "d", systemUUID: A }]);
  assert.ok(!verdict.verified && verdict.reason === "Mismatch");
});

test("verification None accepts an unknown identity and refuses a mismatch", () => {
  const world = new World();
  const none = world.target("n1", { identity: { verification: "None" } });
  assert.ok(identityJudge(none, undefined)([{ device: "d" }]).verified);
  const pinned = world.target("n2", { identity: { verification: "None", systemUUID: A } });
  const verdict = identityJudge(pinned, undefined)([{ device: "d", systemUUID: uuid(3) }]);
  assert.ok(!verdict.verified && verdict.reason === "Mismatch");
});

test("one device of another host makes the whole host a mismatch", () => {
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
