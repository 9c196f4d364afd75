import { isIPv6 } from "node:net";
import { BmcError } from "./errors.ts";

/** The longest address that is parsed. The FencingTarget CRD has the same bound. */
export const ADDRESS_LENGTH_MAX = 2_048;

/** Where a power device is and how to speak to it, without any credentials. */
export type BmcAddress = RedfishAddress | IpmiAddress;

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
  /** The privilege of a session; the highest of the BMC if the address does not name one. */
  privilege?: "OPERATOR" | "ADMINISTRATOR";
  /** Equal for two addresses of the same BMC. */
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

/**
 * Parses the address of a power device, in the forms that a BareMetalHost accepts: `redfish://host[:port]/path` and the
 * variants of vendors, each also with `+http` or `+https` (the default); plain `https://` and `http://` as Redfish;
 * `ipmi://host[:port]`, and a bare `host[:port]` as IPMI. The only query is `privilegelevel` of IPMI.
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
  if (REDFISH_SCHEMES.has(driver)) return redfishAddress(text, transport, rest);
  const known = [...REDFISH_SCHEMES].map((name) => `${name}://`).join(", ");
  throw invalid(text, `its scheme is not one of ${known} (each also with +http or +https), https://, http://, ipmi://`);
}

function redfishAddress(text: string, transport: string, rest: string): RedfishAddress {
  const url = parseUrl(text, `${transport}://${rest}`);
  const path = url.pathname.replace(/\/+$/, "");
  const system = path === "" ? undefined : path.startsWith("/redfish/") ? path : path.slice(1);
  if (system?.startsWith("/redfish/") === false && system.includes("/")) {
    throw invalid(text, "its path is neither the path of a System (/redfish/v1/Systems/ID) nor the id of one");
  }
  const id = system?.slice(system.lastIndexOf("/") + 1) ?? "";
  return { protocol: "redfish", origin: url.origin, system, key: `redfish ${url.origin} ${id}`, text };
}

function ipmiAddress(text: string, authority: string, query: string | undefined): IpmiAddress {
  const url = parseUrl(text, `http://${authority}`);
  if (url.pathname !== "/") throw invalid(text, "an IPMI address must not have a path");
  const hostname = url.hostname.replace(/^\[(.*)\]$/, "$1");
  // The URL parser drops a port that is the default port of http.
  const port = url.port === "" ? (/:0*80\/?$/.test(authority) ? 80 : IPMI_PORT) : Number(url.port);
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
