// Finds the paths in a git index that are repositories of their own: `git status` enters each of them and obeys their
// settings. It parses the file as git writes it (versions 2 to 4), as far as it is intact, and never runs git.
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'

const FILE_BYTES_MAX = 128 * 1024 * 1024

const GITLINK = 0o160_000
const HEADER_BYTES = 12
const MODE_AT = 24
const HASH_AT = 40
/** A flag of version 3: the entry has two more bytes of flags. */
const EXTENDED = 0x4000

export function readGitlinks(index: Buffer, hashBytes: 20 | 32): readonly string[] {
  if (index.length < HEADER_BYTES || index.toString('latin1', 0, 4) !== 'DIRC') return []
  const version = index.readUInt32BE(4)
  const found: string[] = []
  /** Only version 4 needs it: there each name says how much of the previous one it keeps. */
  let before = Buffer.alloc(0)
  for (let at = HEADER_BYTES, left = index.readUInt32BE(8); left > 0; left--) {
    const flagsAt = at + HASH_AT + hashBytes
    if (flagsAt + 4 > index.length) break
    const isExtended = version >= 3 && (index.readUInt16BE(flagsAt) & EXTENDED) !== 0
    let from = flagsAt + (isExtended ? 4 : 2)
    let kept = 0
    if (version === 4) {
      const cut = readVarint(index, from)
      from = cut.end
      kept = Math.max(0, before.length - cut.value)
    }
    const end = index.indexOf(0, from)
    if (end < 0) break
    const isLink = index.readUInt32BE(at + MODE_AT) === GITLINK
    if (isLink || version === 4) before = Buffer.concat([before.subarray(0, kept), index.subarray(from, end)])
    if (isLink) found.push(before.toString('utf8'))
    // Before version 4 an entry is padded to a multiple of eight bytes, with at least one.
    at = version === 4 ? end + 1 : at + Math.floor((end - at) / 8) * 8 + 8
  }
  return found
}

/** Git's encoding of offsets: seven bits per byte, the highest first, with one added for each byte that follows. */
function readVarint(bytes: Buffer, at: number): { readonly value: number; readonly end: number } {
  let end = at
  let byte = bytes[end++] ?? 0
  let value = byte & 0x7f
  while (byte & 0x80 && end < bytes.length) {
    byte = bytes[end++] ?? 0
    value = (value + 1) * 128 + (byte & 0x7f)
  }
  return { value, end }
}

/** Empty for anything but a regular file: opening a pipe would wait for ever. Null for a file that is too large. */
export function readRegularFile(file: string): Buffer | null {
  let opened: number | null = null
  try {
    opened = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK)
    const stat = fstatSync(opened)
    if (!stat.isFile()) return Buffer.alloc(0)
    return stat.size <= FILE_BYTES_MAX ? readFileSync(opened) : null
  } catch {
    return Buffer.alloc(0)
  } finally {
    if (opened !== null) closeSync(opened)
  }
}
