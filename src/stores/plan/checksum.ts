// Checksums: a running CRC32 over the events of a log, and sums of single rows. They find damage; they do not protect
// against forgery.
import type * as Zlib from 'node:zlib'

let zlib: typeof Zlib | null = null

/** Loaded by the first store that writes to a disk, because it brings all of Node's streams. */
export const crc32: typeof Zlib.crc32 = (data, value) => {
  zlib ??= process.getBuiltinModule('node:zlib')
  return zlib.crc32(data, value)
}

/** The start value of an empty log depends on the session, so an event cannot be moved to another session unnoticed. */
export function logSeed(session: string): number {
  return crc32(session) | 0
}

/**
 * The sum after one more event, or after many whose bodies are joined by commas. Each body counts with a comma before
 * it, so that the inside of a JSON array of events can be checked as one piece. Sums are signed, because SQLite stores
 * them shorter.
 */
export function addSum(sum: number, bodies: string): number {
  // Adds the comma by hand: for one byte the call would cost more than the work.
  const next = ~sum
  return crc32(bodies, ~((TABLE[(next ^ COMMA) & 0xff] ?? 0) ^ (next >>> 8)) >>> 0) | 0
}

const COMMA = 0x2c
const TABLE = Int32Array.from({ length: 256 }, (_, byte) => {
  let value = byte
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1
  return value
})

/** The checksum of a row's values. */
export function rowSum(...values: readonly (string | number | null)[]): number {
  return crc32(JSON.stringify(values)) | 0
}

/** Rows from before there were checksums have none. */
export function isSound(sum: number | null, ...values: readonly (string | number | null)[]): boolean {
  return sum === null || sum === rowSum(...values)
}
