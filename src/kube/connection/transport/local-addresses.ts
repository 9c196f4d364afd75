import { lookup } from "node:dns";
import type { LookupAddress } from "node:dns";
import { BlockList, isIP } from "node:net";
import type { LookupFunction } from "node:net";
import { KubeError } from "../../errors.ts";

/**
 * Addresses at which no other machine's API server is: of this very machine and of its link alone, where agents of the
 * host and of clouds answer any client with credentials.
 */
const LOCAL = new BlockList();
LOCAL.addSubnet("0.0.0.0", 8, "ipv4");
LOCAL.addSubnet("127.0.0.0", 8, "ipv4");
LOCAL.addSubnet("169.254.0.0", 16, "ipv4");
LOCAL.addAddress("::", "ipv6");
LOCAL.addAddress("::1", "ipv6");
LOCAL.addSubnet("fe80::", 10, "ipv6");
/** The metadata services of AWS and of Oracle over IPv6. */
LOCAL.addAddress("fd00:ec2::254", "ipv6");
LOCAL.addAddress("fd00:c1::a9fe:a9fe", "ipv6");

/** @param address an IP address, without brackets. IPv4 in the forms of IPv6 counts as the address that it is. */
export function isLocalAddress(address: string): boolean {
  const [plain = ""] = address.split("%");
  return LOCAL.check(plain, isIP(plain) === 6 ? "ipv6" : "ipv4") || isEmbeddedLocal(plain);
}

/** `::a.b.c.d` and `64:ff9b::a.b.c.d`, by which a router may reach the IPv4 address. */
function isEmbeddedLocal(address: string): boolean {
  if (isIP(address) !== 6) return false;
  const { hostname } = new URL(`http://[${address}]`);
  const [, high = "", low = ""] = /^\[(?:::|64:ff9b::|::ffff:)([0-9a-f]{1,4}):([0-9a-f]{1,4})\]$/.exec(hostname) ?? [];
  if (low === "") return false;
  const [a, b] = [Number.parseInt(high, 16), Number.parseInt(low, 16)];
  return LOCAL.check(`${a >> 8}.${a & 255}.${b >> 8}.${b & 255}`, "ipv4");
}

/** @throws KubeError Network if the host of a URL is a local address. A name is looked at by `lookupElsewhere`. */
export function refuseLocalHost(url: URL): void {
  const host = url.hostname.replace(/^\[|\]$/g, "");
  if (isIP(host) !== 0 && isLocalAddress(host)) throw refusal();
}

/** Resolves names for a socket, and gives it no local address: what is checked here is what is connected to. */
export const lookupNonLocal: LookupFunction = (hostname, options, callback) => {
  lookup(hostname, { ...options, all: true }, (error, addresses: LookupAddress[]) => {
    if (error !== null) return callback(error, "", 0);
    const [first] = addresses;
    if (first === undefined || addresses.some(({ address }) => isLocalAddress(address))) {
      return callback(refusal(), "", 0);
    }
    return options.all === true ? callback(null, addresses) : callback(null, first.address, first.family);
  });
};

function refusal(): KubeError {
  return new KubeError(
    "Network",
    "the server's address is loopback or link-local, which is not connected to (--allow-local-workload-clusters)",
  );
}
