import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { ADDRESS_LENGTH_MAX, parseBmcAddress } from "../../../../src/bmc/interface/address.ts";
import { BmcError } from "../../../../src/bmc/interface/errors.ts";

const refused = (text: string): BmcError => {
  try {
    parseBmcAddress(text);
  } catch (error) {
    assert.ok(error instanceof BmcError);
    assert.equal(error.code, "Unsupported");
    return error;
  }
  return assert.fail(`${text} was accepted`);
};

test("every Redfish scheme of a BareMetalHost is HTTPS unless it says http", () => {
  const names = [
    "redfish",
    "redfish-virtualmedia",
    "redfish-uefihttp",
    "idrac-redfish",
    "idrac-virtualmedia",
    "ilo5-redfish",
    "ilo5-virtualmedia",
  ];
  for (const name of names) {
    for (const [suffix, origin] of [
      ["", "https://bmc-3"],
      ["+https", "https://bmc-3"],
      ["+http", "http://bmc-3"],
    ]) {
      const address = parseBmcAddress(`${name}${suffix}://bmc-3/redfish/v1/Systems/1`);
      assert.equal(address.protocol, "redfish");
      assert.equal(address.origin, origin);
      assert.equal(address.system, "/redfish/v1/Systems/1");
    }
  }
});

test("a plain URL is Redfish", () => {
  const secure = parseBmcAddress("https://10.0.0.7:8443/redfish/v1/Systems/System.Embedded.1");
  assert.ok(secure.protocol === "redfish");
  assert.equal(secure.origin, "https://10.0.0.7:8443");
  const plain = parseBmcAddress("http://10.0.0.7:8000");
  assert.ok(plain.protocol === "redfish");
  assert.equal(plain.origin, "http://10.0.0.7:8000");
  assert.equal(plain.system, undefined);
});

test("schemes are read in any case", () => {
  assert.equal(parseBmcAddress("IDRAC-VirtualMedia+HTTPS://bmc").protocol, "redfish");
});

test("the path names the System, by path or by id, or not at all", () => {
  const systemOf = (text: string): string | undefined => {
    const address = parseBmcAddress(text);
    assert.ok(address.protocol === "redfish");
    return address.system;
  };
  assert.equal(systemOf("redfish://bmc"), undefined);
  assert.equal(systemOf("redfish://bmc/"), undefined);
  assert.equal(systemOf("redfish://bmc/437XR1138R2"), "437XR1138R2");
  assert.equal(systemOf("redfish://bmc/redfish/v1/Systems/1/"), "/redfish/v1/Systems/1");
  assert.equal(systemOf("redfish://bmc/redfish/v1/Systems/a%20b"), "/redfish/v1/Systems/a%20b");
  refused("redfish://bmc/Systems/1");
});

test("an IPMI address is read with its scheme, and in Metal3's form of a bare host", () => {
  for (const [text, hostname, port] of [
    ["ipmi://bmc-3", "bmc-3", 623],
    ["ipmi://bmc-3:6230", "bmc-3", 6230],
    ["ipmi://bmc-3:80", "bmc-3", 80],
    ["192.0.2.7", "192.0.2.7", 623],
    ["192.0.2.7:6230", "192.0.2.7", 6230],
    ["bmc-3.example", "bmc-3.example", 623],
    ["2001:db8::7", "2001:db8::7", 623],
    ["[2001:db8::7]:6230", "2001:db8::7", 6230],
    ["ipmi://[2001:db8::7]", "2001:db8::7", 623],
  ] as const) {
    const address = parseBmcAddress(text);
    assert.ok(address.protocol === "ipmi", text);
    assert.equal(address.hostname, hostname);
    assert.equal(address.port, port);
    assert.equal(address.text, text);
  }
});

