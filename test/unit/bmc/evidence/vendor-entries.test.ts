import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { VENDOR_ENTRIES } from "./vendor-entries.ts";
import { parseEntry } from "../../../../src/bmc/redfish/logs/parse-entry.ts";

describe("the entries that vendors document", () => {
  for (const { vendor, body, topic, rank, text, source } of VENDOR_ENTRIES) {
    it(`the documented log entry "${vendor}" is understood`, () => {
      const entry = parseEntry("SEL", body, undefined);
      assert.deepEqual({ topic: entry?.topic, rank: entry?.rank, text: entry?.text }, { topic, rank, text }, source);
    });
  }

  it("the entries that vendors document have a time in each of their shapes", () => {
    for (const { body, vendor } of VENDOR_ENTRIES) {
      const created = body["Created"] ?? body["EventTimestamp"];
      if (typeof created !== "string" || created.startsWith("0000")) continue;
      assert.ok(parseEntry("SEL", body, undefined)?.bmcTimeMs !== undefined, `${vendor}: ${created}`);
    }
  });
});
