import { COMPLETION } from "./codes.ts";
import {
  areaBytes,
  FRU_HEADER_BYTES,
  GET_FRU_INFO,
  parseChassisArea,
  parseFruData,
  parseFruHeader,
  parseFruInfo,
  parseProductArea,
  readFru,
} from "./fru.ts";
import type { FruInfo } from "./fru.ts";
import type { Request, Response } from "./message.ts";
import type { HostIdentity } from "../driver.ts";

/** Bytes asked for at once; BMCs that cannot give so many are asked for half of it. */
const CHUNK_BYTES = 32;
const CHUNK_BYTES_MIN = 8;

type Ask = (request: Request) => Promise<Response>;

/**
 * What the FRU inventory says of the host; nothing where the BMC has none or it is damaged. The serial number is the product's,
 * else the chassis'.
 *
 * @param ask sends a command; its failures pass through.
 */
export async function readFruIdentity(ask: Ask): Promise<Omit<HostIdentity, "device" | "systemUUID">> {
  const answer = await ask(GET_FRU_INFO);
  const info = answer.completionCode === COMPLETION.ok ? parseFruInfo(answer.data) : undefined;
  if (info === undefined) return {};
  const header = await readBytes(ask, info, 0, FRU_HEADER_BYTES);
  if (header === undefined) return {};
  const { chassis, product } = parseFruHeader(header);
  const made = product === undefined ? undefined : await readArea(ask, info, product);
  const identity = made === undefined ? {} : parseProductArea(made);
  if (identity.serialNumber !== undefined || chassis === undefined) return identity;
  const frame = await readArea(ask, info, chassis);
  return frame === undefined ? identity : { ...identity, ...parseChassisArea(frame) };
}

async function readArea(ask: Ask, info: FruInfo, offsetBytes: number): Promise<Buffer | undefined> {
  const start = await readBytes(ask, info, offsetBytes, FRU_HEADER_BYTES);
  if (start === undefined) return undefined;
  const rest = await readBytes(ask, info, offsetBytes + start.length, areaBytes(start) - start.length);
  return rest === undefined ? undefined : Buffer.concat([start, rest]);
}

/** Reads exactly so many bytes, in as many steps as it takes; undefined where the BMC does not give them. */
async function readBytes(ask: Ask, info: FruInfo, from: number, countBytes: number): Promise<Buffer | undefined> {
  if (countBytes < 0 || from + countBytes > info.sizeBytes) return undefined;
  const chunks: Buffer[] = [];
  let chunkBytes = CHUNK_BYTES;
  for (let read = 0; read < countBytes;) {
    const wantedBytes = Math.min(chunkBytes, countBytes - read);
    const answer = await ask(readFru(info, from + read, wantedBytes));
    if (answer.completionCode !== COMPLETION.ok) {
      chunkBytes /= 2;
      if (chunkBytes < CHUNK_BYTES_MIN) return undefined;
      continue;
    }
    const bytes = parseFruData(info, answer.data, wantedBytes);
    if (bytes === undefined) return undefined;
    chunks.push(bytes);
    read += bytes.length;
  }
  return Buffer.concat(chunks);
}
