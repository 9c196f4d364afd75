import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ourTimeOf, parseBmcTime, usableClockAhead } from "../../../../src/bmc/evidence/bmc-time.ts";
import { plainText, TEXT_MAX } from "../../../../src/bmc/evidence/plain-text.ts";
import { JSON_DEPTH_MAX } from "../../../../src/bmc/redfish/http/json.ts";
import { parseStart } from "../../../../src/bmc/redfish/logs/parse-start.ts";

describe("a text of a BMC", () => {
  const cases: [what: string, text: string, plain: string][] = [
    ["a terminal sequence", "\u001b[2J\u001b[31mECC\u001b[0m error", "ECC error"],
    ["a title of a terminal", "\u001b]0;owned\u0007ECC", "ECC"],
    ["line breaks", "ECC\r\nerror\n\n# ok", "ECC error # ok"],
    ["a change of direction", "ECC \u202edenif\u202c error", "ECC denif error"],
    ["zero-width characters", "E\u200bC\u200dC", "ECC"],
    ["Markdown", "**[click](https://x.example)** `rm`", "(click)(https: //x.example) 'rm'"],
    ["HTML", "<img src=x onerror=alert(1)>", "(img src=x onerror=alert(1))"],
    ["a mention", "@everyone DIMM B2", "at everyone DIMM B2"],
    ["piled marks", `E${"\u0301".repeat(40)}CC`, "E\u0301\u0301CC"],
    ["a full stop", "Uncorrectable ECC, DIMM B2.", "Uncorrectable ECC, DIMM B2"],
  ];
  for (const [what, text, plain] of cases) {
    it(`a text of a BMC is kept without ${what}`, () => assert.equal(plainText(text), plain));
  }

  it("a text of a BMC is cut at a bound, and no character is split", () => {
    const text = plainText("😀".repeat(10_000));
    assert.ok(text.length <= TEXT_MAX);
    assert.ok(text.isWellFormed());
  });

  it("a text of a BMC that is long costs no time", () => {
    for (const text of ["\u001b[".repeat(500_000), "a".repeat(1_000_000), "\u0301".repeat(500_000)]) plainText(text);
  });
});

