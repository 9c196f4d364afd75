import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isAllowed, originText } from "../../../../../src/remediator/hosts/model/allowed-addresses.ts";

describe("the addresses to which a Secret may be sent", () => {
  const cases: readonly [allowed: string | undefined, address: string, expected: boolean][] = [
    [undefined, "redfish://bmc-3.example", false],
    ["", "redfish://bmc-3.example", false],
    ["redfish://bmc-3.example", "redfish://bmc-3.example/redfish/v1/Systems/1", true],
    ["https://bmc-3.example", "idrac-redfish://bmc-3.example", true],
    ["redfish://bmc-3.example", "redfish://bmc-3.example:443", true],
    ["redfish://bmc-3.example", "redfish://bmc-3.example:8443", false],
    ["redfish://bmc-3.example:*", "redfish://bmc-3.example:8443", true],
    ["redfish://bmc-3.example", "redfish+http://bmc-3.example", false],
    ["redfish://bmc-3.example", "redfish+http://bmc-3.example:443", false],
    ["redfish://bmc-3.example", "ipmi://bmc-3.example", false],
    ["ipmi://192.0.2.3", "192.0.2.3", true],
    ["ipmi://192.0.2.3, redfish://192.0.2.3", "redfish://192.0.2.3", true],
    ["redfish://*.bmc.example", "redfish://r1.bmc.example", true],
    ["redfish://*.bmc.example", "redfish://evil.example", false],
    ["redfish://*.bmc.example", "redfish://a.b.bmc.example", false],
    ["redfish://*.bmc.example", "redfish://bmc.example", false],
    ["redfish://*.bmc.example", "redfish://x.bmc.example.evil.example", false],
    ["redfish://bmc-*.example", "redfish://bmc-12.example", true],
    ["redfish://bmc-*.example", "redfish://bmc-.example", false],
    ["redfish://192.0.2.*", "redfish://192.0.2.77", true],
    ["redfish://192.0.2.*", "redfish://192.0.3.77", false],
    ["redfish://[2001:db8::1]", "redfish://[2001:db8::1]", true],
    ["redfish://[2001:db8::1]", "redfish://[2001:db8::2]", false],
    ["driver://power.example:8443", "driver+https://power.example:8443/hosts/one", true],
    ["driver://power.example", "driver+http://power.example/hosts/one", false],
    ["driver+http://power.example:8080", "driver+http://power.example:8080/hosts/one", true],
    ["https://power.example", "driver://power.example/hosts/one", false],
    ["driver://power.example", "https://power.example", false],
    ["snmp://pdu-1.example", "snmp://pdu-1.example/7", true],
    ["snmp://pdu-1.example/3", "snmp://pdu-1.example/7", true],
    ["snmp://pdu-*.example:*", "snmp://pdu-1.example:1161/1.7", true],
    ["snmp://pdu-1.example", "snmp://pdu-1.example:1161/7", false],
    ["snmp://pdu-1.example", "snmp://pdu-2.example/7", false],
    ["ipmi://pdu-1.example:161, https://pdu-1.example", "snmp://pdu-1.example/7", false],
    ["snmp://pdu-1.example:623", "ipmi://pdu-1.example", false],
    ["*", "redfish://bmc-3.example", false],
    ["redfish://*-*.example", "redfish://a-b.example", false],
    ["redfish://user@bmc-3.example", "redfish://bmc-3.example", false],
  ];
  for (const [allowed, address, expected] of cases) {
    it(`a Secret that allows ${JSON.stringify(allowed)} ${expected ? "may" : "may not"} be sent to ${address}`, () => {
      assert.equal(isAllowed(allowed, address), expected);
    });
  }

  it("the addresses to which a Secret may be sent include no driver server if they name only a BMC", () => {
    assert.equal(isAllowed("https://power.example, ipmi://power.example", "driver://power.example/hosts/one"), false);
    assert.equal(isAllowed("driver://power.example", "driver://power.example/hosts/one"), true);
  });

  it("the addresses to which a Secret may be sent are named in the form of the annotation", () => {
    assert.equal(originText("redfish://bmc-3.example/redfish/v1/Systems/1"), "https://bmc-3.example:443");
    assert.equal(originText("[2001:db8::1]"), "ipmi://[2001:db8::1]:623");
    assert.equal(originText("no such address"), undefined);
    for (const address of [
      "redfish://h",
      "redfish+http://h:8080",
      "ipmi://h",
      "driver://h/one",
      "driver+http://h/one",
      "snmp://h/1.7",
      "snmp://[2001:db8::1]:1161/7",
    ]) {
      assert.equal(isAllowed(originText(address), address), true, address);
    }
  });
});