test("IPMI: privilegelevel sets the privilege of a session, and the key of the device stays the same", () => {
  const privilegeOf = (text: string): string | undefined => {
    const address = parseBmcAddress(text);
    assert.ok(address.protocol === "ipmi", text);
    assert.equal(address.key, parseBmcAddress("ipmi://bmc-3").key);
    return address.privilege;
  };
  assert.equal(privilegeOf("ipmi://bmc-3"), undefined);
  assert.equal(privilegeOf("ipmi://bmc-3?privilegelevel=OPERATOR"), "OPERATOR");
  assert.equal(privilegeOf("bmc-3:623?privilegelevel=administrator"), "ADMINISTRATOR");
  assert.match(refused("ipmi://bmc-3?privilegelevel=USER").message, /no other level may control power/);
  refused("ipmi://bmc-3?privilegelevel=OPERATOR&x=1");
  refused("redfish://bmc-3/1?privilegelevel=OPERATOR");
});

test("a driver server has one key for each host, which the path names", () => {
  const address = parseBmcAddress("driver://Power.example:443/hosts/worker-3/");
  assert.ok(address.protocol === "driver");
  assert.deepEqual([address.origin, address.path], ["https://power.example", "/hosts/worker-3"]);
  const key = (text: string): string => parseBmcAddress(text).key;
  assert.equal(key("driver+https://power.example/hosts/worker-3"), address.key);
  assert.notEqual(key("driver://power.example/hosts/worker-4"), address.key);
  assert.notEqual(key("driver+http://power.example/hosts/worker-3"), address.key);
  assert.notEqual(key("redfish://power.example/3"), key("driver://power.example/3"));
  refused("driver+ftp://power.example/hosts/worker-3");
  refused("driver://power.example/hosts/worker-3?x=1");
  refused("driver://user@power.example/hosts/worker-3");
});

test("an outlet of a PDU is named by its index, with its unit if the table has units", () => {
  const outletOf = (text: string): unknown[] => {
    const address = parseBmcAddress(text);
    assert.ok(address.protocol === "snmp", text);
    return [address.hostname, address.port, address.outlet];
  };
  assert.deepEqual(outletOf("snmp://PDU-1.example/7"), ["pdu-1.example", 161, "7"]);
  assert.deepEqual(outletOf("snmp://192.0.2.9:1161/1.7/"), ["192.0.2.9", 1161, "1.7"]);
  assert.deepEqual(outletOf("snmp://192.0.2.9:80/7"), ["192.0.2.9", 80, "7"]);
  assert.deepEqual(outletOf("snmp://192.0.2.9/0.7"), ["192.0.2.9", 161, "0.7"]);
  assert.deepEqual(outletOf("SNMP://[2001:db8::7]/1.1.16"), ["2001:db8::7", 161, "1.1.16"]);
  const key = (text: string): string => parseBmcAddress(text).key;
  assert.equal(key("snmp://pdu-1:161/7"), key("snmp://PDU-1/7/"));
  assert.notEqual(key("snmp://pdu-1/7"), key("snmp://pdu-1/8"));
  assert.notEqual(key("snmp://pdu-1/7"), key("snmp://pdu-1/1.7"));
  for (const path of [
    "",
    "/",
    "/07",
    "/7.",
    "/-7",
    "/1.07",
    "/7/8",
    "/1.2.3.4.5",
    "/outlet7",
    "/7?x=1",
    "/..",
    "/%37",
  ]) {
    refused(`snmp://pdu-1${path}`);
  }
  refused("snmp+http://pdu-1/7");
  refused("snmp://community@pdu-1/7");
});

test("libvirt:// is refused with what to use in its place", () => {
  assert.match(refused("libvirt://192.0.2.1:6233/").message, /VirtualBMC.*sushy-emulator/);
});

test("a Redfish address may have an IPv6 host", () => {
  const address = parseBmcAddress("redfish://[2001:DB8::7]:8443/redfish/v1/Systems/1");
  assert.ok(address.protocol === "redfish");
  assert.equal(address.origin, "https://[2001:db8::7]:8443");
});

