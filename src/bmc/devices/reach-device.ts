import { abortReason } from "../../runtime/clock.ts";
import type { Clock } from "../../runtime/clock.ts";
import { DeadlineError, withDeadline } from "../../runtime/deadline.ts";
import type { BmcAddress } from "../interface/address.ts";
import type { SnmpConfig, TlsVersion } from "../interface/device-config.ts";
import { readAuthCapabilities } from "../ipmi/session/auth-capabilities.ts";
import { Channel } from "../ipmi/session/channel.ts";
import { discoverEngine } from "../snmp/session/discovery.ts";
import { checkName, checkTcp, checkTls } from "./network-checks.ts";
import { endpointOf } from "./probe-device.ts";

/** The step at which an attempt to reach a device failed. */
export type ReachStep = "name" | "connection" | "tls" | "ipmi" | "snmp";

export type Reach =
  | { state: "answers" }
  /** SNMPv2c answers only a request with the right community, so nothing was checked. */
  | { state: "unchecked" }
  /** `why` is text for the user. */
  | { state: "silent"; step: ReachStep; why: string };

interface ReachOptions {
  clock: Clock;
  timeoutMs: number;
  minVersion?: TlsVersion | undefined;
  /** `v3` by default. */
  snmpVersion?: SnmpConfig["version"];
}

/** The share of the timeout that the IPMI request may take, so that its own error comes before that of the deadline. */
const IPMI_SHARE = 0.8;

/**
 * Whether a device answers, without a login: a TLS handshake with a Redfish service or a driver server, and for IPMI
 * and SNMPv3 the request that comes before a session. The certificate is not verified. Only the abort of `signal` is
 * thrown.
 */
export async function reachDevice(
  address: BmcAddress,
  { clock, timeoutMs, minVersion, snmpVersion }: ReachOptions,
  signal: AbortSignal,
): Promise<Reach> {
  const endpoint = endpointOf(address);
  let step: ReachStep = "name";
  try {
    return await withDeadline(clock, "the answer", timeoutMs, signal, async (within): Promise<Reach> => {
      await checkName(endpoint);
      if (address.protocol === "snmp") {
        if (snmpVersion === "v2c") return { state: "unchecked" };
        step = "snmp";
        await discoverEngine(address, clock, within);
        return { state: "answers" };
      }
      if (address.protocol === "ipmi") {
        step = "ipmi";
        const channel = await Channel.open(address, clock, within);
        try {
          await readAuthCapabilities(channel, { address, connectTimeoutMs: timeoutMs * IPMI_SHARE }, within);
        } finally {
          channel.close();
        }
        return { state: "answers" };
      }
      step = "connection";
      await checkTcp(endpoint, within);
      if (address.origin.startsWith("https:")) {
        step = "tls";
        const tls = { insecureSkipVerify: true, ...(minVersion !== undefined && { minVersion }) };
        await checkTls(endpoint, { tls }, within);
      }
      return { state: "answers" };
    });
  } catch (error) {
    if (signal.aborted) throw abortReason(signal);
    if (error instanceof DeadlineError)
      return { state: "silent", step, why: `no answer within ${timeoutMs / 1_000} s` };
    return { state: "silent", step, why: whyOf(error) };
  }
}

function whyOf(error: unknown): string {
  if (!(error instanceof Error)) return "failed";
  // The message of OpenSSL contains the address of a thread and a line of source code, so only its code is shown.
  const code = "code" in error ? String(error.code) : "";
  return code.startsWith("ERR_SSL_") ? `the TLS handshake failed (${code})` : error.message;
}
