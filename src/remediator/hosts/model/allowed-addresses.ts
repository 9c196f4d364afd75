import { parseBmcAddress } from "../../../bmc/interface/address.ts";
import type { BmcAddress } from "../../../bmc/interface/address.ts";
import { BmcError } from "../../../bmc/interface/errors.ts";

// The BMCs to which a Secret may be sent. A user who may write FencingTargets chooses addresses and Secrets, and must
// not be able to read passwords that way, so the Secret itself names the addresses that it allows. Pure.

/** How many entries of one Secret are read: enough for a rack, and one pattern covers a whole network. */
const PATTERNS_MAX = 256;

/**
 * Whether a Secret may be sent to an address.
 *
 * @param allowed the annotation of the Secret: origins (`redfish://bmc-3.example`, `https://bmc-3.example:8443`,
 * `ipmi://192.0.2.3`, `driver://power.example:8443`, `snmp://pdu-1.example`) separated by commas or spaces. Each label
 * of a host name may contain one `*`, which stands for any characters except a dot. A port may be `*`. Undefined, or
 * empty, allows no address.
 */
export function isAllowed(allowed: string | undefined, addressText: string): boolean {
  const address = originOf(addressText);
  if (address === undefined) return false;
  const patterns = (allowed ?? "").split(/[\s,]+/u).filter((pattern) => pattern !== "");
  return patterns.slice(0, PATTERNS_MAX).some((pattern) => matches(pattern, address));
}

/** What to write into the annotation for an address; undefined for an address that cannot be parsed. */
export function originText(addressText: string): string | undefined {
  const origin = originOf(addressText);
  if (origin === undefined) return undefined;
  const { scheme, host, port } = origin;
  return `${scheme}://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

interface Origin {
  scheme: string;
  host: string;
  port: string;
}

function matches(pattern: string, { scheme, host, port }: Origin): boolean {
  // "*" is not a port that an address can have, so it is removed before the pattern is parsed.
  const anyPort = pattern.endsWith(":*");
  const origin = originOf(withOutlet(anyPort ? pattern.slice(0, -2) : pattern));
  if (origin === undefined || origin.scheme !== scheme) return false;
  return (anyPort || origin.port === port) && matchesHost(origin.host, host);
}

/** Adds an outlet to the origin of a PDU, because only an address with an outlet can be parsed. */
function withOutlet(pattern: string): string {
  return /^snmp:\/\/[^/]*$/iu.test(pattern) ? `${pattern}/1` : pattern;
}

function matchesHost(pattern: string, host: string): boolean {
  const [labels, wanted] = [host.split("."), pattern.split(".")];
  return labels.length === wanted.length && wanted.every((label, at) => matchesLabel(label, labels[at] ?? ""));
}

function matchesLabel(pattern: string, label: string): boolean {
  const [start = "", end, more] = pattern.split("*");
  if (end === undefined) return pattern === label;
  return (
    more === undefined && label.length > start.length + end.length && label.startsWith(start) && label.endsWith(end)
  );
}

function originOf(text: string): Origin | undefined {
  try {
    return readOrigin(parseBmcAddress(text));
  } catch (error) {
    if (error instanceof BmcError) return undefined;
    throw error;
  }
}

function readOrigin(address: BmcAddress): Origin {
  if (address.protocol === "ipmi" || address.protocol === "snmp") {
    return { scheme: address.protocol, host: address.hostname, port: String(address.port) };
  }
  const { protocol, hostname, port } = new URL(address.origin);
  const isPlain = protocol === "http:";
  const host = hostname.replace(/^\[(.*)\]$/u, "$1");
  // A Secret for a BMC signs no orders for a driver server unless its annotation says so.
  const [plain, secure] =
    address.protocol === "driver" ? (["driver+http", "driver"] as const) : (["http", "https"] as const);
  return { scheme: isPlain ? plain : secure, host, port: port === "" ? (isPlain ? "80" : "443") : port };
}
