import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { fruImage } from "../../../../hack/ipmi-mock/fru-image.ts";
import { parseBootFlags, parseChassisStatus, setBootFlags } from "../../../../src/bmc/ipmi/commands/chassis.ts";
import { readFruIdentity } from "../../../../src/bmc/ipmi/commands/fru-identity.ts";
import { parseProductArea } from "../../../../src/bmc/ipmi/commands/fru.ts";
import { parseSystemGuid } from "../../../../src/bmc/ipmi/commands/guid.ts";
import type { Request, Response } from "../../../../src/bmc/ipmi/packets/message.ts";
import { sameUuid } from "../../../../src/remediator/hosts/model/identity.ts";

// Answers of the BMC about its host, byte by byte.

const bytes = (maxLength: number): fc.Arbitrary<Buffer> => fc.uint8Array({ maxLength }).map((it) => Buffer.from(it));
const ok = (data: Iterable<number>): Response => ({ completionCode: 0, data: Buffer.from([...data]) });
const refused = (completionCode: number): Response => ({ completionCode, data: Buffer.alloc(0) });

/** A BMC that serves this inventory, at most `chunkMax` bytes at a time. */
function inventory(image: Buffer, chunkMax = 255, byWords = false) {
  let asked = 0;
  const unit = byWords ? 2 : 1;
  const ask = async ({ command, data }: Request): Promise<Response> => {
    asked += 1;
    if (command === 0x10) return ok([image.length & 0xff, image.length >> 8, byWords ? 1 : 0]);
    const [, low = 0, high = 0, count = 0] = data;
    if (count * unit > chunkMax) return refused(0xca);
    const offset = (low | (high << 8)) * unit;
    const part = image.subarray(offset, offset + count * unit);
    return ok([part.length / unit, ...part]);
  };
  return { ask, asked: () => asked };
}

test("only the power bit decides; faults are reported in addition", () => {
  assert.deepEqual(parseChassisStatus(Buffer.from([0x60, 0, 0])), { state: "Off", raw: "power is off" });
  assert.deepEqual(parseChassisStatus(Buffer.from([0x21, 0, 0, 0])), { state: "On", raw: "power is on" });
  assert.deepEqual(parseChassisStatus(Buffer.from([0x18, 0, 0])), {
    state: "Off",
    raw: "power is off, power fault, power control fault",
  });
  for (const length of [0, 1, 2]) assert.equal(parseChassisStatus(Buffer.alloc(length)), undefined);
  fc.assert(
    fc.property(bytes(8), (data) => {
      if (parseChassisStatus(data)?.state === "Off") assert.equal(data.readUInt8(0) & 1, 0);
    }),
  );
});

test("a boot override is once, from the network, and read back as such", () => {
  assert.deepEqual(setBootFlags("NetworkOnce", "UEFI").data, [5, 0xa0, 0x04, 0, 0, 0]);
  assert.deepEqual(setBootFlags("NetworkOnce", "Legacy").data, [5, 0x80, 0x04, 0, 0, 0]);
  assert.deepEqual(setBootFlags("None", "UEFI").data, [5, 0, 0, 0, 0, 0]);
  const answer = (flags: number, device: number): Buffer => Buffer.from([1, 5, flags, device, 0, 0, 0]);
  assert.equal(parseBootFlags(answer(0xa0, 0x04)), "NetworkOnce");
  assert.equal(parseBootFlags(answer(0xc0, 0x04)), "NetworkOnce");
  assert.equal(parseBootFlags(answer(0x20, 0x04)), "None");
  assert.equal(parseBootFlags(answer(0x80, 0x08)), "None");
  assert.equal(parseBootFlags(Buffer.from([1, 4, 0x80, 0x04, 0, 0, 0])), undefined);
  assert.equal(parseBootFlags(Buffer.from([1, 5, 0x80])), undefined);
  fc.assert(fc.property(bytes(10), (data) => void parseBootFlags(data)));
});

