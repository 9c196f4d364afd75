import { X509Certificate } from "node:crypto";
import { lookup } from "node:dns/promises";
import { connect as connectTcp, isIP } from "node:net";
import type { Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { TLSSocket } from "node:tls";
import { parseTimeMs } from "../../runtime/time.ts";
import { versionOptions } from "../gate/secure-contexts.ts";
import { tooOld } from "../redfish/http/tls.ts";
import type { DeviceConfig, DeviceTls } from "../interface/device-config.ts";

// Checks the connection to a device step by step, so that a user sees which step fails. Each function throws if its
// step fails.

/** Where a device listens. */
export interface Endpoint {
  /** Name or IP address; IPv6 without brackets. */
  hostname: string;
  port: number;
}

/** Resolves the name. @returns text for the user. */
export async function checkName({ hostname }: Endpoint): Promise<string> {
  if (isIP(hostname) !== 0) return `${hostname} is an IP address`;
  const addresses = await lookup(hostname, { all: true });
  return `${hostname} is ${addresses.map(({ address }) => address).join(", ")}`;
}

/** Opens a TCP connection and closes it again. @returns text for the user. */
export async function checkTcp({ hostname, port }: Endpoint, signal: AbortSignal): Promise<string> {
  const socket = connectTcp({ host: hostname, port });
  await opened(socket, "connect", signal);
  socket.destroy();
  return `port ${port} is open`;
}

/** The certificate that a device shows in a TLS handshake, and whether the configuration trusts it. */
export interface TlsFinding {
  trust: "Trusted" | "Unchecked" | "Untrusted";
  /** Text for the user. */
  detail: string;
  /** The fingerprint of the certificate of the device, in the format of `sha256Fingerprint`. */
  sha256Fingerprint: string;
  /** The end of the validity of the certificate. */
  validUntilMs: number | undefined;
}

/** Performs a TLS handshake and reads the certificate. It sends no request, and therefore no password. */
export async function checkTls(
  { hostname, port }: Endpoint,
  { tls, certificate }: Pick<DeviceConfig, "tls" | "certificate">,
  signal: AbortSignal,
): Promise<TlsFinding> {
  const socket = connectTls({
    host: hostname,
    port,
    ...(isIP(hostname) === 0 && { servername: hostname }),
    // `judgeCertificate` reports the result of the verification, and nothing else is sent over this connection.
    rejectUnauthorized: false,
    ...versionOptions(tls.minVersion),
    ...(tls.ca !== undefined && { ca: tls.ca }),
    ...(certificate && { cert: certificate.cert, key: certificate.key.reveal() }),
  });
  try {
    await opened(socket, "secureConnect", signal);
    return judgeCertificate(socket, tls);
  } catch (error) {
    throw (error instanceof Error ? tooOld(error) : undefined) ?? error;
  } finally {
    socket.destroy();
  }
}

function judgeCertificate(socket: TLSSocket, tls: DeviceTls): TlsFinding {
  const { raw } = socket.getPeerCertificate(false);
  const certificate = new X509Certificate(raw);
  const sha256Fingerprint = certificate.fingerprint256;
  const shown = `${describe(certificate)}, SHA-256 ${sha256Fingerprint}`;
  const found = { sha256Fingerprint, validUntilMs: parseTimeMs(certificate.validTo) };
  if (tls.sha256Fingerprint !== undefined) {
    return sameFingerprint(tls.sha256Fingerprint, sha256Fingerprint)
      ? { trust: "Trusted", detail: `the pinned certificate (${shown})`, ...found }
      : { trust: "Untrusted", detail: `not the pinned certificate, but ${shown}`, ...found };
  }
  if (socket.authorized) return { trust: "Trusted", detail: shown, ...found };
  if (tls.insecureSkipVerify) {
    return {
      trust: "Unchecked",
      detail: `any certificate is accepted (insecureSkipVerify); it is ${shown}`,
      ...found,
    };
  }
  // Node gives the code as a string, although the type says Error.
  const why = String(socket.authorizationError).replace(/^Error: /, "");
  const next =
    "compare this SHA-256 with the one that the console of the BMC shows, then pin it, or name the CA bundle that signed it";
  return { trust: "Untrusted", detail: `not trusted (${why}): ${shown}; ${next}`, ...found };
}

function describe(certificate: X509Certificate): string {
  const name = (text: string): string => text.replaceAll("\n", ", ").slice(0, 200);
  return `certificate of ${name(certificate.subject)}, issued by ${name(certificate.issuer)}, valid until ${certificate.validTo}`;
}

function sameFingerprint(a: string, b: string): boolean {
  const plain = (text: string): string => text.replaceAll(":", "").toLowerCase();
  return plain(a) === plain(b);
}

/** Waits for an event of a socket. The socket is destroyed on failure and on abort. */
function opened(socket: Socket, event: "connect" | "secureConnect", signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (error: Error): void => {
      socket.destroy();
      reject(error);
    };
    const onAbort = (): void => fail(new Error("aborted"));
    // The listener stays: an error after the event would otherwise end the process.
    socket.on("error", fail);
    socket.once("close", () => fail(new Error("the connection was closed")));
    socket.once(event, () => {
      signal.removeEventListener("abort", onAbort);
      resolve();
    });
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
  });
}
