import { isIPv6 } from "node:net";
import { BmcError } from "./errors.ts";
import { withoutTrailingSlashes } from "../../runtime/text/trailing-slashes.ts";

/** The longest address that is parsed. The FencingTarget CRD has the same bound. */
export const ADDRESS_LENGTH_MAX = 2_048;

/** Where a power device is and how to speak to it, without any credentials. */
export type BmcAddress = RedfishAddress | IpmiAddress | DriverAddress | SnmpAddress;

export interface RedfishAddress {
  protocol: "redfish";
  /** Scheme, host and port as the origin of a URL; `http:` only if the address says so. */
  origin: string;
  /**
   * The System: a path on the service (`/redfish/v1/Systems/1`) or its bare id (`1`). Undefined: the only System of the
   * service.
   */
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
  /** The privilege of a session. By default the highest one that the BMC grants. */
  privilege?: "OPERATOR" | "ADMINISTRATOR";
  /** Equal for two addresses of the same BMC. */
  key: string;
  /** As written, for messages. */
  text: string;
}

/** One host of a driver server (docs/reference/driver.md). */
export interface DriverAddress {
  protocol: "driver";
  /** Scheme, host and port as the origin of a URL; `http:` only if the address says so. */
  origin: string;
  /** Names the host on the server, without a slash at its end; empty on a server with one host. */
  path: string;
  /** Equal for two addresses that name the same host of the same server, however they are written. */
  key: string;
  /** As written, for messages. */
  text: string;
}

/** One outlet of a switched PDU. An outlet does not know which host it feeds. */
export interface SnmpAddress {
  protocol: "snmp";
  /** Name or IP address; IPv6 without brackets. */
  hostname: string;
  port: number;
  /** The index of the outlet in the table of the vendor: `7`, or `1.7` for outlet 7 of unit 1. Units may begin at 0. */
  outlet: string;
  /** Equal for two addresses of the same outlet. */
  key: string;
  /** As written, for messages. */
  text: string;
}

/**
 * The names of Metal3 for drivers that all speak Redfish (spec.bmc.address of a BareMetalHost). How such a host gets
 * its image (virtual media, UEFI HTTP) does not matter for its power.
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
const SNMP_PORT = 161;

/**
 * Parses the address of a power device. The forms of a BareMetalHost are `redfish://host[:port]/path` and the variants
 * of vendors, each also with `+http` or `+https` (the default); plain `https://` and `http://` for Redfish;
 * `ipmi://host[:port]` and a bare `host[:port]` for IPMI. The others are `driver://host[:port]/path` for a driver
 * server, also with `+http` or `+https`, and `snmp://host[:port]/OUTLET` for an outlet of a switched PDU. The only
 * query is `privilegelevel` of IPMI.
 *
 * @throws BmcError Unsupported for anything else, and for an address that contains a user or password: those belong in
 * the Secret, so the message does not repeat them.
 */