test("a UUID is found in either byte order", () => {
  fc.assert(
    fc.property(fc.uuid({ version: [1, 4] }), (uuid) => {
      const plain = Buffer.from(uuid.replaceAll("-", ""), "hex");
      const smbios = Buffer.from(
        [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15].map((at) => plain.readUInt8(at)),
      );
      assert.equal(parseSystemGuid(smbios), uuid);
      // A UUID in one byte order may look valid in the other. The comparison treats both as the same host.
      assert.ok(sameUuid(parseSystemGuid(plain) ?? "", uuid));
    }),
  );
  const standard = Buffer.from("3f8c1d526b0a4e779a3e0d5b8c1f2a44", "hex").reverse();
  assert.equal(parseSystemGuid(standard), "3f8c1d52-6b0a-4e77-9a3e-0d5b8c1f2a44");
  // The GUID of a Dell server, which is a valid UUID (RFC 9562) only in its own byte order.
  const dell = Buffer.from("44454c4c420010358051b4c04f4e3732", "hex");
  assert.equal(parseSystemGuid(dell), "4c4c4544-0042-3510-8051-b4c04f4e3732");
  assert.equal(parseSystemGuid(Buffer.alloc(15)), undefined);
});

test("maker, model and serial number are read from the inventory, in parts as small as the BMC wants", async () => {
  const identity = { systemUUID: "", manufacturer: "Maker", model: "R1", serialNumber: "SN-42" };
  const image = fruImage(identity);
  for (const [chunkMax, byWords] of [
    [255, false],
    [32, false],
    [16, true],
    [8, false],
  ] as const) {
    const { ask } = inventory(image, chunkMax, byWords);
    assert.deepEqual(await readFruIdentity(ask), { manufacturer: "Maker", model: "R1", serialNumber: "SN-42" });
  }
  assert.deepEqual(await readFruIdentity(inventory(image, 4).ask), {});
});

test("the serial number of the chassis counts if the product has none", async () => {
  const image = fruImage({ systemUUID: "", manufacturer: "Maker", model: "R1", serialNumber: "" });
  assert.deepEqual(await readFruIdentity(inventory(image).ask), {
    manufacturer: "Maker",
    model: "R1",
    serialNumber: "-C",
  });
});

test("no inventory, or a damaged one, gives no identity", async () => {
  assert.deepEqual(await readFruIdentity(async () => refused(0xc1)), {});
  const image = fruImage({ systemUUID: "", manufacturer: "Maker", model: "R1", serialNumber: "SN" });
  for (let at = 0; at < 8; at += 1) {
    const damaged = Buffer.from(image);
    damaged[at] = damaged.readUInt8(at) ^ 0x04;
    assert.deepEqual(await readFruIdentity(inventory(damaged).ask), {});
  }
});

test("no inventory makes the reader fail, or ask without end", async () => {
  await fc.assert(
    fc.asyncProperty(bytes(600), fc.boolean(), async (noise, isHeaded) => {
      // A valid header before random bytes.
      const header = Buffer.from([1, 0, 1, 0, 9, 0, 0, 0xf5]);
      const { ask, asked } = inventory(isHeaded ? Buffer.concat([header, noise]) : noise);
      await readFruIdentity(ask);
      assert.ok(asked() < 60, `${asked()} questions`);
    }),
    { numRuns: 1_000 },
  );
  await fc.assert(
    fc.asyncProperty(fc.infiniteStream(bytes(40)), async (answers) => {
      let asked = 0;
      await readFruIdentity(async () => {
        asked += 1;
        return ok(answers.next().value ?? []);
      });
      assert.ok(asked < 2_000, `${asked} questions`);
    }),
    { numRuns: 300 },
  );
});

test("fields of every type are read, and only what can be printed", () => {
  const area = (fields: number[]): Buffer => {
    const body = [1, 0, 25, ...fields, 0xc1];
    while (body.length % 8 !== 7) body.push(0);
    body[1] = (body.length + 1) / 8;
    return Buffer.from([...body, -body.reduce((sum, byte) => sum + byte, 0) & 0xff]);
  };
  // BCD plus "12-3", six-bit "IPMI" (the specification's own example), binary, empty, Latin-1 with control characters.
  const fields = [0x42, 0x12, 0xb3, 0x83, 0x29, 0xdc, 0xa6, 0x02, 1, 2, 0xc0, 0xc4, 0x07, 0x53, 0x4e, 0x00];
  assert.deepEqual(parseProductArea(area(fields)), { manufacturer: "12-3", model: "IPMI", serialNumber: "SN" });
  fc.assert(fc.property(bytes(64), (noise) => void parseProductArea(area([...noise]))));
});
