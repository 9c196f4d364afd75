import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BmcError } from "../../../../src/bmc/interface/errors.ts";
import { stringAt } from "../../../../src/bmc/redfish/http/json.ts";
import { printable } from "../../../../src/runtime/text/printable.ts";

const ESCAPES = "\u001b[2J\u001b]0;owned\u0007 \u009b31m\r\n\u202etxt";
const SHOWN = " [2J ]0;owned   31m txt";

describe("text from a BMC", () => {
  it("text from a BMC has no control character in a message, nor a mark that turns the direction of writing", () => {
    assert.equal(printable(ESCAPES), SHOWN);
    assert.equal(new BmcError("Refused", `it says ${ESCAPES}`).message, `it says ${SHOWN}`);
  });

  it("text from a BMC has no control character in what the BMC reports of itself, such as a serial number", () => {
    assert.equal(stringAt({ SerialNumber: ESCAPES }, "SerialNumber"), SHOWN);
  });

  it("text from a BMC has no half of a surrogate pair, since the API server would store another text", () => {
    assert.equal(printable("On \ud83d\ude00 \ude00\ud83d!"), "On \u{1f600}  !");
  });

  it("text from a BMC stays as it is if it is plain text of any language", () => {
    for (const text of ["Störung im Rack 7", "電源", "a\u00a0b", "\u{1f600}"]) assert.equal(printable(text), text);
  });
});
