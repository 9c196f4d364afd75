import { must } from "./target.ts";
import type { FuzzTarget } from "./target.ts";
import { parseBmcAddress } from "../../src/bmc/interface/address.ts";
import { BmcError } from "../../src/bmc/interface/errors.ts";

// Fuzzes addresses. They come from users who may write FencingTargets, and from the command line.

const addresses: FuzzTarget = {
  name: "address",
  seeds: [
    "redfish://bmc-3.example:8443/redfish/v1/Systems/1",
    "redfish+http://[::1]:8000/redfish/v1/Systems/System.Embedded.1",
    "idrac-virtualmedia+https://10.0.0.1/1",
    "https://bmc-3.example",
    "ipmi://bmc-3:6230",
    "driver+http://power.example:8443/hosts/worker-3/",
    "snmp://pdu-1.example:1161/1.7",
    "[fe80::1]:623",
    "fe80::1",
    "10.0.0.1:80",
    "redfish://root:hunter2@bmc-3.example",
  ].map((text) => Buffer.from(text)),
  run: (input) => {
    const text = input.toString("utf8");
    try {
      const address = parseBmcAddress(text);
      must(!address.key.includes("@") && !address.text.includes("@"), "an address holds no credentials");
      must(!("port" in address) || (address.port >= 1 && address.port <= 65_535), "a port can be reached");
      must(parseBmcAddress(address.text).key === address.key, "the same text is the same device");
    } catch (error) {
      const isPrintable = error instanceof BmcError && /^[\x20-\x7e]{1,1000}$/.test(error.message);
      must(!(error instanceof BmcError) || isPrintable, "a refusal is short and printable");
      must(
        !(error instanceof BmcError) || !text.includes("hunter2@") || !error.message.includes("hunter2"),
        "no secret is repeated",
      );
      throw error;
    }
  },
};

export const ADDRESS_TARGETS: readonly FuzzTarget[] = [addresses];
