import { randomInt } from "node:crypto";
import { growingWaits } from "./channel.ts";
import type { Channel, Received } from "./channel.ts";
import { encodeRequest, parseResponse } from "../packets/message.ts";
import { PRIVILEGE } from "../packets/open-session.ts";
import { encodeSessionless, parsePacket } from "../packets/rmcp.ts";
import type { IpmiAddress } from "../../interface/address.ts";
import { BmcError } from "../../interface/errors.ts";

/**
 * Reads the authentication capabilities of the channel, as a harmless first request that may be repeated. The answer is
 * used only as a hint for a message, because many BMCs report these flags incorrectly.
 *
 * @returns whether the BMC reports that it has its own key (K_G).
 * @throws BmcError Unreachable without an answer within `connectTimeoutMs`; the reason of `signal` on abort.
 */
export async function readAuthCapabilities(
  channel: Channel,
  { address, connectTimeoutMs }: { address: IpmiAddress; connectTimeoutMs: number },
  signal: AbortSignal,
): Promise<{ hasBmcKey: boolean }> {
  // For this channel (0Eh), with the data of IPMI 2.0 (80h).
  const request = { netFn: 0x06, command: 0x38, data: [0x8e, PRIVILEGE.administrator] };
  const sequence = randomInt(64);
  const receive = (datagram: Buffer): Received<{ hasBmcKey: boolean }> => {
    const packet = parsePacket(datagram);
    const response = packet?.version === "1.5" ? parseResponse(packet.payload, request, sequence) : undefined;
    if (response === undefined) return { dropped: "another datagram" };
    return { answer: { hasBmcKey: response.checksumsHold && ((response.data[2] ?? 0) & 0x20) !== 0 } };
  };
  try {
    const { answer } = await channel.exchange(
      {
        what: `${address.text}: first contact`,
        waitsMs: growingWaits(connectTimeoutMs),
        encode: () => encodeSessionless(encodeRequest(request, sequence)),
        receive,
      },
      signal,
    );
    return answer;
  } catch (error) {
    if (!(error instanceof BmcError) || error.code !== "Timeout") throw error;
    throw new BmcError("Unreachable", `${address.text}: the BMC does not answer on UDP port ${address.port}`, {
      cause: error,
    });
  }
}
