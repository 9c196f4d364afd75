import { GuardedSocket } from "./guarded-socket.ts";
import type { SnmpAddress } from "../../interface/address.ts";
import { BmcError } from "../../interface/errors.ts";
import { abortReason } from "../../../runtime/clock.ts";
import type { Clock, Timer } from "../../../runtime/clock.ts";

/** How long each request waits until the next one is sent. */
const WAITS_MS = [500, 1_000, 2_000];

/** The request for the ID of an SNMP engine (RFC 3414 section 4): SNMPv3, reportable, and without a user. */
const DISCOVERY = Buffer.from(
  "3038020103" + // version 3
    "300e020101020300ffe3040104020103" + // message ID 1, size, reportable, USM
    "0410300e0400020100020100040004000400" + // no engine, time, user or key
    "301104000400a00b0201010201000201003000", // a GetRequest for nothing
  "hex",
);

/**
 * Resolves once the SNMP engine of a PDU has answered the request that comes before every login of SNMPv3.
 *
 * @throws BmcError Timeout, Unreachable; the reason of `signal` on abort.
 */
export async function discoverEngine(address: SnmpAddress, clock: Clock, signal: AbortSignal): Promise<void> {
  const socket = await GuardedSocket.open(address, { isAuthenticated: true, isEncrypted: true }, signal);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const onAbort = (): void => reject(abortReason(signal));
  signal.addEventListener("abort", onAbort, { once: true });
  socket.once("message", () => resolve());
  socket.onRefusal = reject;
  let timer: Timer | undefined;
  const ask = ([waitMs, ...rest]: readonly number[]): void => {
    if (waitMs === undefined) {
      reject(new BmcError("Timeout", `no answer of SNMPv3 on UDP port ${address.port}`));
      return;
    }
    timer = clock.schedule(waitMs, () => ask(rest));
    socket.send(DISCOVERY, 0, DISCOVERY.length, 0, "", (error) => {
      if (error !== null) reject(error);
    });
  };
  try {
    ask(WAITS_MS);
    await promise;
  } finally {
    timer?.cancel();
    signal.removeEventListener("abort", onAbort);
    socket.close();
  }
}
