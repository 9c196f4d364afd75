import { lookup } from "node:dns";
import type { LookupAddress } from "node:dns";
import { BlockList, isIP } from "node:net";
import type { LookupFunction } from "node:net";
import { KubeError } from "../../errors.ts";

/**
 * Addresses at which no API server of another machine can be: those of this machine and link-local ones. Agents of the
 * host and metadata services of clouds listen there, and give credentials to any client.
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

/** @param address an IP address, without brackets. An IPv4 address in a form of IPv6 counts as that IPv4 address. */
export function isLocalAddress(address: string): boolean {
  const [plain = ""] = address.split("%");
  return LOCAL.check(plain, isIP(plain) === 6 ? "ipv6" : "ipv4") || isEmbeddedLocal(plain);
}

/**
 * Whether an IPv6 address contains a local IPv4 address, as `::a.b.c.d`, `::ffff:a.b.c.d` or `64:ff9b::a.b.c.d`. A
 * router may translate it to that address.
 */
function isEmbeddedLocal(address: string): boolean {
  if (isIP(address) !== 6) return false;
  const { hostname } = new URL(`http://[${address}]`);
  const [, high = "", low = ""] = /^\[(?:::|64:ff9b::|::ffff:)([0-9a-f]{1,4}):([0-9a-f]{1,4})\]$/.exec(hostname) ?? [];
  if (low === "") return false;
  const [a, b] = [Number.parseInt(high, 16), Number.parseInt(low, 16)];
  return LOCAL.check(`${a >> 8}.${a & 255}.${b >> 8}.${b & 255}`, "ipv4");
}

/** @throws KubeError Network if the host of a URL is a local address. `lookupNonLocal` checks host names. */
export function refuseLocalHost(url: URL): void {
  const host = url.hostname.replace(/^\[|\]$/g, "");
  if (isIP(host) !== 0 && isLocalAddress(host)) throw refusal();
}

/**
 * Resolves host names for a socket, and refuses names with a local address. The socket connects to the addresses that
 * were checked here, so that the name cannot resolve to another one in between.
 */
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
    "the server's address is loopback or link-local: allow it with --allow-local-workload-clusters",
  );
}
