// How much room there is where the data folder is, in words.
import { statfsSync } from 'node:fs'

export type Room = { readonly bavail: number; readonly bsize: number; readonly blocks: number }

/** With less than this the disk counts as full. */
export const FULL_BYTES = 1024 * 1024

/** What is wrong, and what to do, where less than `leastBytes` are free; null where more are. */
export function roomTrouble(folder: string, leastBytes: number, room: Room = statfsSync(folder)): string | null {
  const free = room.bavail * room.bsize
  // Some file systems do not report it.
  if (room.blocks === 0 || free >= leastBytes) return null
  const mb = Math.floor(free / 1024 / 1024)
  const left = free < FULL_BYTES ? 'The disk is full' : `The disk is nearly full: ${mb} MB are left`
  return `${left} where ${folder} is. Make room: runs wait until there is some. \`terret prune\` removes old sessions.`
}
