import { need } from "../errors.js";
import type { Share } from "./types.js";

const maxShares = 64;
const polynomial = 0x82f63b78; // CRC-32C, reversed

/** Returns the CRC-32C (RFC 3720, B.4) of a text of ASCII. */
export function crc32c(text: string): number {
  let crc = ~0;
  for (let i = 0; i < text.length; i++) {
    crc ^= text.charCodeAt(i);
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 && polynomial);
  }
  return ~crc >>> 0;
}

/** Returns a share, from `{of, index}` or a text such as "0/2". An empty text means no share. */
export function parseShare(share: Share | string | undefined): Share | undefined {
  if (!share) return undefined;
  const [index, of] = typeof share === "string" ? share.split("/").map(Number) : [share.index, share.of];
  const isRight = Number.isInteger(index) && Number.isInteger(of) && index >= 0 && index < of && of <= maxShares;
  need(isRight, 'share needs {of: 1 to 64, index: from 0}, or a text like "0/2": index and of');
  return { of, index };
}

/** Reports whether a room belongs to a share. */
export const hasRoom = (share: Share | undefined, roomId: string) => !share || crc32c(roomId) % share.of === share.index;
