import { COMPLETION } from "../packets/codes.ts";
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
import type { Request, Response } from "../packets/message.ts";
import type { HostIdentity } from "../../identity/host-identity.ts";

/** How many bytes are requested at once. If a BMC cannot return that many, the number is halved. */
const CHUNK_BYTES = 32;
const CHUNK_BYTES_MIN = 8;

type AskBmc = (request: Request) => Promise<Response>;

/**
 * The identity in the FRU inventory; empty if the BMC has none or it is damaged. The serial number is that of the
 * product, otherwise that of the chassis.
 *
 * @param ask sends a command. Its failures are thrown.
 */
export async function readFruIdentity(ask: AskBmc): Promise<Omit<HostIdentity, "device" | "systemUUID">> {
  const answer = await ask(GET_FRU_INFO);
  const info = answer.completionCode === COMPLETION.ok ? parseFruInfo(answer.data) : undefined;
  if (info === undefined) return {};
  const inventory = { ask, info, chunkBytes: CHUNK_BYTES };
  const header = await readBytes(inventory, 0, FRU_HEADER_BYTES);
  if (header === undefined) return {};
  const { chassis, product } = parseFruHeader(header);
  const made = product === undefined ? undefined : await readArea(inventory, product);
  const identity = made === undefined ? {} : parseProductArea(made);
  if (identity.serialNumber !== undefined || chassis === undefined) return identity;
  const frame = await readArea(inventory, chassis);
  return frame === undefined ? identity : { ...identity, ...parseChassisArea(frame) };
}

interface Inventory {
  ask: AskBmc;
  info: FruInfo;
  /** How many bytes the BMC is known to return at once. */
  chunkBytes: number;
}

async function readArea(inventory: Inventory, offsetBytes: number): Promise<Buffer | undefined> {
  const start = await readBytes(inventory, offsetBytes, FRU_HEADER_BYTES);
  if (start === undefined) return undefined;
  const rest = await readBytes(inventory, offsetBytes + start.length, areaBytes(start) - start.length);
  return rest === undefined ? undefined : Buffer.concat([start, rest]);
}

/** Reads exactly this number of bytes, in several steps if necessary; undefined if the BMC does not return them. */
async function readBytes(inventory: Inventory, from: number, countBytes: number): Promise<Buffer | undefined> {
  const { ask, info } = inventory;
  if (countBytes < 0 || from + countBytes > info.sizeBytes) return undefined;
  const chunks: Buffer[] = [];
  for (let read = 0; read < countBytes;) {
    const wantedBytes = Math.min(inventory.chunkBytes, countBytes - read);
    const answer = await ask(readFru(info, from + read, wantedBytes));
    if (answer.completionCode !== COMPLETION.ok) {
      inventory.chunkBytes /= 2;
      if (inventory.chunkBytes < CHUNK_BYTES_MIN) return undefined;
      continue;
    }
    const bytes = parseFruData(info, answer.data, wantedBytes);
    if (bytes === undefined) return undefined;
    chunks.push(bytes);
    read += bytes.length;
  }
  return Buffer.concat(chunks);
}
