import { isIPv6 } from "node:net";
import { BmcError } from "./errors.ts";

/** Longest address that is looked at; the FencingTarget CRD has the same bound. */
export const ADDRESS_LENGTH_MAX = 2_048;

/** Where a power device is and how to speak to it, without any credentials. */
export type BmcAddress = RedfishAddress | IpmiAddress;

export interface RedfishAddress {
  protocol: "redfish";
  /** Scheme, host and port as a URL's origin; `http:` only where the address says so. */
  origin: string;
  /** The System: a path on the service (`/redfish/v1/Systems/1`) or its bare id (`1`). Undefined: the only one there is. */
  system: string | undefined;
  /** Equal for two addresses that name the same System of the same BMC, however they are written. */
  key: string;
  /** As written, for messages. */
  text: string;
}

export interface IpmiAddress {
  protocol: "ipmi";
  /** Name or IP address; IPv6 without brackets. */
  hostname: string;
  port: number;
  /** As which a session begins; the BMC's highest where the address does not say. */
  privilege?: "OPERATOR" | "ADMINISTRATOR";
  /** Equal for two addresses of the same BMC. */
  key: string;
  /** As written, for messages. */
  text: string;
}

/**
 * Metal3's names for drivers that all speak Redfish (BareMetalHost's spec.bmc.address). How such a host gets its image
 * (virtual media, UEFI HTTP) makes no difference to its power.
 */
const REDFISH_SCHEMES: ReadonlySet<string> = new Set([
  "redfish",
  "redfish-virtualmedia",
  "redfish-uefihttp",
  "idrac-redfish",
  "idrac-virtualmedia",
  "ilo5-redfish",
  "ilo5-virtualmedia",
]);

const IPMI_PORT = 623;

/**
 * Reads the address of a power device, in the forms that a BareMetalHost takes: `redfish://host[:port]/path` and its
 * vendors' variants, each also with `+http` or `+https` (the default); plain `https://` and `http://` as Redfish;
 * `ipmi://host[:port]`, and a bare `host[:port]` as IPMI; of a query IPMI's `privilegelevel` alone.
 *
 * @throws BmcError Unsupported for anything else, and for an address with a user or password in it: those belong in the
 * Secret, so the message does not repeat them.
 */
export function parseBmcAddress(text: string): BmcAddress {
  if (text.length === 0 || text.length > ADDRESS_LENGTH_MAX) {
    throw new BmcError("Unsupported", `a BMC address has 1 to ${ADDRESS_LENGTH_MAX} characters`);
  }
  // A credential may hide behind any spelling of userinfo, so no address with an @ is ever printed.
  if (text.includes("@")) {
    throw new BmcError("Unsupported", "a BMC address holds no user, password or @: credentials belong in the Secret");
  }
  // The URL parser would silently drop or rewrite these.
  const [, base = "", query] = /^([^?]*)(?:\?(.*))?$/.exec(text) ?? [];
  if (!/^[\x21-\x7e]+$/.test(base) || /[\\#]/.test(text)) throw invalid(text, "it has a character that no address has");
  const [, schemeText, rest] = /^([A-Za-z][A-Za-z0-9+.-]*):\/\/(.*)$/.exec(base) ?? [];
  if (schemeText === undefined || rest === undefined)
    return ipmiAddress(text, isIPv6(base) ? `[${base}]` : base, query);
  const scheme = schemeText.toLowerCase();
  if (scheme === "ipmi") return ipmiAddress(text, rest, query);
  if (scheme === "libvirt")
    throw invalid(
      text,
      "libvirt:// is for virtual machines on a test bench: give them a BMC with ipmi:// (VirtualBMC) or redfish+http:// (sushy-emulator)",
    );
  if (query !== undefined) throw invalid(text, "only an IPMI address has a query, which is privilegelevel");
  if (scheme === "https" || scheme === "http") return redfishAddress(text, scheme, rest);
  const [, driver = scheme, transport = "https"] = /^(.*?)(?:\+(https?))?$/.exec(scheme) ?? [];
  if (REDFISH_SCHEMES.has(driver)) return redfishAddress(text, transport, rest);
  const known = [...REDFISH_SCHEMES].map((name) => `${name}://`).join(", ");
  throw invalid(text, `its scheme is not one of ${known} (each also with +http or +https), https://, http://, ipmi://`);
}

function redfishAddress(text: string, transport: string, rest: string): RedfishAddress {
  const url = parseUrl(text, `${transport}://${rest}`);
  const path = url.pathname.replace(/\/+$/, "");
  const system = path === "" ? undefined : path.startsWith("/redfish/") ? path : path.slice(1);
  if (system?.startsWith("/redfish/") === false && system.includes("/")) {
    throw invalid(text, "its path is neither a System's path (/redfish/v1/Systems/ID) nor a bare System id");
  }
  const id = system?.slice(system.lastIndexOf("/") + 1) ?? "";
  return { protocol: "redfish", origin: url.origin, system, key: `redfish ${url.origin} ${id}`, text };
}

function ipmiAddress(text: string, authority: string, query: string | undefined): IpmiAddress {
  const url = parseUrl(text, `http://${authority}`);
  if (url.pathname !== "/") throw invalid(text, "an IPMI address has no path");
  const hostname = url.hostname.replace(/^\[(.*)\]$/, "$1");
  // The URL parser drops a port that is the default of http.
  const port = url.port === "" ? (/:0*80\/?$/.test(authority) ? 80 : IPMI_PORT) : Number(url.port);
  const privilege = query === undefined ? {} : { privilege: privilegeOf(text, query) };
  return { protocol: "ipmi", hostname, port, ...privilege, key: `ipmi ${hostname} ${port}`, text };
}

function privilegeOf(text: string, query: string): "OPERATOR" | "ADMINISTRATOR" {
  const level = /^privilegelevel=(\w+)$/i.exec(query)?.[1]?.toUpperCase();
  if (level === "OPERATOR" || level === "ADMINISTRATOR") return level;
  throw invalid(
    text,
    "its query is neither privilegelevel=OPERATOR nor privilegelevel=ADMINISTRATOR, and no other may power",
  );
}

function parseUrl(text: string, url: string): URL {
  const parsed = URL.parse(url);
  if (parsed === null || parsed.hostname === "") throw invalid(text, "host or port cannot be read");
  if (parsed.port === "0") throw invalid(text, "port 0 cannot be reached");
  return parsed;
}

function invalid(text: string, why: string): BmcError {
  // It may have been written to deceive a terminal.
  const printable = text.replaceAll(/[^\x20-\x7e]/g, "?");
  const shown = printable.length > 200 ? `${printable.slice(0, 200)}...` : printable;
  return new BmcError("Unsupported", `cannot use the BMC address ${JSON.stringify(shown)}: ${why}`);
}