describe("a time of a BMC", () => {
  it("a time of a BMC is read in the forms that BMCs write", () => {
    const at = Date.UTC(2026, 10, 23, 21, 3, 4);
    for (const text of [
      "2026-11-23T21:03:04Z",
      "2026-11-23T22:03:04+01:00",
      "2026-11-23T15:03:04-0600",
      "2026-11-23 21:03:04",
      "2026-11-23T21:03:04",
      "2026/11/23 21:03:04",
      "11/23/2026 21:03:04",
      "Mon Nov 23 21:03:04 2026",
      "Mon Nov 23 21:03:04 2026 GMT",
      Math.floor(at / 1_000),
    ]) {
      assert.equal(parseBmcTime(text), at, String(text));
    }
    for (const local of ["2026-11-23T22:03:04", "Mon Nov 23 22:03:04 2026", "23 Nov 2026 22:03:04"]) {
      assert.equal(parseBmcTime(local, "+01:00"), at, local);
    }
    for (const text of ["", "N/A", "yesterday", {}, null, "9".repeat(200)]) assert.equal(parseBmcTime(text), undefined);
  });

  it("a time of a BMC without a zone does not depend on the zone of the agent", () => {
    const { TZ } = process.env;
    try {
      process.env["TZ"] = "Asia/Tokyo";
      assert.equal(new Date(2026, 10, 23).getTimezoneOffset(), -540);
      for (const text of ["2026-11-23 21:03:04", "11/23/2026 21:03:04", "Mon Nov 23 21:03:04 2026"]) {
        assert.equal(parseBmcTime(text), Date.UTC(2026, 10, 23, 21, 3, 4), text);
      }
      assert.equal(parseBmcTime("Mon Nov 23 21:03:04 2026 GMT", "+01:00"), Date.UTC(2026, 10, 23, 21, 3, 4));
      assert.equal(parseBmcTime("Mon Nov 23 2026 21:03:04 +0200", "+01:00"), Date.UTC(2026, 10, 23, 19, 3, 4));
    } finally {
      if (TZ === undefined) delete process.env["TZ"];
      else process.env["TZ"] = TZ;
    }
  });

  it("a time of a BMC outside of the years 1970 to 2200 does not count", () => {
    for (const time of [
      1e20,
      1e306,
      -1,
      NaN,
      7_258_118_400,
      "2200-01-01T00:00:00Z",
      "9999-12-31T23:59:59Z",
      "Fri Dec 31 23:59:59 9999",
      "1969-12-31T23:59:59Z",
      "1970-01-01T00:00:00+14:00",
    ]) {
      assert.equal(parseBmcTime(time), undefined, String(time));
    }
    assert.equal(parseBmcTime("2199-12-31T23:59:59Z"), 7_258_118_399_000);
    const nowMs = Date.UTC(2026, 10, 23);
    for (const aheadMs of [1e23, Infinity, -Infinity, NaN, -nowMs - 1, 7_258_118_400_000 - nowMs]) {
      assert.equal(usableClockAhead(aheadMs, nowMs), undefined, String(aheadMs));
      assert.equal(ourTimeOf(nowMs + aheadMs, aheadMs, nowMs), undefined, String(aheadMs));
    }
    assert.equal(usableClockAhead(3_600_000, nowMs), 3_600_000);
  });

  it("a time of a BMC counts by how wrong its clock is now", () => {
    const nowMs = Date.UTC(2026, 10, 23);
    const hour = 3_600_000;
    assert.equal(ourTimeOf(nowMs + hour - 41_000, hour, nowMs), nowMs - 41_000, "an hour ahead");
    assert.equal(ourTimeOf(5_000_000, 5_041_000 - nowMs, nowMs), nowMs - 41_000, "a clock that began in 1970");
    assert.equal(ourTimeOf(5_000_000, 0, nowMs), undefined, "an entry from before the clock was set");
    assert.equal(ourTimeOf(nowMs + hour, 0, nowMs), undefined, "an entry of the future");
    assert.equal(ourTimeOf(nowMs, undefined, nowMs), undefined, "a BMC without a clock");
  });
});

describe("the beginning of a JSON object", () => {
  const whole = JSON.stringify({
    Name: "Log",
    Members: [
      { Id: "1", Message: 'a]}",' },
      { Id: "2", Oem: { X: [1, 2] } },
    ],
    End: 1,
  });

  it("the beginning of a JSON object yields what is complete, wherever it is cut", () => {
    for (let length = 0; length <= whole.length; length += 1) {
      const members = parseStart(whole.slice(0, length), "test")["Members"];
      const found = Array.isArray(members) ? members.length : 0;
      assert.ok(found <= 2, `${length}`);
    }
    assert.deepEqual(parseStart(whole, "test"), JSON.parse(whole));
    const cut = parseStart(whole.slice(0, whole.indexOf('"Oem"')), "test")["Members"];
    assert.deepEqual(cut, [{ Id: "1", Message: 'a]}",' }, { Id: "2" }]);
  });

  it("the beginning of a JSON object yields nothing if it is another text, or nested without end", () => {
    for (const text of ["", "<html>", "[".repeat(100_000), '{"a":'.repeat(100_000)]) {
      assert.deepEqual(parseStart(text, "test"), {});
    }
  });

  it("the beginning of a JSON object yields what comes before brackets that are nested too deep", () => {
    const deep = `{"a":1,"b":[${"[".repeat(JSON_DEPTH_MAX)}${"1,".repeat(100)}`;
    assert.deepEqual(parseStart(deep, "test"), { a: 1 });
    const allowed = `{"a":1,"b":${"[".repeat(JSON_DEPTH_MAX - 1)}1,2`;
    assert.deepEqual(Object.keys(parseStart(allowed, "test")), ["a", "b"]);
  });
});
