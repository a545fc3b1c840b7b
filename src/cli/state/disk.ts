// How much room there is where the data folder is, in words.
import { statfsSync } from 'node:fs'
import { EXIT, Refusal } from '../exit.ts'
import { typed } from '../present/print.ts'

export type Room = { readonly bavail: number; readonly bsize: number; readonly blocks: number }

/** With less than this the disk counts as full. */
export const FULL_BYTES = 1024 * 1024

/** What is wrong, and what to do, where less than `leastBytes` are free; null where more are. */
export function roomTrouble(folder: string, leastBytes: number, room: Room = statfsSync(folder)): string | null {
  const free = room.bavail * room.bsize
  // Some file systems do not report it.
  if (room.blocks === 0 || free >= leastBytes) return null
  if (free < FULL_BYTES)
    return `The disk is full where ${folder} is. Runs wait until there is room. ${describeRemoval()}`
  const mb = Math.floor(free / 1024 / 1024)
  const left = `The disk is nearly full: ${mb} MB are left where ${folder} is.`
  return `${left} Make room: runs wait until there is some. \`${typed`prune --older DAYS`}\` removes old sessions.`
}

/** SQLite writes what a removal changes to its write-ahead log first, so a full disk has no room for one. */
function describeRemoval(): string {
  const room = 'Make room: remove other files there until 1 MB is free, or more for a large session.'
  const prune = `\`${typed`prune --older DAYS`}\` then removes old sessions.`
  return `${room} ${prune} \`${typed`store backup FILE`}\` writes a copy to another disk.`
}

export function removalRefusal(): Refusal {
  return new Refusal(EXIT.store, `The disk is full, and a removal needs room too. ${describeRemoval()} (disk_full)`)
}