test("two spellings of one System have one key, two Systems have two", () => {
  const key = (text: string): string => parseBmcAddress(text).key;
  assert.equal(
    key("redfish://BMC/redfish/v1/Systems/1"),
    key("idrac-virtualmedia+https://bmc:443/redfish/v1/Systems/1/"),
  );
  assert.equal(key("redfish://bmc/1"), key("redfish://bmc/redfish/v1/Systems/1"));
  assert.notEqual(key("redfish://bmc/1"), key("redfish://bmc/2"));
  assert.notEqual(key("redfish://bmc"), key("redfish://bmc:8443"));
  assert.equal(key("ipmi://bmc"), key("bmc:623"));
});

test("a user or password in an address is refused and never repeated", () => {
  for (const text of [
    "redfish://root:calvin@bmc/redfish/v1/Systems/1",
    "https://root:calvin@bmc",
    "ipmi://root:calvin@bmc",
    "root:calvin@bmc",
    "redfish://bmc/@calvin",
    "telnet://root:calvin@bmc",
  ]) {
    assert.doesNotMatch(refused(text).message, /calvin|root/);
  }
});

test("a text that is not an address is refused with the reason", () => {
  for (const text of [
    "",
    " ",
    "redfish://",
    "redfish:///redfish/v1/Systems/1",
    "redfish://bmc:99999",
    "redfish://bmc:0",
    "redfish://bmc/x?y=1",
    "redfish://bmc/x#y",
    "redfish://bmc\\evil",
    "redfish://b mc",
    "redfish://bmc\n",
    "redfish+ftp://bmc",
    "redfish+http+http://bmc",
    "idrac://bmc",
    "libvirt://bmc",
    "bmc/path",
    "ipmi://bmc/path",
    "fe80::1%eth0",
    `redfish://${"a".repeat(ADDRESS_LENGTH_MAX)}`,
  ]) {
    refused(text);
  }
});

test("any text is either read or refused with a BmcError, within bounds", () => {
  const scheme = fc.constantFrom(
    "redfish://",
    "ipmi://",
    "redfish+http://",
    "https://",
    "ilo5-redfish://",
    "snmp://",
    "",
    "x://",
  );
  const text = fc.oneof(
    fc.string({ unit: "binary", maxLength: 80 }),
    fc.tuple(scheme, fc.string({ unit: "grapheme-ascii", maxLength: 60 })).map((parts) => parts.join("")),
    fc
      .tuple(scheme, fc.webAuthority({ withUserInfo: true, withIPv6: true, withPort: true }))
      .map((parts) => parts.join("")),
  );
  fc.assert(
    fc.property(text, (text) => {
      let address;
      try {
        address = parseBmcAddress(text);
      } catch (error) {
        assert.ok(error instanceof BmcError);
        // All of these have the same message, so it cannot contain any part of the text.
        if (text.includes("@")) assert.equal(error.message, refused("user@host").message);
        assert.ok(error.message.length < 800);
        return;
      }
      assert.ok(!text.includes("@"));
      assert.equal(address.text, text);
      if (address.protocol === "redfish") {
        const url = new URL(address.origin);
        assert.equal(url.origin, address.origin);
        assert.equal(url.username + url.password, "");
        // Parsing the result again gives the same device.
        const id = address.system ?? "";
        const again = parseBmcAddress(`${address.origin}${id.startsWith("/") ? "" : "/"}${id}`);
        assert.equal(again.key, address.key);
      } else if (address.protocol === "driver") {
        const scheme = address.origin.startsWith("http:") ? "driver+http" : "driver";
        const again = parseBmcAddress(`${scheme}://${new URL(address.origin).host}${address.path}`);
        assert.equal(again.key, address.key);
      } else {
        assert.ok(address.port > 0 && address.port < 65_536);
        assert.ok(address.hostname.length > 0);
      }
    }),
    { numRuns: 2_000 },
  );
});