export function parseBmcAddress(text: string): BmcAddress {
  if (text.length === 0 || text.length > ADDRESS_LENGTH_MAX) {
    throw new BmcError("Unsupported", `a BMC address has 1 to ${ADDRESS_LENGTH_MAX} characters`);
  }
  // Any spelling of userinfo may contain a credential, so an address with an @ is never printed.
  if (text.includes("@")) {
    throw new BmcError(
      "Unsupported",
      "a BMC address must not contain a user, password or @: credentials belong in the Secret",
    );
  }
  // The URL parser would silently drop or rewrite these.
  const [, base = "", query] = /^([^?]*)(?:\?(.*))?$/.exec(text) ?? [];
  if (!/^[\x21-\x7e]+$/.test(base) || /[\\#]/.test(text))
    throw invalid(text, "it has a character that is not allowed in an address");
  const [, schemeText, rest] = /^([A-Za-z][A-Za-z0-9+.-]*):\/\/(.*)$/.exec(base) ?? [];
  if (schemeText === undefined || rest === undefined)
    return ipmiAddress(text, isIPv6(base) ? `[${base}]` : base, query);
  const scheme = schemeText.toLowerCase();
  if (scheme === "ipmi") return ipmiAddress(text, rest, query);
  if (scheme === "libvirt")
    throw invalid(
      text,
      "libvirt:// is for virtual machines in a test lab: give them a BMC with ipmi:// (VirtualBMC) or redfish+http:// (sushy-emulator)",
    );
  if (query !== undefined) throw invalid(text, "only an IPMI address may have a query, and only privilegelevel");
  if (scheme === "https" || scheme === "http") return redfishAddress(text, scheme, rest);
  const [, driver = scheme, transport = "https"] = /^(.*?)(?:\+(https?))?$/.exec(scheme) ?? [];
  if (scheme === "snmp") return snmpAddress(text, rest);
  if (driver === "driver") return driverAddress(text, transport, rest);
  if (REDFISH_SCHEMES.has(driver)) return redfishAddress(text, transport, rest);
  const known = [...REDFISH_SCHEMES, "driver"].map((name) => `${name}://`).join(", ");
  throw invalid(
    text,
    `its scheme is not one of ${known} (each also with +http or +https), https://, http://, ipmi://, snmp://`,
  );
}

/** The name or IP address of the host that an address leads to, in lower case; IPv6 without brackets. */
export function hostnameOf(address: BmcAddress): string {
  const hostname = "origin" in address ? new URL(address.origin).hostname : address.hostname;
  return hostname.replace(/^\[(.*)\]$/, "$1").toLowerCase();
}

function redfishAddress(text: string, transport: string, rest: string): RedfishAddress {
  const url = parseUrl(text, `${transport}://${rest}`);
  const path = withoutTrailingSlashes(url.pathname);
  const system = path === "" ? undefined : path.startsWith("/redfish/") ? path : path.slice(1);
  if (system?.startsWith("/redfish/") === false && system.includes("/")) {
    throw invalid(text, "its path is neither the path of a System (/redfish/v1/Systems/ID) nor the id of one");
  }
  const id = system?.slice(system.lastIndexOf("/") + 1) ?? "";
  return { protocol: "redfish", origin: url.origin, system, key: `redfish ${url.origin} ${id}`, text };
}

function driverAddress(text: string, transport: string, rest: string): DriverAddress {
  const { origin, pathname } = parseUrl(text, `${transport}://${rest}`);
  const path = withoutTrailingSlashes(pathname);
  return { protocol: "driver", origin, path, key: `driver ${origin}${path}`, text };
}

function snmpAddress(text: string, rest: string): SnmpAddress {
  const { hostname, port, path } = parseUdp(text, rest, SNMP_PORT);
  const outlet = /^\/((?:0|[1-9]\d{0,8})(?:\.(?:0|[1-9]\d{0,8})){0,3})\/?$/.exec(path)?.[1];
  if (outlet === undefined) {
    throw invalid(
      text,
      "its path is not the number of an outlet: write snmp://HOST/7, or snmp://HOST/1.7 with the unit",
    );
  }
  return { protocol: "snmp", hostname, port, outlet, key: `snmp ${hostname} ${port} ${outlet}`, text };
}

function ipmiAddress(text: string, authority: string, query: string | undefined): IpmiAddress {
  const { hostname, port, path } = parseUdp(text, authority, IPMI_PORT);
  if (path !== "/") throw invalid(text, "an IPMI address must not have a path");
  const privilege = query === undefined ? {} : { privilege: privilegeOf(text, query) };
  return { protocol: "ipmi", hostname, port, ...privilege, key: `ipmi ${hostname} ${port}`, text };
}

function privilegeOf(text: string, query: string): "OPERATOR" | "ADMINISTRATOR" {
  const level = /^privilegelevel=(\w+)$/i.exec(query)?.[1]?.toUpperCase();
  if (level === "OPERATOR" || level === "ADMINISTRATOR") return level;
  throw invalid(
    text,
    "its query is neither privilegelevel=OPERATOR nor privilegelevel=ADMINISTRATOR, and no other level may control power",
  );
}

/** The parts of an address of a protocol over UDP. */
function parseUdp(text: string, rest: string, defaultPort: number): { hostname: string; port: number; path: string } {
  const url = parseUrl(text, `http://${rest}`);
  const authority = rest.split("/", 1)[0] ?? "";
  // The URL parser drops a port that is the default port of http.
  const port = url.port === "" ? (/:0*80$/.test(authority) ? 80 : defaultPort) : Number(url.port);
  return { hostname: url.hostname.replace(/^\[(.*)\]$/, "$1"), port, path: url.pathname };
}

function parseUrl(text: string, url: string): URL {
  const parsed = URL.parse(url);
  if (parsed === null || parsed.hostname === "") throw invalid(text, "its host or port cannot be parsed");
  if (parsed.port === "0") throw invalid(text, "port 0 is not a valid port");
  return parsed;
}

function invalid(text: string, why: string): BmcError {
  // The text may contain control sequences for a terminal.
  const printable = text.replaceAll(/[^\x20-\x7e]/g, "?");
  const shown = printable.length > 200 ? `${printable.slice(0, 200)}...` : printable;
  return new BmcError("Unsupported", `cannot use the BMC address ${JSON.stringify(shown)}: ${why}`);
}

/** Whether a text, valid or not, is the address of an outlet of a PDU. */
export function isOutletAddress(text: string): boolean {
  return /^snmp:/iu.test(text);
}
